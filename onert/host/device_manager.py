"""`DeviceManager`: the interface that each kind of device implements."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from threading import Lock
from typing import Any, ClassVar

from attrs import frozen

from onert.backend import Program
from onert.compiler import Options
from onert.ir import Array, Effect, Package

from .device_config import DeviceConfig
from .device_info import DeviceInfo
from .errors import NetworkExistsError, NetworkNotFoundError, OutOfDeviceMemoryError
from .line import Call, Made, SharedQueue
from .memory import program_memory
from .trace import HostTrace

Result = Sequence[Array] | BaseException
"""The result of a run: the outputs in order, which the receiver owns, or an error."""
Done = Callable[[Result], None]


@frozen(eq=False)
class CompiledFunction:
    """A sub-network compiled for a device: the program, and the package and options it was compiled from."""

    name: str
    package: Package
    options: Options
    program: Program

    @property
    def nbytes(self) -> int:
        """The bytes of device memory that it needs."""
        return program_memory(self.program).total

    @property
    def stateful(self) -> bool:
        """Whether runs keep state for later runs."""
        return is_stateful(self.program)

    @property
    def is_open(self) -> bool:
        """Whether an input has a dynamic shape."""
        return None in (size for info in self.program.inputs for size in info.open_shape)


def is_steady(program: Program) -> bool:
    """Whether all runs take about the same time: no size or loop depends on elements, and no size on the caller."""
    sizes = (size for info in program.inputs for size in info.shape)
    return None not in sizes and not any(routine.metered for routine in program.routines)


def is_stateful(program: Program) -> bool:
    """Whether runs of a program keep state for later runs."""
    graphs = [routine.subgraph for routine in program.routines]
    return any(graph.state or any(o.op.effect is not Effect.NONE for o in graph.operations) for graph in graphs)


def machine_memory() -> int:
    """The bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class DeviceManager:
    """A device of a host. It holds compiled functions by name and runs them, by default one at a time.

    Its methods may be called by any thread. Each kind of device is a subclass that implements `_load`, `_unload`,
    `load`, `run_function` and `stop`. Memory accounting is done here.
    """

    kind: ClassVar[str]

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        self.config = config
        self.name = config.name
        self.threads = threads
        """The number of threads that a run may use."""
        self.traces: list[HostTrace] = []
        """The traces that record runs; always the same list object."""
        self._lock = Lock()
        self._taken: dict[str, int] = {}
        self._sessions: dict[tuple[str, int], int] = {}
        """The bytes of each session (its state and execution memory), by function and session number."""

    # ---- what it is

    def init(self) -> None:
        """Prepare to load functions. Called once, before all other methods."""

    @property
    def maximum_memory(self) -> int:
        """The total bytes that functions may use."""
        return machine_memory() if self.config.memory is None else self.config.memory

    @property
    def available_memory(self) -> int:
        """The bytes that are free."""
        with self._lock:
            return self._left()

    def _left(self) -> int:
        return self.maximum_memory - sum(self._taken.values()) - sum(self._sessions.values())

    def is_memory_available(self, nbytes: int) -> bool:
        """Whether a function of `nbytes` bytes would fit now."""
        return nbytes <= self.available_memory

    @property
    def info(self) -> DeviceInfo:
        """The device as the partitioner sees it."""
        speeds: dict[str, Any] = dict(self.config.speeds)
        speeds.setdefault("peak_compute", DeviceInfo(0).peak_compute * self.threads)
        return DeviceInfo(
            self.available_memory,
            self.config.backend,
            self.config.supported,
            self.config.unsupported,
            **speeds,
        )

    def options(self, options: Options) -> Options:
        """The options for compiling a function for this device."""
        return options.choose(
            backends=(self.config.backend,),
            num_threads=self.threads,
            extra={**options.extra, **self.config.parameters},
        )

    # ---- functions

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that it holds."""
        with self._lock:
            return tuple(self._taken)

    def add_network(self, functions: Sequence[CompiledFunction]) -> None:
        """Load functions: either all of them, or none if one fails. Raises NetworkExistsError if a name is taken, and
        OutOfDeviceMemoryError if there is not enough memory."""
        added: list[CompiledFunction] = []
        try:
            for function in functions:
                self._take(function)
                added.append(function)
                self._load(function)
        except BaseException:
            for function in added:
                self.evict_network(function.name)
            raise

    def _take(self, function: CompiledFunction) -> None:
        nbytes = function.nbytes
        with self._lock:
            if function.name in self._taken:
                raise NetworkExistsError(f"device {self.name!r} already has a function called {function.name!r}")
            left = self._left()
            if nbytes > left:
                raise OutOfDeviceMemoryError(
                    f"device {self.name!r} does not have enough memory for {function.name!r}: it needs {nbytes} bytes, "
                    f"{left} of {self.maximum_memory} are free"
                )
            self._taken[function.name] = nbytes

    def take_session(self, name: str, session: int, nbytes: int) -> None:
        """Reserve memory for a session. Raises OutOfDeviceMemoryError if there is not enough."""
        with self._lock:
            left = self._left()
            if nbytes > left:
                raise OutOfDeviceMemoryError(
                    f"device {self.name!r} does not have enough memory for another sequence of {name!r}: it needs "
                    f"{nbytes} bytes, {left} of {self.maximum_memory} are free"
                )
            self._sessions[name, session] = nbytes

    def free_session(self, name: str, session: int) -> None:
        """Release the memory reserved for a session."""
        with self._lock:
            self._sessions.pop((name, session), None)

    def evict_network(self, name: str) -> None:
        """Unload a function after a run in progress. Raises NetworkNotFoundError if there is none of this name."""
        with self._lock:
            known = name in self._taken
        if not known:
            raise self._unknown(name)
        self._unload(name)
        with self._lock:
            self._taken.pop(name, None)
            for key in [key for key in self._sessions if key[0] == name]:
                del self._sessions[key]

    def _unknown(self, name: str) -> NetworkNotFoundError:
        return NetworkNotFoundError(f"device {self.name!r} has no function called {name!r}")

    def _load(self, function: CompiledFunction) -> None:
        raise NotImplementedError

    def _unload(self, name: str) -> None:
        """Unload a function, which may not have been loaded."""
        raise NotImplementedError

    # ---- runs

    @property
    def load(self) -> int:
        """The number of active and waiting runs."""
        raise NotImplementedError

    def run_function(
        self, name: str, inputs: Sequence[Array], done: Done, priority: int = 0, session: int | None = None
    ) -> int:
        """Queue a run of a function. Lower priority values run first, then the order of the calls counts.

        State is reset before the run, unless it is that of a `session`, which keeps it for its next run. `done` is
        called once, by another thread, with the result. Inputs must not change until then. Returns the number of the
        run, starting at 1. Raises NetworkNotFoundError if the device does not have the function, and
        RequestRefusedError if it was stopped; `done` is not called in these cases.
        """
        raise NotImplementedError

    def serve(self, line: SharedQueue, at: int) -> bool:
        """As device `at` of a line, run calls that wait at the line's other devices whenever this one is idle. Returns
        False if the device does not support that; it then gets no offers."""
        return False

    def offer(self, line: SharedQueue, at: int, priority: int, made: Made) -> int:
        """Queue a call that the line's other devices may take first. Returns the number of the call. Raises
        RequestRefusedError if the device was stopped."""
        raise NotImplementedError

    def call(self, name: str, inputs: Sequence[Array]) -> Call:
        """A call that runs a function, for `offer`. Errors are raised by the call."""
        raise NotImplementedError

    def run_each(
        self, name: str, batch: Sequence[Sequence[Array]], done: Callable[[Any], None], priority: int = 0
    ) -> None:
        """Run a function on each of several inputs, if possible without runs of other functions in between.

        `done` is called once, with the results in order. Raises the same errors as `run_function`.
        """
        results: dict[int, Result] = {}

        def one(at: int, result: Result) -> None:
            with self._lock:
                results[at] = result
                is_last = len(results) == len(batch)
            if is_last:
                done([results[each] for each in range(len(batch))])

        for at, inputs in enumerate(batch):
            try:
                self.run_function(name, inputs, partial(one, at), priority)
            except Exception as error:
                if at == 0:
                    raise
                one(at, error)

    def end_session(self, name: str, session: int) -> None:
        """Drop the state of a session, if there is any."""

    def run_here(self, name: str, inputs: Sequence[Array], session: int | None = None) -> Result | None:
        """Run a function on the calling thread. None if the device is busy or does not accept foreign threads."""
        return None

    def last_run(self, name: str, inputs: Sequence[Array]) -> float:
        """Seconds of a function's last run. Infinite if that is no estimate for a run on `inputs`, or if the device
        does not accept foreign threads."""
        return inf

    def stop(self) -> None:
        """Finish the current run, reject waiting ones, and accept no more. May be called repeatedly."""
        raise NotImplementedError
