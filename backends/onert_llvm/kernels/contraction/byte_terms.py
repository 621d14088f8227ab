"""Products of bytes with exact 32-bit sums, and the row sums of the activations.

If weights have a zero point, its product with the row sum is subtracted from each row. The bytes are added in the
domain of the dot product, whole registers at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val, Var, View
from onert_llvm.kernels.arithmetic import bytes_of_four
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte

from .contraction import Ending, Finish, Reading, Sums, Terms
from .float_microkernel import Accumulators, accumulators
from .int8_microkernel import add_group, dot, multiply_add_int8, narrow_shift, offset
from .register_tile import Block, Row, Tile


@frozen
class ByteTerms(Terms):
    """Bytes, `signed` or not, times signed bytes packed by `pack_int8`, or by `pack_narrow` for fewer `bits`.

    `rest` is how many terms of a run follow the last whole step. `outliers`: some weights exceed the byte range, and
    the excess is multiplied separately. Its slots: `outliers`, the number of groups of terms that have such weights;
    `places`, the tap and first term of each (64 bits); `beyond`, the excess weights for all columns of the panels.
    `widened`: the activations are 16-bit numbers already.
    """

    rest: int
    signed: bool = True
    bits: int = 8
    outliers: bool = False
    widened: bool = False

    name = "int8"

    @property
    def element(self) -> Type:
        return I16 if self.widened else I8

    @property
    def slots(self) -> tuple[str, ...]:
        return ("outliers", "places", "beyond") if self.outliers else ()

    def group(self, k: Kernel) -> int:
        return k.isa.group

    def corrections(self, k: Kernel, task: Task, block: Block, reading: Reading) -> Sums:
        """The sum of each row times the zero point of the weights."""
        sums = [k.var(k.zeros(I32, k.isa.f32)) for _ in range(block.count)]
        with reading.each() as run:
            add_row_sums(k, sums, run.rows, run.depth, self.signed)
        zero = task.i64("weight_zero").cast(I32)
        return [[total.get().over_lanes(Val.__add__) * zero] for total in sums]

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        group, shift, starts = self.group(k), narrow_shift(k.isa, self.bits), [begin(j) for j in range(block.vectors)]
        acc = accumulators(k, [k.zeros(I32, k.isa.f32)] * len(starts) if shift else starts, block.count)
        width = block.vectors * k.isa.f32 * group
        steps = None if reading.depth is None else _groups(k, reading.depth, group)
        panels = k.view(block.panel, I8, *(() if steps is None else (steps * width,)), width, 1)
        with reading.each() as run:
            panel = panels if run.tap is None else panels[run.tap]
            depth, fetch = run.depth if run.filled is None else run.filled, block.prefetcher(run.tap, steps)
            multiply_add_int8(k, acc, run.rows, panel, depth, self.rest, self.signed, fetch, self.bits)
        if self.outliers:
            self._add_outliers(k, task, tile, block, acc, reading)
        if not shift:
            return [[x.get() for x in row] for row in acc]
        return [[(x.get() >> shift) + first for x, first in zip(row, starts, strict=True)] for row in acc]

    def _add_outliers(
        self, k: Kernel, task: Task, tile: Tile, block: Block, acc: Accumulators, reading: Reading
    ) -> None:
        assert reading.at is not None
        group = self.group(k)
        across = task.i64("panels") * (tile.columns.widest * k.isa.f32 * group)
        weights = task.view("beyond", I8, across, 1)
        with k.loop(task.i64("outliers"), nonempty=True) as number:
            tap, first = (task.view("places", I64, 2, 1)[number, i].load() for i in range(2))
            rows = [row.after(first) for row in reading.at(tap)]
            add_group(k, acc, rows, weights[number].after(block.column * group), self.signed)


def _groups(k: Kernel, depth: Val, group: int) -> Val:
    """The number of groups that hold `depth` terms."""
    return k.index(-(-depth.constant // group)) if depth.constant is not None else (depth + group - 1) // group


@frozen
class Bytes(Ending):
    """Sums requantised to bytes, `signed` or not; if columns are `alike`, all use the parameters of the first."""

    requantize: Requantize
    signed: bool = True
    alike: bool = False

    element = I8

    @property
    def is_cheap(self) -> bool:
        return not self.alike

    @property
    def slots(self) -> tuple[str, ...]:
        return self.requantize.slots

    @property
    def corrected(self) -> bool:
        return self.requantize.weight_zero_point

    def _column(self, k: Kernel, block: Block, vector: int) -> Val:
        return k.index(0) if self.alike else block.at(vector)

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return self.requantize.bias(k, task, self._column(k, block, vector))

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        how = self.requantize

        def column(j: int) -> Finish:
            lanes, final = how.lanes(k, task, self._column(k, block, j)), how.table(k, task)

            def byte(row: Row, value: Val) -> Val:
                total = value - row.more[0] if how.weight_zero_point else value
                return final(as_byte(how.stored(task, self.signed, total, lanes)))

            return byte

        return column

    def by_fours(self, k: Kernel) -> bool:
        return self.is_cheap and bytes_of_four.is_available(k)

    def wide(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        how = self.requantize

        def column(j: int) -> Finish:
            lanes = how.lanes(k, task, self._column(k, block, j))

            def value(row: Row, sums: Val) -> Val:
                return how.with_zero_point(task, sums - row.more[0] if how.weight_zero_point else sums, lanes)

            return value

        return column

    def narrow(self, k: Kernel, task: Task) -> Callable[[Sequence[Val]], Val]:
        how, final = self.requantize, self.requantize.table(k, task)
        return lambda values: final(bytes_of_four.packed(k, task, how, self.signed, values))


def add_row_sums(k: Kernel, sums: Sequence[Var], rows: Sequence[View], depth: Val, signed: bool) -> None:
    """`sums[i] += rows[i][:depth]` in 32-bit lanes whose total counts; no byte beyond a row is read."""
    width = k.isa.f32 * k.isa.group
    whole = depth - depth % width
    ones = k.const(I8, 1).splat(width)
    with k.loop(whole, step=width) as p:
        for total, row in zip(sums, rows, strict=True):
            total.set(_added(k, total.get(), row[p].load(width), ones, signed))
    if k.isa.vector_bytes == 64:  # AVX-512: a partial register of bytes is one masked load
        with k.when(whole < depth):
            mask = k.iota(I8, width) < (depth - whole).cast(I8).splat(width)
            for total, row in zip(sums, rows, strict=True):
                part = row[whole].load(width, mask)
                total.set(_added(k, total.get(), part, mask.select(ones, 0), signed))
        return
    with k.loop(depth, whole) as p:
        for total, row in zip(sums, rows, strict=True):
            one = row[p].load().cast(I32, signed=signed) + offset(k.isa, signed)
            total.set(total.get() + (k.iota(I32, k.isa.f32) < 1).select(one.splat(k.isa.f32), 0))


def _added(k: Kernel, total: Val, values: Val, ones: Val, signed: bool) -> Val:
    if k.isa.dot.value.wide:
        return dot(k, total, values.cast(I16, signed=signed), ones.cast(I16))
    return dot(k, total, values ^ -128 if offset(k.isa, signed) else values, ones)
