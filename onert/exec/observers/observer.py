"""The interface of observers."""

from __future__ import annotations

from attrs import frozen

from onert.backend import Program, Routine, Tensors


@frozen(eq=False)
class Work:
    """A piece of a run: operations that a kernel runs as one.

    `nbytes` are the bytes read and written in memory, `flops` the multiplications and additions, both from the types
    known before the run. A piece without work (a reshape in place) is reported too.
    """

    routine: Routine
    step: int
    backend: str
    operations: tuple[int, ...]
    label: str
    flops: int
    nbytes: int


class Observer:
    """Override the methods you need in a subclass and pass an instance to `Execution(program, observers=(...,))`.

    Each method is called by the thread that runs the piece; under the Parallel executor, several threads may call at
    the same time. Tensors may be read but not stored, because their memory is reused. Times are in
    nanoseconds of `time.perf_counter_ns`.
    """

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        """A run of the whole program begins; `tensors` are those of its entry, inputs in place."""

    def begins(self, work: Work, tensors: Tensors) -> None:
        """A piece is about to run."""

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        """A piece has run; its results are available."""

    def run_ends(self, program: Program, start: int, end: int, error: BaseException | None) -> None:
        """The run has ended; `error` is None if it succeeded."""

    def close(self) -> None:
        """The execution is closed."""
