"""A device that waits for the test, and networks that are quick to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event
from typing import Any, Self

import numpy as np
from patience import PATIENCE

from onert.host import CompiledFunction, DeviceConfig, DeviceManager, HostConfig
from onert.host.device_manager import Done, Result
from onert.host.devices.worker import Worker
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

X = np.float32([1, 2, 3])
SQUARES = [1.0, 4.0, 9.0]
ONE = HostConfig(max_active_requests=1, max_queue_size=1)


def output(outputs: dict[str, Any]) -> list[float]:
    """The elements of the only output."""
    (array,) = outputs.values()
    found: list[float] = array.tolist()
    return found


def squares(width: int = 3, name: str = "x") -> Package:
    """x squared, of so many numbers."""
    b = Builder("squares")
    x = b.input(TensorType(DType.FLOAT32, (width,)), name)
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, x)]),), "squares")


def products(width: int, factor: float = 2.0) -> Package:
    """x times a constant of so many numbers."""
    b = Builder("products")
    x = b.input(TensorType(DType.FLOAT32, (width,)), "x")
    weights = b.constant(np.full(width, factor, np.float32))
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, weights)]),), "products")


class GatedDevice(DeviceManager):
    """Runs what the test gives for a function, on a thread, when the test opens the gate: it says what began.

    `outputs` makes a function's results of its inputs; one that raises fails the run. As a context, the gate is open at
    its end: what waits for runs to end, such as a server, must not wait for a test that failed.
    """

    kind = "gated"

    def __init__(
        self,
        name: str = "gated0",
        outputs: Callable[[str, Sequence[Array]], Sequence[Array]] = lambda function, inputs: list(inputs),
        *,
        is_open: bool = False,
        memory: int | None = None,
    ) -> None:
        super().__init__(DeviceConfig(name=name, kind=self.kind, memory=memory, backend="reference"), 1)
        self.outputs = outputs
        self.gate = Event()
        if is_open:
            self.gate.set()
        self.began: SimpleQueue[str] = SimpleQueue()
        """The names of functions, as they begin."""
        self.programs: dict[str, CompiledFunction] = {}
        self.evicted: list[str] = []
        self.refuses: str | None = None
        """The name of a function that cannot be loaded."""
        self._worker: Worker | None = None

    def init(self) -> None:
        self._worker = Worker(self.name, lambda: None)

    @property
    def worker(self) -> Worker:
        assert self._worker is not None
        return self._worker

    def _load(self, function: CompiledFunction) -> None:
        if function.name == self.refuses:
            raise RuntimeError("refused")
        self.programs[function.name] = function

    def _unload(self, name: str) -> None:
        self.programs.pop(name, None)
        self.evicted.append(name)

    @property
    def load(self) -> int:
        return self.worker.load

    def run_function(
        self, name: str, inputs: Sequence[Array], done: Done, priority: int = 0, session: int | None = None
    ) -> int:
        if name not in self.programs:
            raise self._unknown(name)

        def run() -> Sequence[Array]:
            self.began.put(name)
            assert self.gate.wait(PATIENCE)
            return self.outputs(name, inputs)

        return self.worker.submit(priority, run, done)

    def begun(self) -> str:
        """The name of the next function that begins, once it does."""
        return self.began.get(timeout=PATIENCE)

    def stop(self) -> None:
        self.gate.set()
        self.worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()


class Answers:
    """Collects what a device or a host says when a run is over."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Result] = SimpleQueue()

    def __call__(self, result: Result) -> None:
        self._queue.put(result)

    def next(self) -> Result:
        """The next result."""
        return self._queue.get(timeout=PATIENCE)

    @property
    def is_empty(self) -> bool:
        return self._queue.empty()
