"""Ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Type, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind

RECORD = 4
"""Elements of a node, with 32 or 64 bits: its feature, its number, the position of its first child, and `EXTRA`."""
FEATURE, NUMBER, CHILD, EXTRA = range(RECORD)
"""`EXTRA` of a leaf is its number or its only vote; of another node the bit that flips the feature's sign, or 0."""
ROWS = 16
"""Rows that descend one tree in parallel: each step waits for the previous one, and for memory."""
TREES = 8
"""Trees that a single row descends in parallel."""

_STARTS = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}
"""The initial value that votes are joined to."""


@frozen
class WalkTrees(Value):
    """`out[row, target]` from the votes of the leaves that a row of `x` reaches, one per tree. A work tile is `ROWS`
    rows.

    `nodes` are records. A node leads to its first child if the feature is at most the number, else to the second, which
    follows it; with `turned` the feature's sign is flipped first if the node says so. A leaf leads to itself: its
    number is NaN, so nothing is at most that, and its second child is its own position. So no step branches, and all
    paths of a tree are as long as its longest, `steps`; `together` has the most steps of each `TREES` trees. `roots`
    and children are counted in elements.

    Votes are accumulated in float64 in `sums[row, target]`: their sum, minimum ("min") or maximum ("max"), according to
    `join`; a target without votes has 0. With `mean` sums are divided by the number of trees. The votes of leaf n are
    those from `starts[n]` to the next; with `one` there is one target, and each leaf stores its only vote.

    Numbers and votes are float32, float64 if `wide`; `out` is float64 if `wide_out`. Integers become float32.
    """

    kind: Kind
    width: int
    turned: bool = False
    one: bool = False
    join: str = "sum"
    mean: bool = False
    wide: bool = False
    wide_out: bool = False

    @property
    def word(self) -> Type:
        """The type of a node's elements, as integers."""
        return I64 if self.wide else I32

    @property
    def real(self) -> Type:
        """The type of numbers and votes."""
        return F64 if self.wide else F32

    @property
    def slots(self) -> tuple[str, ...]:
        votes = () if self.one else ("starts", "targets", "weights")
        parts = ("nodes", "roots", "steps", "together", *votes)
        return ("x", "out", "sums", *parts, "rows", "outputs", "trees")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rows = task.i64("rows")
        with k.loop(end, begin) as block:
            first = block * ROWS
            last = (first + ROWS).min(rows)
            with k.loop(last, first) as row:
                self._clear(k, task, row)
            with k.either(last - first >= ROWS) as (whole, rest):
                with whole, k.loop(task.i64("trees")) as tree:
                    self._many_rows(k, task, first, tree)
                with rest, k.loop(last, first) as row:
                    self._many_trees(k, task, row)
            with k.loop(last, first) as row:
                self._finish(k, task, row)

    def _sums(self, task: Task, row: Val) -> View:
        return task.view("sums", F64, 1 if self.one else task.i64("outputs"), 1)[row]

    def _targets(self, task: Task) -> Val | int:
        return 1 if self.one else task.i64("outputs")

    def _clear(self, k: Kernel, task: Task, row: Val) -> None:
        with k.loop(self._targets(task)) as target:
            self._sums(task, row)[target].store(k.const(F64, _STARTS[self.join]))

    def _finish(self, k: Kernel, task: Task, row: Val) -> None:
        result = F64 if self.wide_out else F32
        out = task.view("out", result, self._targets(task), 1)[row]
        with k.loop(self._targets(task)) as target:
            total = self._sums(task, row)[target].load()
            if self.mean:
                total = total / task.i64("trees").cast(F64)
            if self.join != "sum":
                total = total.eq(_STARTS[self.join]).select(0.0, total)
            out[target].store(total.cast(result))

    def _x(self, task: Task, row: Val) -> View:
        return task.view("x", self.kind.memory, self.width, 1)[row]

    def _many_rows(self, k: Kernel, task: Task, first: Val, tree: Val) -> None:
        """`ROWS` rows starting at `first` descend one tree."""
        root = task.view("roots", I32, 1)[tree].load().cast(I64)
        xs = [self._x(task, first).after(i * self.width) for i in range(ROWS)]
        steps = task.view("steps", I32, 1)[tree].load().cast(I64)
        for i, at in enumerate(self._walked(k, task, xs, [root] * ROWS, steps)):
            self._vote(k, task, at, self._sums(task, first).after(i) if self.one else self._sums(task, first + i))

    def _many_trees(self, k: Kernel, task: Task, row: Val) -> None:
        """One row descends all trees, `TREES` at a time."""
        trees, roots = task.i64("trees"), task.view("roots", I32, 1)
        x, sums = self._x(task, row), self._sums(task, row)
        whole = trees - trees % TREES
        with k.loop(whole, step=TREES) as tree:
            steps = task.view("together", I32, 1)[tree // TREES].load().cast(I64)
            starts = [roots[tree + i].load().cast(I64) for i in range(TREES)]
            for at in self._walked(k, task, [x] * TREES, starts, steps):
                self._vote(k, task, at, sums)
        with k.loop(trees, whole) as tree:
            steps = task.view("steps", I32, 1)[tree].load().cast(I64)
            (at,) = self._walked(k, task, [x], [roots[tree].load().cast(I64)], steps)
            self._vote(k, task, at, sums)

    def _walked(self, k: Kernel, task: Task, xs: Sequence[View], roots: Sequence[Val], steps: Val) -> list[Val]:
        """The leaves that rows reach from their roots after `steps` steps."""
        places = [k.var(root) for root in roots]
        with k.loop(steps):
            for x, at in zip(xs, places, strict=True):
                at.set(self._step(task, x, at.get()))
        return [at.get() for at in places]

    def _step(self, task: Task, x: View, here: Val) -> Val:
        node = task.view("nodes", self.word, 1)[here]
        value = x.after(node.after(FEATURE).load().cast(I64)).load()
        value = (value if self.kind.is_float else value.cast(F32)).cast(self.real)
        if self.turned:
            value = (value.bits(self.word) ^ node.after(EXTRA).load()).bits(self.real)
        behind = (value <= node.after(NUMBER).load().bits(self.real)).select(here.like(0), here.like(RECORD))
        return node.after(CHILD).load().cast(I64) + behind

    def _vote(self, k: Kernel, task: Task, at: Val, sums: View) -> None:
        extra = task.view("nodes", self.word, 1)[at].after(EXTRA).load()
        if self.one:
            self._join(sums[0], extra.bits(self.real).cast(F64))
            return
        starts, leaf = task.view("starts", I64, 1), extra.cast(I64)
        with k.loop(starts[leaf + 1].load(), starts[leaf].load()) as vote:
            place = sums[task.view("targets", I32, 1)[vote].load().cast(I64)]
            self._join(place, task.view("weights", self.real, 1)[vote].load().cast(F64))

    def _join(self, place: View, weight: Val) -> None:
        old = place.load()
        joined = {"sum": old + weight, "min": weight.min(old), "max": weight.max(old)}
        place.store(joined[self.join])
