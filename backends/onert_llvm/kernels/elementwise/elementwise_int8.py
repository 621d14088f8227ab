"""Functions of two 8-bit operands that broadcast, bit for bit as TFLite computes them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Val, View
from onert_llvm.irbuilder.math import nearest_even
from onert_llvm.kernels.arithmetic.byte_table import loaded, looked_up
from onert_llvm.kernels.arithmetic.requantize_int8 import (
    Requantize,
    Scaling,
    as_byte,
    bounded,
    load_lanes,
    scaled,
    stored,
)
from onert_llvm.target.isa import Lookup

from . import broadcast_rows

_LEFT_SHIFT = 20
"""How far TFLite's addition lifts its operands before it scales them."""

SINGLE = (False, False)
OPERANDS = ("x", "y")


@frozen
class AffineInt8(Value):
    """`x · x_factor + y · y_factor + offset` in float32, rounded to the nearest integer: a sum or a difference.

    The caller has found numbers with which all 65536 results are right. A product and a sum are one operation where the
    target has it. Work tiles are rows of `width` elements, the result's neighbours in memory; `single` says of which
    operand a row has but one element. Without `clamped` the results are bounded by their type.
    """

    signed: bool = True
    clamped: bool = False
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        bounds = ("low", "high") if self.clamped else ()
        return (*broadcast_rows.slots(OPERANDS), "out", "width", "x_factor", "y_factor", "offset", *bounds)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        factors = [task.f32(n).splat(k.isa.f32) for n in ("x_factor", "y_factor", "offset")]

        def value(x: Val, y: Val) -> Val:
            total = affine(k, x.cast(F32), y.cast(F32), factors)
            return bounded(task, self.clamped, self.signed, total)

        _pairwise(k, task, begin, end, self.signed, self.single, value)


def affine(k: Kernel, x: Val, y: Val, factors: list[Val]) -> Val:
    """The integer nearest to the affine function of two floats, below 2**22 in size.

    The order of the operations is part of the contract.
    """
    return nearest_even(k, k.fma(y, factors[1], k.fma(x, factors[0], factors[2])))


