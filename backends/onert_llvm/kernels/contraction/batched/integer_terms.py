"""Exact products of integers whose sides are both computed at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val, View, vec
from onert_llvm.kernels.contraction.contraction import Ending, Finish, Reading, Sums, Terms
from onert_llvm.kernels.contraction.float_microkernel import accumulators
from onert_llvm.kernels.contraction.int8_microkernel import dot_pairs
from onert_llvm.kernels.contraction.register_tile import Block, Row, Tile
from onert_llvm.kernels.contraction.short_terms import GROUP


@frozen
class CentreBytes(Value):
    """`out = x - zero` in 16 bits; work tiles are rows of `width` bytes; result rows are `out_step` elements apart.

    The gaps between result rows are zeros, the partner of the last of an odd number of elements.
    """

    slots = ("x", "out", "width", "out_step", "zero")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, lanes, step = task.i64("width"), k.isa.f32, task.i64("out_step")
        zero = task.i64("zero").cast(I16).splat(lanes)
        x, out = task.view("x", I8, width, 1), task.view("out", I16, step, 1)
        with k.loop(end, begin) as row:
            for at, mask in k.registers(width, free=False):
                out[row, at].store(x[row, at].load(lanes, mask).cast(I16) - zero, mask)
        with k.loop(end, begin) as row, k.loop(step, width) as at:
            out[row, at].store(k.const(I16, 0))


@frozen
class CentredTerms(Terms):
    """16-bit numbers times bytes less `zero`, in pairs; A has an even number of columns.

    `k` is A's width in pairs, less one if B has an `odd` number of rows (1, else 0). The rows of B are padded to whole
    registers of columns.
    """

    name = "bytes"
    element, other, slots = I16, I8, ("zero", "odd")

    def group(self, k: Kernel) -> int:
        return GROUP

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        lanes, columns = k.isa.f32, range(block.vectors)
        acc = accumulators(k, [begin(j) for j in columns], block.count)
        panel, zero = k.view(block.panel, I8, block.width, 1), task.i64("zero").cast(I32).splat(lanes)

        def step(left: Sequence[View], pair: Val, rows: int) -> None:
            lines = [panel[pair * GROUP + r] for r in range(rows)]
            for j in columns:
                seen = [line[j * lanes].load(lanes).cast(I32) - zero for line in lines]
                word = seen[0] & 0xFFFF if rows == 1 else (seen[0] & 0xFFFF) | (seen[1] << 16)
                for row, sums in zip(left, acc, strict=True):
                    both = k.view(row[pair * GROUP].address, I32, 1).load(align=2).splat(lanes)
                    pairs = vec(I16, lanes * GROUP)
                    sums[j].set(dot_pairs(k, sums[j].get(), both.bits(pairs), word.bits(pairs)))

        with reading.each() as run:
            with k.loop(run.depth) as pair:
                step(run.rows, pair, GROUP)
            with k.loop(task.i64("odd")):
                step(run.rows, run.depth, 1)
        return [[x.get() for x in row] for row in acc]


@frozen
class WideTerms(Terms):
    """16-bit numbers times 16-bit ones (8-bit without `wide`), summed in 64 bits."""

    wide: bool

    name = "shorts"
    element = I16

    @property
    def other(self) -> Type:
        return I16 if self.wide else I8

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        lanes, panel = k.isa.f32, k.view(block.panel, self.other, block.width, 1)
        acc = accumulators(k, [begin(j) for j in range(block.vectors)], block.count)
        with reading.each() as run, k.loop(run.depth) as p:
            seen = [panel[p, j * lanes].load(lanes).cast(I64) for j in range(block.vectors)]
            for sums, row in zip(acc, run.rows, strict=True):
                left = row[p].load().cast(I64).splat(lanes)
                for total, right in zip(sums, seen, strict=True):
                    total.set(total.get() + left * right)
        return [[x.get() for x in row] for row in acc]


@frozen
class HalvesUp(Ending):
    """64-bit sums times `mantissa`, shifted right by `right` (at least 1) with halves rounded up, as 16-bit numbers."""

    element, slots = I16, ("mantissa", "right")

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return k.zeros(I64, k.isa.f32)

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        lanes = k.isa.f32
        mantissa, right = (task.i64(name) for name in self.slots)
        half = (k.index(1) << (right - 1)).splat(lanes)

        def value(_: Row, total: Val) -> Val:
            scaled = (total * mantissa.splat(lanes) + half) >> right.splat(lanes)
            return scaled.clamp(-(1 << 15), (1 << 15) - 1).cast(I16)

        return lambda _: value
