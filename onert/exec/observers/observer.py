"""What an observer is told."""

from __future__ import annotations

from attrs import frozen

from onert.backend import Program, Routine, Tensors


@frozen(eq=False)
class Work:
    """A piece of a run: operations that a kernel runs as one.

    `nbytes` counts what is read and written in memory, `flops` multiplications and additions, both from the types that
    are known before the run. A piece without work (a reshape in place) is reported too.
    """

    routine: Routine
    step: int
    backend: str
    operations: tuple[int, ...]
    label: str
    flops: int
    nbytes: int


class Observer:
    """Subclass it and override what is wanted; give it to `Execution(program, observers=(...,))`.

    Methods are called by the thread that runs the piece, under the Parallel executor by several at a time. Tensors may
    be read but not kept: their memory is used again. Times are in nanoseconds of `time.perf_counter_ns`.
    """

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        """A run of the whole program begins; `tensors` are those of its entry, inputs in place."""

    def begins(self, work: Work, tensors: Tensors) -> None:
        """A piece is about to run."""

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        """A piece has run; its results are there."""

    def run_ends(self, program: Program, start: int, end: int, error: BaseException | None) -> None:
        """The run has ended, with an error where there is one."""

    def close(self) -> None:
        """The execution is closed."""
