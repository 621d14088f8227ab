"""A table of the time that each operation takes."""

from __future__ import annotations

from functools import partial

from attrs import define, frozen

from onert.backend import Tensors
from onert.exec.exclusive import Serial
from onert.ir.value import Value

from .observer import Observer, Work


@frozen
class ProfileRow(Value):
    """One piece: how often it ran, its mean time in microseconds, and its share of the time of all pieces.

    `gflops` are 10^9 multiplications and additions per second, `gbytes` 10^9 bytes read and written per second.
    """

    label: str
    backend: str
    runs: int
    microseconds: float
    share: float
    flops: int
    nbytes: int
    gflops: float
    gbytes: float


@define
class _Total:
    work: Work
    runs: int = 0
    nanoseconds: int = 0


class Profile(Observer):
    """Adds up the time of each piece over all runs.

    The time of an operation that runs a subgraph includes that subgraph's. Such operations are left out of the sum from
    which shares are computed.
    """

    def __init__(self) -> None:
        self._totals: dict[tuple[int, tuple[int, ...]], _Total] = {}
        self._turns = Serial()

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        self._turns(partial(self._add, work, end - start))

    def _add(self, work: Work, nanoseconds: int) -> None:
        total = self._totals.setdefault((id(work.routine), work.operations), _Total(work))
        total.runs += 1
        total.nanoseconds += nanoseconds

    @property
    def rows(self) -> tuple[ProfileRow, ...]:
        """A row for each piece, longest time first."""
        whole = sum(t.nanoseconds for t in self._totals.values() if not _calls(t.work)) or 1
        found = []
        for total in sorted(self._totals.values(), key=lambda t: -t.nanoseconds):
            mean = total.nanoseconds / total.runs
            found.append(
                ProfileRow(
                    label=total.work.label,
                    backend=total.work.backend,
                    runs=total.runs,
                    microseconds=mean / 1e3,
                    share=total.nanoseconds / whole,
                    flops=total.work.flops,
                    nbytes=total.work.nbytes,
                    gflops=total.work.flops / mean if mean else 0.0,
                    gbytes=total.work.nbytes / mean if mean else 0.0,
                )
            )
        return tuple(found)


def _calls(work: Work) -> bool:
    """Whether it runs other pieces, whose time is included in its own."""
    return any(work.routine.subgraph.operations[at].op.subgraphs for at in work.operations)
