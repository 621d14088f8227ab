"""Ensembles of decision trees."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind

LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
"""How a feature compares with a node's number, as a bit of what passes there."""

TOGETHER = 8
"""Trees that are walked side by side: each step waits for the one before, and for memory."""

_PARTS = ("features", "numbers", "codes", "yes", "no", "roots", "starts", "targets", "weights")


@frozen
class WalkTrees(Value):
    """`out[row, target]` from the votes of the leaves that a row of `x` comes to, one in each tree. Tiles are rows.

    At a node feature `features` is compared with `numbers`; where the bit of what it is lies in `codes` node `yes`
    follows, else `no`. Numbers below 0 are leaves: -1 - n. No path is longer than `depth`. The votes of a leaf, from
    `starts` to the next, are gathered in float64, `sums[row, target]`: their sum, the least ("min") or the greatest
    ("max"), as `join` says; a target without votes has 0. With `mean` sums are divided by the number of trees.
    """

    kind: Kind
    join: str = "sum"
    mean: bool = False

    name = "walk_trees"
    layout = TaskLayout(("x", "out", "sums", *_PARTS, "width", "outputs", "trees", "depth"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        outputs, trees = task.i64("outputs"), task.i64("trees")
        start = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}[self.join]
        with k.loop(end, begin) as row:
            x = task.view("x", self.kind.memory, task.i64("width"), 1)[row]
            sums = k.view(task.view("sums", F64, outputs, 1)[row].address, F64, 1)
            with k.loop(outputs) as target:
                sums[target].store(k.const(F64, start))
            whole = trees - trees % TOGETHER
            with k.loop(whole, step=TOGETHER) as tree:
                for leaf in self._leaves(k, task, x, tree, TOGETHER):
                    self._votes(k, task, leaf, sums)
            with k.loop(trees, whole) as tree:
                self._votes(k, task, self._leaves(k, task, x, tree, 1)[0], sums)
            out = task.view("out", F32, outputs, 1)[row]
            with k.loop(outputs) as target:
                total = sums[target].load()
                if self.mean:
                    total = total / trees.cast(F64)
                if self.join != "sum":
                    total = total.eq(start).select(0.0, total)
                out.after(target).store(total.cast(F32))

    def _leaves(self, k: Kernel, task: Task, x: View, first: Val, count: int) -> list[Val]:
        """The leaves of so many trees that a row comes to."""

        def part(name: str, at: Val) -> Val:
            return task.view(name, F32 if name == "numbers" else I32, 1)[at].load()

        def step(here: Val) -> Val:
            node = here.max(0)
            value = x.after(part("features", node).cast(I64)).load()
            value = value if self.kind.is_float else value.cast(F32)
            number = part("numbers", node)
            above = (value > number).select(k.const(I32, GREATER), k.const(I32, UNORDERED))
            relation = value.eq(number).select(k.const(I32, EQUAL), above)
            relation = (value < number).select(k.const(I32, LESS), relation)
            passed = (part("codes", node) & relation).ne(0)
            following = passed.select(part("yes", node), part("no", node)).cast(I64)
            return (here < 0).select(here, following)

        places = [k.var(part("roots", first + i).cast(I64)) for i in range(count)]
        with k.loop(task.i64("depth")):
            for at in places:
                at.set(step(at.get()))
        return [k.index(-1) - at.get() for at in places]

    def _votes(self, k: Kernel, task: Task, leaf: Val, sums: View) -> None:
        starts = task.view("starts", I64, 1)
        with k.loop(starts[leaf + 1].load(), starts[leaf].load()) as vote:
            place = sums[task.view("targets", I32, 1)[vote].load().cast(I64)]
            weight, old = task.view("weights", F32, 1)[vote].load().cast(F64), place.load()
            joined = {"sum": old + weight, "min": weight.min(old), "max": weight.max(old)}
            place.store(joined[self.join])
