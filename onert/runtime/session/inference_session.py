"""`InferenceSession`: the interface of ONNX Runtime's class of this name, implemented by onert."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from onert import compiler
from onert.backend.program import Program
from onert.backend.registry import load_backends
from onert.exec import Execution
from onert.frontend.format import ranks_are_missing
from onert.frontend.onnx.declarations import Declarations, read_declarations
from onert.frontend.onnx.messages import ValueDeclaration, ValueType, ranks
from onert.ir import Array, DType, OnertError, Package
from onert.ir.process.imports import module
from onert.runtime.errors import ArgumentError, RunError

from . import errors
from .binding import IOBinding
from .choices import PROVIDER, RunOptions, SessionOptions, noted, run_by, session_options
from .errors import FailedRun, InvalidArgument
from .reading import MOST_RANKS, loaded, place
from .seeds import seeded
from .values import ModelMetadata, NodeArg, OrtValue, encoded, given, maps, node_argument, row, taken

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST_AT_A_TIME = 4
"""The most concurrent runs of one session's `run_async`; others wait."""


class InferenceSession:
    """Runs an ONNX model (or any other that onert reads). Inputs and outputs are identified by name.

        session = onert.InferenceSession("model.onnx")
        scores = session.run(None, {"x": image})[0]

    Arguments are ONNX Runtime's. Models run on the CPU, whatever providers are named; an OnertWarning is issued if the
    CPU's is not among them. Any number of threads may call `run` of one session. Wrong arguments and models raise a
    ValueError, failed runs a RuntimeError; both are `onert.OnertError` too.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **more: Any,
    ) -> None:
        noted(providers)
        self._choices = session_options(sess_options)
        self._lock = Lock()
        self._idle: list[Execution] = []
        self._threads: Executor | None = None
        self._began = 0
        self._model_path = None if isinstance(path_or_bytes, bytes) else path_or_bytes
        options = self._choices.compiled()
        self._trace = None
        if self._choices.enable_profiling:
            self._began = time.monotonic_ns()
            self._trace = f"{self._choices.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
            options = options.choose(trace_filepath=self._trace)
        self._by_ranks: dict[tuple[Any, ...], InferenceSession] | None = None
        """Sessions by the ranks of their inputs, if the model can be read only once these are known."""
        source = place(path_or_bytes)
        try:
            package, self._declared = loaded(source, self._choices, {})
        except errors.InvalidGraph as error:
            self._source, self._by_ranks, self._declared = source, {}, read_declarations(source)
            if not ranks_are_missing(error) or not any(end.decides_ranks for end in self._ends().inputs):
                raise
        shapes = self._fixed()
        self._options = options.choose(input_shapes={**options.input_shapes, **shapes}) if shapes else options
        if self._by_ranks is None:
            self._program = self._compiled(package)
        ends = self._ends()
        self._inputs = {end.name: end for end in ends.inputs}
        self._outputs = {end.name: end for end in ends.outputs}
        self._all_outputs = tuple(self._outputs)
        self._interface = ends
        known = {end.name: plain for end in ends.inputs if (plain := self._plain_type(end)) is not None}
        self._plain = {name: plain for name, plain in known.items() if not plain[0].hasobject}
        """For each input that takes arrays as they are: its element type, rank, and fixed dimensions by axis."""
        self._texts = {name: plain for name, plain in known.items() if plain[0].hasobject}
        """The same for strings, which are encoded."""

    def _compiled(self, package: Package) -> Program:
        options = self._options
        try:
            return compiler.compile(seeded(package), options, load_backends(options.backends))
        except OnertError as error:
            raise errors.NotImplemented(str(error)) from error

    def for_inputs(self, feed: Mapping[str, Any]) -> InferenceSession:
        """The session that runs these inputs: one of its own for each combination of ranks, if the model needs them."""
        sessions = self._by_ranks
        if sessions is None:
            return self
        shapes = ranks(self._interface.inputs, {name: array.shape for name, array in feed.items() if array is not None})
        key = tuple(shapes.items())
        found = sessions.get(key)
        if found is None:
            found = copy(self)
            found._idle, found._by_ranks = [], None
            try:
                found._program = self._compiled(loaded(self._source, self._choices, shapes)[0])
            except OnertError as error:
                raise FailedRun(str(error)) from error
            with self._lock:
                while len(sessions) >= MOST_RANKS:
                    del sessions[next(iter(sessions))]
                sessions[key] = found
        return found

    def _fixed(self) -> dict[int | str, tuple[int, ...]]:
        """The shapes of inputs whose open dimensions are all fixed by name."""
        sizes, found = self._choices.dimensions, dict[int | str, tuple[int, ...]]()
        for end in () if self._declared is None else self._declared.inputs:
            shape = None if end.type is None else end.type.shape
            dims = [sizes.get(d, d) if isinstance(d, str) else d for d in shape or ()]
            if shape and any(isinstance(d, str) and d in sizes for d in shape):
                known = tuple(d for d in dims if isinstance(d, int))
                if len(known) != len(dims):
                    raise ArgumentError(f"input {end.name!r} has open dimensions that no override fixes")
                found[end.name] = known
        return found

    def _ends(self) -> Declarations:
        """The inputs and outputs that an ONNX file declares; for another format, those of the program."""
        if self._declared is not None:
            return self._declared
        sides = (self._program.inputs, self._program.outputs)
        ends = [tuple(ValueDeclaration(i.name, ValueType("tensor", i.dtype, i.open_shape)) for i in s) for s in sides]
        return Declarations(ends[0], ends[1])

    # ---- descriptions

    def get_inputs(self) -> list[NodeArg]:
        """The inputs in the model's order."""
        return [node_argument(end) for end in self._interface.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs in the model's order."""
        return [node_argument(end) for end in self._interface.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Always empty: constants that are listed as inputs cannot be overridden."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._interface)

    def get_session_options(self) -> SessionOptions:
        return self._choices

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Accepted; models run on the CPU."""
        noted(providers)

    def disable_fallback(self) -> None:
        """Accepted and ignored: there is no other provider to fall back from."""

    def enable_fallback(self) -> None:
        """Accepted and ignored: there is no other provider to fall back from."""

    # ---- runs

    def new_execution(self) -> Execution:
        """A new execution of the program."""
        try:
            return Execution(self._program)
        except OnertError as error:
            raise RunError(str(error)) from error

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """Run once. Returns the outputs with these names, or all outputs if `output_names` is None.

        `input_feed` maps input names to arrays, lists of arrays for sequences, and None for an absent optional.

        Raises ArgumentError if an input is missing, unknown, or of another type or shape than the model's.
        """
        wanted = self.require_outputs(output_names)
        feed = input_feed if self._is_plain(input_feed) else self._fed(input_feed)
        return self._results(wanted, feed, run_options)

    def borrow(self) -> Execution:
        """An execution for one run, whose outputs are in its own memory: one per running thread."""
        try:
            return self._idle.pop()  # `pop` and `append` are atomic
        except IndexError:
            return self.new_execution()

    def give_back(self, execution: Execution) -> None:
        """Return a borrowed execution, for other runs."""
        self._idle.append(execution)

    def _results(self, wanted: Sequence[str], feed: Mapping[str, Any], run_options: RunOptions | None) -> list[Any]:
        if self._by_ranks is not None:
            return self.for_inputs(feed)._results(wanted, feed, run_options)
        execution = self.borrow()
        try:
            with run_by(run_options, execution):
                results = execution.run(feed)
        except OnertError as error:
            raise FailedRun(str(error)) from error
        finally:
            self.give_back(execution)
        return [self.taken(name, results[name]) for name in wanted]

    def require_outputs(self, names: Sequence[str] | None) -> Sequence[str]:
        """The names of the requested outputs, or of all. Raises InvalidArgument if one is unknown."""
        if not names:
            return self._all_outputs
        wanted = list(names)
        unknown = [name for name in wanted if name not in self._outputs]
        if unknown:
            raise InvalidArgument(f"there is no output {unknown[0]!r}, expected one of {', '.join(self._outputs)}")
        return wanted

    def _fed(self, input_feed: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(input_feed, Mapping):
            raise ArgumentError(
                f"run is given a {type(input_feed).__name__} as inputs, expected a dictionary of arrays by name"
            )
        missing = [name for name in self._inputs if name not in input_feed]
        if missing:
            raise ArgumentError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        return {name: self.given(name, value) for name, value in input_feed.items()}

    def _plain_type(self, end: ValueDeclaration) -> _Plain | None:
        """The entry of `_plain` for an input; None if its arrays are converted."""
        type_ = end.type
        if type_ is None or type_.kind != "tensor" or type_.shape is None or end.name in self._interface.columns:
            return None
        if type_.dtype is None or (type_.dtype.is_handle and type_.dtype is not DType.STRING):
            return None
        shape = type_.shape
        axes = [axis for axis, size in enumerate(shape) if isinstance(size, int)]
        pick: Callable[[Any], Any] = itemgetter(*axes) if axes else len
        return type_.dtype.numpy, len(shape), pick, pick(shape)

    def _is_plain(self, feed: Mapping[str, Any]) -> bool:
        """Whether these are all inputs, each an array that needs no conversion: faster than `_fed`."""
        if type(feed) is not dict or len(feed) != len(self._inputs):
            return False
        return all(map(_fits, feed.values(), map(self._plain.get, feed)))

    def given(self, name: str, value: Any) -> Any:
        """An input as an execution accepts it. Raises ArgumentError if its element type or shape is wrong."""
        if _fits(value, self._plain.get(name)):
            return value
        if _fits(value, self._texts.get(name)):
            return encoded(value)
        if name not in self._inputs:
            raise InvalidArgument(f"there is no input {name!r}, expected one of {', '.join(self._inputs)}")
        type_ = self._inputs[name].type
        columns = self._interface.columns.get(name)
        if type_ is not None and type_.kind == "map" and columns is not None:
            return row(value.content if isinstance(value, OrtValue) else value, columns, type_)
        dtype = DType.FLOAT32 if type_ is None or type_.dtype is None else type_.dtype
        found = given(value, type_, dtype)
        if type_ is not None and type_.kind == "tensor":
            if found.dtype != dtype.numpy:
                raise InvalidArgument(f"input {name!r} is given elements of {found.dtype}, expected {dtype.numpy}")
            shape = type_.shape
            fits = shape is None or len(shape) == found.ndim
            same = fits and all(
                not isinstance(d, int) or d == n for d, n in zip(shape or (), found.shape, strict=False)
            )
            if not same:
                raise InvalidArgument(
                    f"input {name!r} is given shape {list(found.shape)}, expected {list(shape or ())}"
                )
        return found

    def taken(self, name: str, array: Array) -> Any:
        """An output as ONNX Runtime returns it: strings as str, sequences as lists, maps as dictionaries."""
        columns = self._interface.columns.get(name)
        if columns is None and not array.dtype.hasobject:
            return array
        type_ = self._outputs[name].type
        if type_ is not None and type_.kind == "sequence" and columns is not None:
            return maps(array, columns)
        return taken(array, type_)

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """Like `run`, with `OrtValue`s as inputs and outputs."""
        return [OrtValue(found) for found in self.run(output_names, input_dict, run_options)]

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs to the caller's memory."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on the bound memory, reading and writing it in place."""
        iobinding.execute(run_options)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Like `run`, in a thread of the session, which then calls `callback(outputs, user_data, error)`.

        The error is a sentence, "" if the run succeeded. Raises ArgumentError if outputs or inputs are wrong.
        """
        wanted, feed = self.require_outputs(output_names), self._fed(input_feed)
        with self._lock:
            if self._threads is None:
                futures = module("concurrent.futures")  # which few sessions need, and which imports much
                self._threads = futures.ThreadPoolExecutor(MOST_AT_A_TIME, thread_name_prefix="onert-session")
            threads = self._threads

        def run() -> None:
            found, error = list[Any](), ""
            try:
                found = self._results(wanted, feed, run_options)
            except RunError as failure:
                error = str(failure)
            callback(found, user_data, error)

        threads.submit(run)

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, on the clock of `time.monotonic_ns`; 0 if it is disabled."""
        return self._began

    def end_profiling(self) -> str:
        """The file with the trace of all runs so far. Raises ArgumentError if profiling is not enabled."""
        if self._trace is None:
            raise ArgumentError("the session was created without enable_profiling")
        with self._lock:
            idle, self._idle = self._idle, []
        for execution in idle:
            execution.close()
        return self._trace


_Plain = tuple[np.dtype[Any], int, Callable[[tuple[int, ...]], Any], Any]
"""The element type and the rank of an input, a function that picks the fixed sizes of a shape, and these."""


def _fits(array: object, expected: _Plain | None) -> bool:
    """Whether a value is an array that needs no conversion for an input."""
    if expected is None or type(array) is not np.ndarray:
        return False
    dtype, rank, pick, fixed = expected
    shape = array.shape
    return bool(array.dtype == dtype and len(shape) == rank and pick(shape) == fixed)
