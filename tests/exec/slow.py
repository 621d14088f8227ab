"""A backend whose kernels wait, meet, or fail on demand, and graphs of equal branches for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Barrier
from typing import Any

from attrs import field, frozen
from compiler.toy import Draft, ToyBackend, ToyScale, branched
from patience import PATIENCE

from onert.backend import Kernel, Program, Sequence, Settings, Tensors
from onert.compiler import Options, compile
from onert.ir import Context, ExecutionError, Package, Subgraph, Subgraphs


@frozen(eq=False)
class SlowKernel:
    """Calls a function before the sequence runs."""

    inner: Kernel
    sequence: Sequence
    before: Callable[[Sequence], None]

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        run = self.inner.bind(tensors, context)

        def slowly() -> None:
            self.before(self.sequence)
            run()

        return slowly


class SlowBackend(ToyBackend):
    """Calls `before` with each sequence that is about to run; every operation is a separate step."""

    def __init__(self, before: Callable[[Sequence], None]) -> None:
        super().__init__("slow", [ToyScale], single=True)
        self.before = before

    def generate(self, sequence: Sequence, settings: Settings) -> SlowKernel:
        return SlowKernel(super().generate(sequence, settings), sequence, self.before)


def sleeping(seconds: float) -> Callable[[Sequence], None]:
    """Waits with the interpreter lock released, as native kernels do."""
    return lambda sequence: time.sleep(seconds)


class Clock:
    """Replaces the module `time` where the code under test reads it; kernels can advance it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def perf_counter_ns(self) -> int:
        return round(self.now * 1e9)

    def taking(self, seconds: float) -> Callable[[Sequence], None]:
        """A kernel that takes this long by this clock."""

        def take(sequence: Sequence) -> None:
            self.now += seconds

        return take


@frozen
class Meeting:
    """Blocks kernels until the expected number of them have started: proof that they run concurrently."""

    parties: int
    barrier: Barrier = field()

    @barrier.default
    def _make(self) -> Barrier:
        return Barrier(self.parties, timeout=PATIENCE)

    def __call__(self, sequence: Sequence) -> None:
        self.barrier.wait()


def failing(sequence: Sequence) -> None:
    """Fails if the factor of a scale is 13."""
    if any(getattr(operation.op, "factor", None) == 13.0 for operation in sequence.body):
        raise ExecutionError("thirteen")


def branches(count: int, length: int = 1, factor: float = 2.0) -> Subgraph:
    """`count` independent chains of `length` scales of one input, added up."""
    d = Draft()
    return branched(d, d.input(4, name="x"), count, length, factor)


def chain(*factors: float, width: int = 4) -> Subgraph:
    """A chain of scales."""
    d = Draft()
    x = d.input(width, name="x")
    for factor in factors:
        x = d.op(ToyScale(factor), x)
    return d.graph(x)


def compiled(
    graph: Subgraph, before: Callable[[Sequence], None], executor: str = "Linear", threads: int = 2, **options: Any
) -> Program:
    """The program of a graph of scales and additions on a backend that calls `before` ahead of each scale."""
    chosen = Options(executor=executor, num_threads=threads, optimize=False, **options)
    return compile(Package((Subgraphs((graph,)),), "slow"), chosen, [SlowBackend(before), ToyBackend("builtin")])
