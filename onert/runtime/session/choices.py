"""What an application chooses for a session. Source: onnxruntime's Python API, 1.2x."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from onert.compiler import Options
from onert.ir import Array, OnertWarning
from onert.runtime.errors import ArgumentError

from .values import OrtValue

PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(Enum):
    """How much a graph is rewritten: not at all, or as well as possible, whatever the other levels."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether branches of a graph may run side by side."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """How a session compiles and runs.

    These matter: `intra_op_num_threads` (0: as many as there are processors), `graph_optimization_level`,
    `execution_mode`, `enable_profiling` and `profile_file_prefix`, overrides of free dimensions, and `onert`, options
    of onert's own, which take precedence. Everything else is accepted and has no effect. When the session is made, an
    OnertWarning names what cannot be done.
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
        """Accepted; `get_session_config_entry` gives it back."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise ArgumentError(f"there is no configuration entry {key!r}")
        return self._entries[key]

    def has_session_config_entry(self, key: str) -> bool:
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a dimension of inputs that the model leaves open and names."""
        self._dimensions[name] = int(size)

    @property
    def dimensions(self) -> dict[str, int]:
        """Names of open dimensions, and the sizes that they are fixed to."""
        return dict(self._dimensions)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace the elements of the model's initializer of this name.

        A session takes the elements as they are when it is made. InvalidArgument is raised then if
        the model has no such initializer.
        """
        self._initializers[name] = value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """As `add_initializer`, for several; also where the model's elements are in a file that is not there."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    @property
    def initializers(self) -> dict[str, Array]:
        """Names of initializers, and the elements that take the place of the model's."""
        return dict(self._initializers)

    def add_provider(self, name: str, options: Mapping[str, str] | None = None) -> None:
        """Accepted; models run on the CPU."""
        noted([name])

    def has_providers(self) -> bool:
        """Whether providers other than the CPU's were added. False: there are no others."""
        return False

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Accepted; loading is not ended."""

    def register_custom_ops_library(self, path: str) -> None:
        raise ArgumentError(f"operators of the library {path!r} are machine code for ONNX Runtime, which is not run")

    def compiled(self) -> Options:
        """The same choices as options of onert."""
        chosen: dict[str, Any] = {}
        if self.intra_op_num_threads:
            chosen["num_threads"] = int(self.intra_op_num_threads)
        if self.graph_optimization_level in (GraphOptimizationLevel.ORT_DISABLE_ALL, 0):
            chosen["optimize"] = False
        if self.execution_mode in (ExecutionMode.ORT_PARALLEL, 1):
            chosen["executor"] = "Parallel"
        if self.optimized_model_filepath:
            warnings.warn("optimized_model_filepath is given; onert writes no ONNX file", OnertWarning, stacklevel=4)
        return Options.from_environment(**{**chosen, **self.onert})


class RunOptions:
    """How one run is done: with `terminate` it is not begun. The rest is accepted and has no effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Accepted; `get_run_config_entry` gives it back."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]


def noted(providers: Sequence[Any] | None) -> None:
    """An OnertWarning where a provider is asked for first that is not the processor."""
    names = [p[0] if isinstance(p, tuple) else p for p in providers or ()]
    if names and PROVIDER not in names:
        warnings.warn(f"{', '.join(map(str, names))}: onert runs models on the CPU", OnertWarning, stacklevel=3)


def get_available_providers() -> list[str]:
    """Where a model can run."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """Where a model can run."""
    return [PROVIDER]


def get_device() -> str:
    """What kind of device models run on."""
    return "CPU"


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Accepted: there are no libraries of other devices to load."""


def set_default_logger_severity(severity: int) -> None:
    """Accepted: onert writes nothing unless it is asked to."""
    if not 0 <= severity <= 4:  # ONNX Runtime's levels
        raise ArgumentError(f"the severity is {severity}, expected 0 to 4")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: onert writes nothing unless it is asked to."""
    if verbosity < -1:
        raise ArgumentError(f"the verbosity is {verbosity}, expected at least -1")


def disable_telemetry_events() -> None:
    """Nothing to do: onert sends nothing to anybody."""


def enable_telemetry_events() -> None:
    """Accepted: onert sends nothing to anybody."""