@frozen
class SumInt8(Value):
    """`x + y` (or `x - y`) in fixed point: for the scales whose sums `AffineInt8` cannot give exactly.

    `columns`, `x_columns` and `y_columns` point to one register each of a multiplier; `sides` says of which scaling
    those of the operands are, None if it is 1/2.
    """

    requantize: Requantize
    sides: tuple[Scaling | None, Scaling | None]
    signed: bool = True
    subtract: bool = False
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("out", "width", "x_zero", "y_zero", "x_columns", "y_columns")
        return (*broadcast_rows.slots(OPERANDS), *own, *self.requantize.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = load_lanes(k, task, self.requantize, k.index(0))
        lift = [self._lifted(k, task, name, how) for name, how in zip(OPERANDS, self.sides, strict=True)]

        def value(x: Val, y: Val) -> Val:
            a, b = lift[0](x), lift[1](y)
            total = lanes["bias"] + (a - b if self.subtract else a + b)
            return stored(task, self.requantize, self.signed, total, lanes)

        _pairwise(k, task, begin, end, self.signed, self.single, value)

    def _lifted(self, k: Kernel, task: Task, name: str, how: Scaling | None) -> Callable[[Val], Val]:
        """An operand less its zero point, on the common scale; the product with 1/2 is exact."""
        zero = task.i64(f"{name}_zero").cast(I32)
        if how is None:
            return lambda x: (x - zero) << (_LEFT_SHIFT - 1)
        lanes = load_lanes(k, task, Requantize(how), k.index(0), f"{name}_columns")
        return lambda x: scaled(how, lanes["bias"] + ((x - zero) << _LEFT_SHIFT), lanes)


@frozen
class MultiplyInt8(Value):
    """`x * y`, scaled once; `columns` points to one register. Work tiles as in `AffineInt8`."""

    requantize: Requantize
    signed: bool = True
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        return (*broadcast_rows.slots(OPERANDS), "out", "width", "x_zero", "y_zero", *self.requantize.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = load_lanes(k, task, self.requantize, k.index(0))

        def value(x: Val, y: Val) -> Val:
            a, b = x - task.i64("x_zero").cast(I32), y - task.i64("y_zero").cast(I32)
            return stored(task, self.requantize, self.signed, lanes["bias"] + a * b, lanes)

        _pairwise(k, task, begin, end, self.signed, self.single, value)


def _pairwise(
    k: Kernel,
    task: Task,
    begin: Val,
    end: Val,
    signed: bool,
    single: tuple[bool, bool],
    value: Callable[[Val, Val], Val],
) -> None:
    """Write the loop over rows and registers around a function of two operands in 32 bits."""
    lanes, width = k.isa.f32, task.i64("width")
    whole = width - width % lanes
    with k.loop(end, begin) as r:
        out = task.view("out", I8, width, 1)[r]
        rows = broadcast_rows.rows_at(k, task, OPERANDS, I8, r)
        once = [
            row[0].load().cast(I32, signed).splat(lanes) if s else None for row, s in zip(rows, single, strict=True)
        ]

        def load(i: int, at: Val, mask: Val | None) -> Val:
            return once[i] or rows[i][at].load(lanes, mask).cast(I32, signed)

        def vector(at: Val, mask: Val | None) -> None:
            out[at].store(as_byte(value(load(0, at, mask), load(1, at, mask))), mask)

        with k.loop(whole, step=lanes) as at:
            vector(at, None)
        with k.when(whole < width):
            vector(whole, k.mask(lanes, width - whole))


@frozen
class PairTable(Value):
    """`out = table[x, y]` for two bytes: any function of two quantised elements.

    The table's row belongs to x, both count from the byte 0 up to that of -1. Work tiles as in `AffineInt8`.
    """

    single: tuple[bool, bool] = SINGLE

    slots = (*broadcast_rows.slots(OPERANDS), "out", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, table = task.i64("width"), task.view("table", I8, 256, 1)
        steps = [0 if s else 1 for s in self.single]
        with k.loop(end, begin) as r:
            out = task.view("out", I8, width, 1)[r]
            rows = broadcast_rows.rows_at(k, task, OPERANDS, I8, r)
            with k.loop(width) as at:
                x, y = (_index(row[at * step]) for row, step in zip(rows, steps, strict=True))
                out[at].store(table[x, y].load())


@frozen
class MapBytes(Value):
    """`out = table[x]`: any function of one quantised element. Work tiles are rows of `width`, `x_step` and `out_step`
    bytes apart; the table's first entry belongs to the byte 0, that of -1 is the last (`byte_table.stored_table`).
    """

    slots = ("out", "out_step", "x", "x_step", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if k.isa.lookup is Lookup.NONE:
            self._one_by_one(k, task, begin, end)
            return
        lanes, width = k.isa.vector_bytes, task.i64("width")
        whole = width - width % lanes
        registers = loaded(k, task.view("table", I8, 1))
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            with k.loop(whole, step=lanes) as at:
                out[at].store(looked_up(k, registers, x[at].load(lanes)))
            with k.when(whole < width):
                if k.isa.free_masks:
                    rest = k.mask(lanes, width - whole)
                    out[whole].store(looked_up(k, registers, x[whole].load(lanes, rest)), rest)
                else:
                    _through(k, x.after(whole), out.after(whole), width - whole, lambda x: looked_up(k, registers, x))

    def _one_by_one(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        table, width = task.view("table", I8, 1), task.i64("width")
        paired = width - width % 4
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            with k.loop(paired, step=4) as at:
                for i in range(4):
                    out[at + i].store(table[_index(x[at + i])].load())
            with k.loop(width, paired) as at:
                out[at].store(table[_index(x[at])].load())


def _through(k: Kernel, x: View, out: View, count: Val, function: Callable[[Val], Val]) -> None:
    """A function of a register on fewer bytes than it has: in memory of its own, so that none beyond is touched."""
    lanes = k.isa.vector_bytes
    room = k.view(k.scratch(I8, lanes), I8, 1)
    with k.loop(count, nonempty=True) as at:
        room[at].store(x[at].load())
    room.store(function(room.load(lanes)))
    with k.loop(count, nonempty=True) as at:
        out[at].store(room[at].load())


@frozen
class ShiftBytes(Value):
    """`out = x + by`, wrapped: bytes whose zero point moves from signed to unsigned. Work tiles as in `MapBytes`."""

    slots = ("out", "out_step", "x", "x_step", "width", "by")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.vector_bytes, task.i64("width")
        by, whole = task.i64("by").cast(I8), width - width % k.isa.vector_bytes
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            with k.loop(whole, step=lanes) as at:
                out[at].store(x[at].load(lanes) + by)
            with k.loop(width, whole) as at:
                out[at].store(x[at].load() + by)


def _index(place: View) -> Val:
    return place.load().cast(I64, signed=False)
