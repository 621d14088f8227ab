"""Whole rows in order."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, I64, Kernel, Val, Var, View
from onert_llvm.kernels.arithmetic.expression import Kind

from .ranking import Ranking, greater

_RUN = 128
"""The most elements of a run that is ranked: comparing each with all takes less time than merging that often."""

_Places = tuple[View, View]
"""Values and their positions."""


@frozen
class Sorted(Value):
    """`values[row]` and `places[row]`: all elements of x[row, :width] in the order of `Greatest`, and their positions.

    Short rows are ranked. Of longer ones, runs of up to 128 elements are ranked and then merged, twice as long each
    time, from the results into `more_values` and `more_places`, which have the same sizes, or back; `levels` is how
    often a run of one element must double to hold the row. Work tiles are rows.
    """

    kind: Kind
    wide: bool
    least: bool

    slots = ("x", "values", "places", "more_values", "more_places", "width", "levels")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory, place = self.kind.memory, I64 if self.wide else I32
        width, levels = task.i64("width"), task.i64("levels")
        stored = (("values", memory), ("places", place))
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", memory, width)[row].address, memory, 1)
            results, others = (
                [task.view(more + name, element, width)[row].address for name, element in stored]
                for more in ("", "more_")
            )
            ranking = Ranking(self.kind, self.least, arranged=True)
            few = width <= ranking.most(k)
            run = min(_RUN, ranking.most(k))
            length = k.var(few.select(width, k.index(run)))
            merges = few.select(k.index(0), levels - (run.bit_length() - 1))
            odd = (merges & 1).eq(1)
            sources, targets = (
                [k.var(odd.select(other, one)) for one, other in zip(*sides, strict=True)]
                for sides in ((results, others), (others, results))
            )

            def views(of: list[Var]) -> _Places:
                values, places = of
                return k.view(values.get(), memory, 1), k.view(places.get(), place, 1)

            with k.loop(width, step=length.get()) as first:
                values, places = (view.after(first) for view in views(sources))
                count = (width - first).min(length.get())
                ranking.order(k, lambda i: (x[first + i].load(), first + i), count, values, places)
            with k.loop(merges):
                self._merge(k, views(sources), views(targets), length.get(), width)
                length.set(length.get() * 2)
                for source, target in zip(sources, targets, strict=True):
                    merged = target.get()
                    target.set(source.get())
                    source.set(merged)

    def _merge(self, k: Kernel, runs: _Places, merged: _Places, length: Val, width: Val) -> None:
        """Merge each two neighbouring runs of this length. Between equal elements, that of the first run goes first.

        Each step needs the one before, so merging at both ends at a time takes half as long.
        """
        with k.loop(width, step=length * 2) as first:
            middle, end = (first + length).min(width), (first + length * 2).min(width)
            half = (end - first) // 2
            left, right, last_left, last_right = map(k.var, (first, middle, middle - 1, end - 1))

            def least(at: Val) -> None:
                i, j = left.get(), right.get()
                is_right = (self._precedes(runs, i.min(width - 1), j.min(width - 1)) | (i >= middle)) & (j < end)
                _move(runs, is_right.select(j, i), merged, at)
                left.set(is_right.select(i, i + 1))
                right.set(is_right.select(j + 1, j))

            with k.loop(half) as step:
                least(first + step)
                i, j = last_left.get(), last_right.get()
                is_left = (self._precedes(runs, i.max(0), j) | (j < middle)) & (i >= first)
                _move(runs, is_left.select(i, j), merged, end - 1 - step)
                last_left.set(is_left.select(i - 1, i))
                last_right.set(is_left.select(j, j - 1))
            with k.loop(end - half, first + half) as at:
                least(at)

    def _precedes(self, runs: _Places, i: Val, j: Val) -> Val:
        """Whether element j precedes element i regardless of position."""
        return greater(self.kind, self.least, runs[0][j].load(), runs[0][i].load())


def _move(runs: _Places, taken: Val, merged: _Places, at: Val) -> None:
    for source, target in zip(runs, merged, strict=True):
        target[at].store(source[taken].load())
