"""The time that the steps of cells take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter_ns

from attrs import define

from onert.backend import Tensors
from onert.compiler.report.tables import Table
from onert.exec.exclusive import Serial
from onert.exec.observers import Observer
from onert.exec.observers.observer import Work
from onert.flow.compiled import Compiled, Step

from .listing import variant


@define
class _Total:
    work: Work
    nanoseconds: int = 0


class Profile(Observer):
    """Adds up the time of the instances of a cell, by pieces: the steps that run as one."""

    def __init__(self) -> None:
        self._runs = 0
        self._nanoseconds = 0
        self._totals: dict[tuple[int, ...], _Total] = {}
        self._turns = Serial()

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        if work.routine.subgraph.operations:
            self._turns(partial(self._add, work, end - start))

    def _add(self, work: Work, nanoseconds: int) -> None:
        self._totals.setdefault(work.operations, _Total(work)).nanoseconds += nanoseconds

    def timed(self, compute: Callable[[], object]) -> Callable[[], object]:
        """The computation, with its total time measured too."""

        def run() -> None:
            start = perf_counter_ns()
            compute()
            self._turns(partial(self._ran, perf_counter_ns() - start))

        return run

    def _ran(self, nanoseconds: int) -> None:
        self._runs += 1
        self._nanoseconds += nanoseconds

    def report(self, cell: Compiled) -> str:
        """A table of the pieces in the order in which they run.

        The columns are the share of the total time, the cumulative share, the mean time in microseconds, 10^9
        multiplications and additions per second, kernel and variant, the task, and the step with its recipe. Time
        outside of pieces is listed as entry and exit.
        """
        rows = tuple(self._rows(cell)) if self._runs else ()
        runs = f"{self._runs} run{'' if self._runs == 1 else 's'}"
        table = Table(("percent", "accum %", "time us", "gflops", "kernel", "t", "step"), rows)
        return f"Profile of {cell.name}, {runs} with {cell.program.num_threads} threads\n{table}"

    def _rows(self, cell: Compiled) -> Iterator[tuple[str, ...]]:
        steps = {step.place: step for step in cell.steps}
        whole = max(self._nanoseconds, 1)
        sofar = flops = 0
        for total in sorted(self._totals.values(), key=lambda t: (t.work.step, t.work.operations)):
            operations = [total.work.routine.subgraph.operations[at] for at in total.work.operations]
            found = [steps[place] for place in dict.fromkeys(o.location for o in operations) if place in steps]
            if not found:
                continue
            sofar += total.nanoseconds
            flops += total.work.flops
            yield (*self._times(total.nanoseconds, sofar / whole, total.work.flops), *_described(found))
        rest = max(self._nanoseconds - sofar, 0)
        yield (*self._times(rest, (sofar + rest) / whole, 0), "", "", "Entry & Exit")
        yield (*self._times(self._nanoseconds, 1.0, flops), "", "", "TOTAL")

    def _times(self, nanoseconds: int, sofar: float, flops: int) -> tuple[str, ...]:
        mean = nanoseconds / self._runs
        return (
            f"{nanoseconds / max(self._nanoseconds, 1):.2%}",
            f"{sofar:.2%}",
            f"{mean / 1e3:.3f}",
            f"{flops / mean:.3f}" if flops and mean else "",
        )


def _described(steps: Sequence[Step]) -> tuple[str, str, str]:
    """The kernels of a piece, its task, and its operations with their recipes."""
    kernels = " + ".join(f"{step.kernel}[{variant(step.types, step.backends)}]" for step in steps)
    text = "; ".join(f"{step.operation} {step.recipe}".rstrip() for step in steps)
    return kernels, str(steps[0].task or ""), text
