"""Chains of element-wise functions fused into one loop, with operands that repeat along any axes."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Kind, checked, evaluate, kinds
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS

from .whole_bytes import packed_bytes, packs


class Reach(Enum):
    """How an operand broadcasts to a result of `[rows, width]` elements."""

    FULL = "full"
    ROW = "row"
    COLUMN = "column"
    SCALAR = "scalar"


@frozen
class Elementwise(Value):
    """`out = tree` over a box of `rank` outer axes and a width; the result is dense.

    Leaf number i is contiguous along the width if `wide[i]`, else it has one element for the whole width; slot
    `NAME_step{j}` is its stride in elements along outer axis j (0 where it repeats), `size{j}` that axis's length. With
    `cut`, work tile t is `piece` elements of the width of row t // `pieces`, else row t. If the tree checks elements,
    one that breaks the rule is written to `report` (after a 1).
    """

    tree: Expr
    wide: tuple[bool, ...]
    rank: int = 1
    cut: bool = False

    @property
    def operands(self) -> dict[str, Kind]:
        return kinds(self.tree)

    @property
    def slots(self) -> tuple[str, ...]:
        steps = (f"{n}_step{i}" for n in self.operands for i in range(self.rank))
        pieces = ("piece", "pieces") if self.cut else ()
        sizes = (f"size{i}" for i in range(1, self.rank))
        report = ("report",) if checked(self.tree) else ()
        return ("out", "width", *report, *pieces, *sizes, *self.operands, *steps)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width = task.i64("width")
        with k.loop(end, begin) as tile:
            row, first, last = tile, k.index(0), width
            if self.cut:
                row, first = tile // task.i64("pieces"), (tile % task.i64("pieces")) * task.i64("piece")
                last = (first + task.i64("piece")).min(width)
            places = self._rows(k, task, row)
            out = k.view(task.view("out", self.tree.kind.memory, width)[row].address, self.tree.kind.memory, 1)
            self._run(k, task, places, out, first, last)

    def _rows(self, k: Kernel, task: Task, row: Val) -> dict[str, View]:
        """Views of the row of each operand."""
        offsets = dict.fromkeys(self.operands, k.index(0))
        rest = row
        for i in reversed(range(self.rank)):
            at, rest = (rest % task.i64(f"size{i}"), rest // task.i64(f"size{i}")) if i else (rest, rest)
            offsets = {n: offset + at * task.i64(f"{n}_step{i}") for n, offset in offsets.items()}
        return {n: task.view(n, self.operands[n].memory, 1)[offset] for n, offset in offsets.items()}

    def _run(self, k: Kernel, task: Task, places: dict[str, View], out: View, first: Val, last: Val) -> None:
        lanes = k.isa.f32
        wide = dict(zip(self.operands, self.wide, strict=True))
        single = {n: kind.load(places[n], 1, None) for n, kind in self.operands.items() if not wide[n]}

        def value(tree: Expr, at: Val, count: int, mask: Val | None) -> Val:
            def leaf(name: str) -> Val:
                if name in single:
                    return single[name].splat(count)
                here = k.view(places[name].address, places[name].element, 1)[at]
                return self.operands[name].load(here, count, mask)

            def broken(wrong: Val, element: Val) -> None:
                with k.when((wrong if mask is None else wrong & mask).any()):
                    task.report(element.cast(I64))

            return evaluate(k, tree, leaf, k.zeros(F32, count), broken)

        def elements(at: Val, count: int, mask: Val | None) -> None:
            self.tree.kind.store(value(self.tree, at, count, mask), out[at], mask)

        if packs(k.isa, self.tree):
            most = last - (last - first) % (REGISTERS * lanes)
            with k.loop(most, first, step=REGISTERS * lanes) as at:
                out[at].store(packed_bytes(k, self.tree, lambda e, i: value(e, at + i * lanes, lanes, None)))
            first = most
        if _is_bytes(self.tree):
            most = last - (last - first) % k.isa.vector_bytes
            with k.loop(most, first, step=k.isa.vector_bytes) as at:
                elements(at, k.isa.vector_bytes, None)
            first = most
        whole = last - (last - first) % lanes
        with k.loop(whole, first, step=lanes) as at:
            elements(at, lanes, None)
        memories = [kind.memory for kind in (self.tree.kind, *self.operands.values())]
        if k.isa.masks and all(memory.suffix in ("f32", "i32") for memory in memories):
            with k.when(whole < last):
                elements(whole, lanes, k.mask(lanes, last - whole))
        else:
            with k.loop(last, whole) as at:
                elements(at, 1, None)


def _is_bytes(tree: Expr) -> bool:
    """Whether a tree computes with nothing but bytes and truths."""
    return tree.kind.memory.width == 8 and (not isinstance(tree, Apply) or all(map(_is_bytes, tree.args)))
