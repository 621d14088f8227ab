"""A device that runs only when the test lets it, and networks that compile quickly."""

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
    """The elementwise square of a vector of `width` elements."""
    b = Builder("squares")
    x = b.input(TensorType(DType.FLOAT32, (width,)), name)
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, x)]),), "squares")


def products(width: int, factor: float = 2.0) -> Package:
    """A vector of `width` elements times a constant vector."""
    b = Builder("products")
    x = b.input(TensorType(DType.FLOAT32, (width,)), "x")
    weights = b.constant(np.full(width, factor, np.float32))
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, weights)]),), "products")


class GatedDevice(DeviceManager):
    """Runs `outputs` in place of each function, on a worker thread, once the test has opened the gate.

    `outputs` computes a function's results from its inputs; if it raises, the run fails. `began` records the runs that
    have started. Used as a context manager, the device opens the gate at the end, so that a server waiting for runs
    does not hang after a failed test.
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
        """The names of functions, in the order in which their runs start."""
        self.programs: dict[str, CompiledFunction] = {}
        self.evicted: list[str] = []
        self.refuses: str | None = None
        """The name of a function that the device fails to load."""
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
        """Wait for the next run to start and return its function's name."""
        return self.began.get(timeout=PATIENCE)

    def stop(self) -> None:
        self.gate.set()
        self.worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()


class Answers:
    """A callback that collects the results of finished runs."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Result] = SimpleQueue()

    def __call__(self, result: Result) -> None:
        self._queue.put(result)

    def next(self) -> Result:
        """Wait for the next result and return it."""
        return self._queue.get(timeout=PATIENCE)

    @property
    def is_empty(self) -> bool:
        return self._queue.empty()
