"""Fused chains of element-wise functions and row reductions: each row goes through all steps at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Expr, evaluate

from .fold import Fold
from .softmax_norm import Terms, each_rows, folded


@frozen
class Total(Value):
    """A number per row: its terms reduced by `fold`; with `mean`, divided by the width."""

    fold: Fold
    terms: Expr
    mean: bool = False


@frozen
class Number(Value):
    """A number per row, computed from others."""

    tree: Expr


@frozen
class RowChain(Value):
    """`out[row, :] = result` for each row of `width` elements.

    Leaves: `full` are tensors as large as the result, `wide` have one row for all, `narrow` one element per row; the
    `numbers` are in the task; `s0`, `s1` and so on are the results of `steps`, in order. `share` is one over the width.
    Work tiles are rows.
    """

    steps: tuple[Total | Number, ...]
    result: Expr
    full: tuple[str, ...]
    wide: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        return ("out", "width", "share", *self.full, *self.wide, *self.narrow, *self.numbers)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        for rows in each_rows(k, begin, end):
            self._rows(k, task, rows)

    def _rows(self, k: Kernel, task: Task, numbers: Sequence[Val]) -> None:
        width, lanes = task.i64("width"), k.isa.f32
        rows = [_Row(k, task, self, r) for r in numbers]
        for at, step in enumerate(self.steps):
            if isinstance(step, Number):
                found = [evaluate(k, step.tree, row.known.__getitem__, k.zeros(F32, lanes)) for row in rows]
            else:
                totals = folded(k, step.fold, width, [row.terms(step.terms) for row in rows])
                found = [(t * task.f32("share") if step.mean else t).splat(lanes) for t in totals]
            for row, value in zip(rows, found, strict=True):
                row.known[f"s{at}"] = value
        results = [(row.out, row.terms(self.result)) for row in rows]

        for place, mask in k.registers(width, free=False):
            for out, result in results:
                out[place].store(result(place, mask), mask)


class _Row:
    """Views of a row's elements, and the numbers known for the whole row."""

    def __init__(self, k: Kernel, task: Task, chain: RowChain, number: Val) -> None:
        width = task.i64("width")
        self.out = task.view("out", F32, width, 1)[number]
        self.known = {n: task.view(n, F32, 1)[number].load().splat(k.isa.f32) for n in chain.narrow}
        self.known |= {n: task.f32(n).splat(k.isa.f32) for n in chain.numbers}
        self._places: dict[str, View] = {n: task.view(n, F32, width, 1)[number] for n in chain.full}
        self._places |= {n: task.view(n, F32, 1) for n in chain.wide}
        self._kernel = k

    def terms(self, tree: Expr) -> Terms:
        """The value of a tree in a register of the row."""
        return partial(self._value, tree)

    def _value(self, tree: Expr, at: Val, mask: Val | None) -> Val:
        lanes = self._kernel.isa.f32

        def leaf(name: str) -> Val:
            return self.known[name] if name in self.known else self._places[name][at].load(lanes, mask)

        return evaluate(self._kernel, tree, leaf, self._kernel.zeros(F32, lanes))
