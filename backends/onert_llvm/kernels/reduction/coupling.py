"""Class probabilities from pairwise comparisons: the probability of the first class of each pair."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, Kernel, Val, View

PARTS = 3
"""Numbers in float64 for each class: its probability, its row of the product, and its diagonal element."""


@frozen
class Couple(Value):
    """`out[row]` of `count` classes from `x[row, count, count]`, as in `CoupledProbabilities`. Work tiles are rows.

    `room` has `PARTS * count` numbers for each row. Iteration stops after `rounds` rounds or on convergence.
    """

    rounds: int
    near: float

    slots = ("x", "out", "room", "count")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        count = task.i64("count")
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", F32, count * count)[row].address, F32, count, 1)
            room = task.view("room", F64, count * PARTS, 1)[row]
            found, lines, diagonal = (room.after(count * part) for part in range(PARTS))
            equal = k.const(F64, 1) / count.cast(F64)
            with k.loop(count) as i:
                total = k.var(k.const(F64, 0))
                with k.loop(count) as j:
                    total.set(total.get() + i.eq(j).select(0.0, _square(x[j, i].load().cast(F64))))
                diagonal[i].store(total.get())
                found[i].store(equal)
            going = k.var(count > 0)
            with k.loop(self.rounds), k.when(going.get()):
                going.set(self._round(k, count, _Matrix(x, diagonal), found, lines, equal))
            out = task.view("out", F32, count, 1)[row]
            with k.loop(count) as i:
                out[i].store(found[i].load().cast(F32))

    def _round(self, k: Kernel, count: Val, q: _Matrix, found: View, lines: View, equal: Val) -> Val:
        """Update all classes in turn unless every row is close to the target; returns whether they were updated."""
        total, far = k.var(k.const(F64, 0)), k.var(k.const(F64, 0))
        with k.loop(count) as i:
            products = k.var(k.const(F64, 0))
            with k.loop(count) as j:
                products.set(products.get() + q.at(i, j) * found[j].load())
            lines[i].store(products.get())
            total.set(total.get() + found[i].load() * products.get())
        errors = k.var(k.const(F64, 0))
        with k.loop(count) as i:
            error = (lines[i].load() - total.get()).call("fabs")
            far.set(far.get().max(error))
            errors.set(errors.get() + error)
        going = (far.get() >= equal * self.near) & (errors.get() >= 0.0)  # false if an error is NaN
        with k.when(going), k.loop(count) as i:
            line, own = lines[i].load(), q.diagonal[i].load()
            by = (total.get() - line) / own
            found[i].store(found[i].load() + by)
            less = k.const(F64, 1) / (by + 1.0)
            total.set((total.get() + by * (by * own + line * 2.0)) * less * less)
            with k.loop(count) as j:
                lines[j].store((lines[j].load() + by * q.at(i, j)) * less)
                found[j].store(found[j].load() * less)
        return going


class _Matrix:
    """The negated products of both comparisons of two classes, and on the diagonal what is stored there."""

    def __init__(self, x: View, diagonal: View) -> None:
        self.x = x
        self.diagonal = diagonal

    def at(self, i: Val, j: Val) -> Val:
        both = self.x[j, i].load().cast(F64) * self.x[i, j].load().cast(F64)
        return i.eq(j).select(self.diagonal[i].load(), -both)


def _square(x: Val) -> Val:
    return x * x
