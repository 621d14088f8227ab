"""The options of a session. Source: onnxruntime's Python API, 1.2x."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import Any

from onert.compiler import Options
from onert.exec import Execution
from onert.ir import Array, OnertWarning
from onert.runtime.errors import ArgumentError

from .errors import FailedRun
from .values import OrtValue

PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(Enum):
    """How much a graph is rewritten: ORT_DISABLE_ALL disables all rewriting; all other levels are equivalent."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether branches of a graph may run in parallel."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """How a session compiles and runs.

    These have an effect: `intra_op_num_threads` (0: one per processor), `graph_optimization_level`, `execution_mode`,
    `enable_profiling` and `profile_file_prefix`, overrides of free dimensions, and `onert`, onert's own options, which
    take precedence. Everything else is accepted and ignored. Creating the session issues an OnertWarning for choices
    that cannot be honoured.
    """

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = 0
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.onert: dict[str, Any] = {}
        self._entries: dict[str, str] = {}
        self.use_per_session_threads = True
        self._dimensions: dict[str, int] = {}
        self._initializers: dict[str, Array] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Accepted; `get_session_config_entry` returns it."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)

    def has_session_config_entry(self, key: str) -> bool:
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a named dimension of inputs that the model leaves open."""
        self._dimensions[name] = int(size)

    @property
    def dimensions(self) -> dict[str, int]:
        """Names of open dimensions, and the sizes to which they are fixed."""
        return dict(self._dimensions)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace the elements of the model's initializer of this name.

        A session reads the elements when it is created. It then raises InvalidArgument if the model
        has no such initializer.
        """
        self._initializers[name] = value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Like `add_initializer`, for several; also if the model's elements are in a file that does not exist."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    @property
    def initializers(self) -> dict[str, Array]:
        """Names of initializers, and the elements that replace the model's."""
        return dict(self._initializers)

    def add_provider(self, name: str, options: Mapping[str, str] | None = None) -> None:
        """Accepted; models run on the CPU."""
        noted([name])

    def has_providers(self) -> bool:
        """Whether providers other than the CPU's were added: always False, as there are no others."""
        return False

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Accepted and ignored: loading cannot be cancelled."""

    def register_custom_ops_library(self, path: str) -> None:
        raise ArgumentError(f"operators of the library {path!r} are machine code that only ONNX Runtime can run")

    def compiled(self) -> Options:
        """These choices as onert's options."""
        chosen: dict[str, Any] = {}
        if self.intra_op_num_threads:
            chosen["num_threads"] = int(self.intra_op_num_threads)
        if self.graph_optimization_level in (GraphOptimizationLevel.ORT_DISABLE_ALL, 0):
            chosen["optimize"] = False
        if self.execution_mode in (ExecutionMode.ORT_PARALLEL, 1):
            chosen["executor"] = "Parallel"
        if self.optimized_model_filepath:
            warnings.warn("optimized_model_filepath is ignored; onert writes no ONNX files", OnertWarning, stacklevel=4)
        return Options.from_environment(**{**chosen, **self.onert})


_FREELY = nullcontext()
"""For a run without options: made once, because a context manager for each run takes time."""
_LOOK = 1e-4
"""Seconds after which a thread that ends a run looks again whether it has begun."""


class RunOptions:
    """How runs are done: `terminate` refuses and ends them. Everything else is accepted and ignored."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._terminate = False
        self._active: list[Execution] = []
        self._entries: dict[str, str] = {}

    @property
    def terminate(self) -> bool:
        """Whether runs with these options are refused. Setting it also ends those that are active, before their next
        step or the next round of a loop; any thread may do this."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        for execution in tuple(self._active) if value else ():
            while execution in self._active and not execution.cancel():
                time.sleep(_LOOK)  # it has not begun, or has just ended

    @contextmanager
    def run_by(self, execution: Execution) -> Iterator[None]:
        """For the time of a run with these options. Raises FailedRun if it is refused."""
        self._active.append(execution)
        try:
            if self._terminate:
                raise FailedRun("the run's options request its termination")
            yield
        finally:
            self._active.remove(execution)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Accepted; `get_run_config_entry` returns it."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)


def run_by(options: RunOptions | None, execution: Execution) -> AbstractContextManager[None]:
    """`RunOptions.run_by`, for a run that may have none."""
    return _FREELY if options is None else options.run_by(execution)


def _entry(entries: Mapping[str, str], key: str) -> str:
    if key not in entries:
        raise ArgumentError(f"there is no configuration entry {key!r}")
    return entries[key]


def session_options(given: object) -> SessionOptions:
    """A session's options, or the default ones for None. Raises ArgumentError if they are of another class."""
    if given is None:
        return SessionOptions()
    if not isinstance(given, SessionOptions):
        kind = type(given)
        raise ArgumentError(f"sess_options is a {kind.__module__}.{kind.__name__}, expected onert.SessionOptions")
    return given


def noted(providers: Sequence[Any] | None) -> None:
    """Issue an OnertWarning if providers are named but the CPU's is not among them."""
    names = [p[0] if isinstance(p, tuple) else p for p in providers or ()]
    if names and PROVIDER not in names:
        warnings.warn(f"{', '.join(map(str, names))}: onert runs models on the CPU", OnertWarning, stacklevel=3)


def get_available_providers() -> list[str]:
    """The providers that can run a model: only the CPU's."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The providers that can run a model: only the CPU's."""
    return [PROVIDER]


def get_device() -> str:
    """The kind of device that models run on."""
    return "CPU"


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Accepted and ignored: there are no libraries of other devices to load."""


def set_default_logger_severity(severity: int) -> None:
    """Accepted and ignored: onert logs nothing unless asked to."""
    if not 0 <= severity <= 4:  # ONNX Runtime's levels
        raise ArgumentError(f"the severity is {severity}, expected 0 to 4")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted and ignored: onert logs nothing unless asked to."""
    if verbosity < -1:
        raise ArgumentError(f"the verbosity is {verbosity}, expected at least -1")


def disable_telemetry_events() -> None:
    """Nothing to do: onert sends no telemetry."""


def enable_telemetry_events() -> None:
    """Accepted and ignored: onert sends no telemetry."""
