"""Chains of element-wise float32 functions as one loop, with operands that repeat."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, Kernel, Val
from onert_llvm.layout import TaskLayout

from .expression import Expr, evaluate, leaves


class Reach(Enum):
    """How an operand meets a result of `[rows, width]` elements."""

    FULL = "full"
    ROW = "row"
    COLUMN = "column"
    SCALAR = "scalar"


@frozen
class Elementwise:
    """`out = tree` over `[rows, width]`; work tiles are rows.

    `reaches` says for each leaf in turn whether it has every element, one row for all (`ROW`), one element a row
    (`COLUMN`), or one in all; slot `NAME_step` is the distance of its rows in elements (0 where it has but one).
    """

    tree: Expr
    reaches: tuple[Reach, ...]

    @property
    def name(self) -> str:
        return "elementwise"

    @property
    def operands(self) -> tuple[str, ...]:
        return leaves(self.tree)

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("out", "out_step", "width", *self.operands, *(f"{n}_step" for n in self.operands)))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        wide = [n for n, r in zip(self.operands, self.reaches, strict=True) if r in (Reach.FULL, Reach.ROW)]
        with k.loop(end, begin) as row:
            out = task.view("out", F32, task.i64("out_step"), 1)[row]
            rows = {n: task.view(n, F32, task.i64(f"{n}_step"), 1)[row] for n in self.operands}
            single = {n: rows[n][0].load().splat(lanes) for n in self.operands if n not in wide}

            def vector(at: Val, mask: Val | None) -> None:
                value = evaluate(
                    k,
                    self.tree,
                    lambda n: single[n] if n in single else rows[n][at].load(lanes, mask),
                    k.zeros(F32, lanes),
                )
                out[at].store(value, mask)

            whole = width - width % lanes
            with k.loop(whole, step=lanes) as at:
                vector(at, None)
            with k.when(whole < width):
                vector(whole, k.mask(lanes, width - whole))
