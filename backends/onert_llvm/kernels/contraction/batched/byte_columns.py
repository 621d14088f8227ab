"""Products with byte matrices as they are in memory, row by row, by instructions that add groups of bytes.

An instruction that adds four neighbours needs four rows interleaved. Unpacking does that for as many columns as
a register has bytes, within 128 bits; columns are exchanged before, four at a time, so that words come out in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, View, vec
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS, unpacked
from onert_llvm.kernels.contraction.contraction import Reading, Sums, Terms
from onert_llvm.kernels.contraction.float_microkernel import accumulators
from onert_llvm.kernels.contraction.int8_microkernel import add_words, dot
from onert_llvm.kernels.contraction.register_tile import Block, Tile
from onert_llvm.target.isa import Isa

TOGETHER = REGISTERS
"""Registers of columns that one register of each row fills, if four bytes are added."""


def has_words(isa: Isa) -> bool:
    """Whether the target adds groups of four bytes."""
    return isa.group == REGISTERS


def words(k: Kernel, rows: Sequence[View], signed: bool, mask: Val | None = None) -> list[Val]:
    """As many registers of words of signed bytes as the target adds at a time, from up to as many rows of bytes that
    are `signed` or 128 greater.

    Missing rows and columns without a `mask` bit are 0.
    """
    lanes, group = k.isa.f32, k.isa.group
    width = lanes * group
    found = []
    for row in rows:
        line = row.load(width, mask)
        if not signed:
            line = line ^ -128 if mask is None else mask.select(line ^ -128, 0)
        found.append(line)
    if group == REGISTERS:
        blocks = lanes // REGISTERS
        places = [blocks * r + block for block in range(blocks) for r in range(REGISTERS)]
        return unpacked(k, [line.bits(vec(I32, lanes)).shuffle(places).bits(line.type) for line in found])
    one, other = (*found, *[k.zeros(I8, width)] * (group - len(found)))
    orders = [[at for c in range(first, first + lanes) for at in (c, width + c)] for first in range(0, width, lanes)]
    return [one.shuffle(order, other) for order in orders]


@frozen
class RowMajorBytes(Terms):
    """Bytes times bytes of a matrix whose rows are contiguous; each `signed` or not. `rest` is k modulo the group.

    With `shifted`, the sum of each column's signed bytes times slot `times` is added.
    """

    rest: int
    signed: bool
    other_signed: bool
    shifted: bool

    name = "byte_rows"
    element = other = I8

    @property
    def slots(self) -> tuple[str, ...]:
        return ("times",) if self.shifted else ()

    def group(self, k: Kernel) -> int:
        return k.isa.group

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        lanes, vectors = k.isa.f32, range(block.vectors)
        acc = accumulators(k, [begin(j) for j in vectors], block.count)
        totals = [k.var(k.zeros(I32, lanes)) for _ in vectors] if self.shifted else []
        together, wide = k.isa.group, I16 if k.isa.dot.value.wide else I8
        ones = k.const(wide, 1).splat(lanes * together)
        matrix = k.view(block.panel, I8, task.i64("ldb"), 1)
        masks = [self._mask(k, block, first) for first in range(0, block.vectors, together)]

        def step(rows: Sequence[View], at: Val, count: int) -> None:
            lines = [matrix[at + r] for r in range(count)]
            for number, mask in enumerate(masks):
                own = slice(number * together, min((number + 1) * together, block.vectors))
                found = words(k, [line.after(own.start * lanes) for line in lines], self.other_signed, mask)
                found = found[: own.stop - own.start]
                add_words(k, [sums[own] for sums in acc], [row[at] for row in rows], found, count, self.signed)
                for total, word in zip(totals[own], found, strict=self.shifted):
                    total.set(dot(k, total.get(), ones, word.cast(wide)))

        with reading.each() as run:
            whole = run.depth - self.rest
            with k.loop(whole, step=together) as at:
                step(run.rows, at, together)
            if self.rest:
                step(run.rows, whole, self.rest)
        if not totals:
            return [[x.get() for x in sums] for sums in acc]
        times = task.i64("times").cast(I32).splat(lanes)
        return [[x.get() + total.get() * times for x, total in zip(sums, totals, strict=True)] for sums in acc]

    def _mask(self, k: Kernel, block: Block, first: int) -> Val | None:
        """The mask of a register of bytes; None if all of its columns exist."""
        together = k.isa.group
        if block.vectors - first >= together and not any(m is not None for m in block.masks[first : first + together]):
            return None
        width = block.width if isinstance(block.width, Val) else k.index(block.width)
        return k.mask(k.isa.f32 * together, width - first * k.isa.f32)
