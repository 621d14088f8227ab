"""`DeviceManager`: what a kind of device gives the host."""

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
from .line import Call, Line, Made
from .memory import program_memory
from .trace import HostTrace

Result = Sequence[Array] | BaseException
"""What comes of a run: the outputs in order, the receiver's own, or an error."""
Done = Callable[[Result], None]


@frozen(eq=False)
class CompiledFunction:
    """A sub-network as it was compiled for a device: the program, and what it was made of."""

    name: str
    package: Package
    options: Options
    program: Program

    @property
    def nbytes(self) -> int:
        """What it takes of a device's memory."""
        return program_memory(self.program).total

    @property
    def stateful(self) -> bool:
        """Whether a run leaves something behind for the next one."""
        return is_stateful(self.program)

    @property
    def is_open(self) -> bool:
        """Whether inputs may have several shapes."""
        return None in (size for info in self.program.inputs for size in info.open_shape)


def is_steady(program: Program) -> bool:
    """Whether every run takes about as long: no size and no loop depends on elements, nor a size on the caller."""
    sizes = (size for info in program.inputs for size in info.shape)
    return None not in sizes and not any(routine.metered for routine in program.routines)


def is_stateful(program: Program) -> bool:
    """Whether a run of a program leaves something behind for the next one."""
    graphs = [routine.subgraph for routine in program.routines]
    return any(graph.state or any(o.op.effect is not Effect.NONE for o in graph.operations) for graph in graphs)


def machine_memory() -> int:
    """The bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class DeviceManager:
    """A device of a host: it holds compiled functions by name and runs them, one at a time unless it says otherwise.

    Its methods may be called by any thread. A kind of device is a subclass: it gives `_load`, `_unload`, `run_function`
    and `stop`. Memory is accounted for here.
    """

    kind: ClassVar[str]

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        self.config = config
        self.name = config.name
        self.threads = threads
        """How many threads a run may use."""
        self.traces: list[HostTrace] = []
        """Where runs are recorded; the same list as long as the device is there."""
        self._lock = Lock()
        self._taken: dict[str, int] = {}
        self._sessions: dict[tuple[str, int], int] = {}
        """The bytes of the state of sessions, and of what they run in, by function and number."""

    # ---- what it is

    def init(self) -> None:
        """Get ready to take functions. Called once, before anything else."""

    @property
    def maximum_memory(self) -> int:
        """The bytes that functions may take in all."""
        return machine_memory() if self.config.memory is None else self.config.memory

    @property
    def available_memory(self) -> int:
        """The bytes that are not taken."""
        with self._lock:
            return self._left()

    def _left(self) -> int:
        return self.maximum_memory - sum(self._taken.values()) - sum(self._sessions.values())

    def is_memory_available(self, nbytes: int) -> bool:
        """Whether a function of so many bytes would fit now."""
        return nbytes <= self.available_memory

    @property
    def info(self) -> DeviceInfo:
        """What the partitioner is told."""
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
        """The options by which a function is compiled for this device."""
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
        """Hold functions from now on: all of them, or none where one cannot be.

        NetworkExistsError for a name that is taken, OutOfDeviceMemoryError with the sizes where there is no room.
        """
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
                raise NetworkExistsError(f"device {self.name!r} has a function called {function.name!r} already")
            left = self._left()
            if nbytes > left:
                raise OutOfDeviceMemoryError(
                    f"device {self.name!r} has not enough memory for {function.name!r}: it takes {nbytes} bytes, "
                    f"{left} of {self.maximum_memory} are left"
                )
            self._taken[function.name] = nbytes

    def take_session(self, name: str, session: int, nbytes: int) -> None:
        """Account for a session; OutOfDeviceMemoryError where there is no room."""
        with self._lock:
            left = self._left()
            if nbytes > left:
                raise OutOfDeviceMemoryError(
                    f"device {self.name!r} has not enough memory for another sequence of {name!r}: it takes {nbytes} "
                    f"bytes, {left} of {self.maximum_memory} are left"
                )
            self._sessions[name, session] = nbytes

    def free_session(self, name: str, session: int) -> None:
        """Account for a session no more."""
        with self._lock:
            self._sessions.pop((name, session), None)

    def evict_network(self, name: str) -> None:
        """Hold a function no more; NetworkNotFoundError where there is none of this name. A run of it ends first."""
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
        """Forget a function, which may not have been loaded."""
        raise NotImplementedError

    # ---- runs

    @property
    def load(self) -> int:
        """How many runs are under way or waiting."""
        raise NotImplementedError

    def run_function(
        self, name: str, inputs: Sequence[Array], done: Done, priority: int = 0, session: int | None = None
    ) -> int:
        """Run a function when its turn comes: lower priorities first, then in the order of the calls.

        State starts anew, unless it is that of a `session`, which its next run will find.

        `done` is called once, by another thread, with what comes of it. The number of the run, from 1 on.
        NetworkNotFoundError for a name that the device does not have, RequestRefusedError where it was stopped; `done`
        is not called then. Inputs stay as they are until the run is over.
        """
        raise NotImplementedError

    def serve(self, line: Line, at: int) -> bool:
        """Run what waits before other devices of a line, as its device number `at`, whenever this one has nothing to
        do. False where the device cannot: it is offered nothing then."""
        return False

    def offer(self, line: Line, at: int, priority: int, made: Made) -> int:
        """Make a call when its turn comes, unless another device of the line comes to it first. The number of the call;
        RequestRefusedError where the device was stopped."""
        raise NotImplementedError

    def call(self, name: str, inputs: Sequence[Array]) -> Call:
        """The call that runs a function, for `offer`; errors are those of the call."""
        raise NotImplementedError

    def run_each(
        self, name: str, batch: Sequence[Sequence[Array]], done: Callable[[Any], None], priority: int = 0
    ) -> None:
        """Run a function for each of several inputs, one after the other, and without a run of another in between where
        the device can do that. `done` is called once, with the results in order. Errors as of `run_function`."""
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
        """Forget the state of a session; nothing where there is none."""

    def run_here(self, name: str, inputs: Sequence[Array], session: int | None = None) -> Result | None:
        """Run a function on the calling thread, which the device is lent; None where it is busy, or borrows none."""
        return None

    def last_run(self, name: str, inputs: Sequence[Array]) -> float:
        """Seconds that the last run of a function took; infinite where that tells nothing of the next one, on `inputs`,
        or where the device borrows no threads."""
        return inf

    def stop(self) -> None:
        """End what is running, refuse what waits, and take nothing more. To stop twice does no harm."""
        raise NotImplementedError
