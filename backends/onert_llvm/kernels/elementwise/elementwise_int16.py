"""Functions of one or two stored numbers with 16-bit results, bit for bit as TFLite computes them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val, View
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, load_lanes, scaled, with_zero_point

from . import broadcast_rows
from .elementwise_int8 import OPERANDS, SINGLE
from .quantize_dequantize import each_register

_LEFT_SHIFT = 15
"""How far TFLite's addition of 16-bit numbers lifts its operands before it scales them."""

_BOUNDS = ("low", "high")


class Form(Enum):
    """What becomes of two operands on a common scale."""

    SUM = "sum"
    DIFFERENCE = "difference"
    SQUARED_DIFFERENCE = "squared_difference"


@frozen
class SumInt16(Value):
    """`x + y`, `x - y` or `(x - y)²` in fixed point, zero points 0; slots and work tiles as those of `SumInt8`.

    Before they are scaled the operands are lifted, but not for a square.
    """

    scaling: Scaling
    sides: tuple[Scaling | None, Scaling | None]
    form: Form = Form.SUM
    single: tuple[bool, bool] = SINGLE

    @property
    def name(self) -> str:
        return f"{self.form.value}_int16"

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("out", "width", "x_columns", "y_columns", *_BOUNDS)
        return (*broadcast_rows.slots(OPERANDS), *own, *Requantize(self.scaling).slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        how = Requantize(self.scaling)
        lanes = load_lanes(k, task, how, k.index(0))
        lift = [self._lifted(k, task, name, side) for name, side in zip(OPERANDS, self.sides, strict=True)]

        def value(x: Val, y: Val) -> Val:
            a, b = lift[0](x), lift[1](y)
            total = a + b if self.form is Form.SUM else a - b
            total = total * total if self.form is Form.SQUARED_DIFFERENCE else total
            return with_zero_point(task, how, lanes["bias"] + total, lanes)

        _pairwise(k, task, begin, end, self.single, value)

    def _lifted(self, k: Kernel, task: Task, name: str, how: Scaling | None) -> Callable[[Val], Val]:
        """An operand on the common scale; the product with 1/2 is exact where it was lifted."""
        if how is None:
            return lambda x: x << (_LEFT_SHIFT - 1)
        left = 0 if self.form is Form.SQUARED_DIFFERENCE else _LEFT_SHIFT
        lanes = load_lanes(k, task, Requantize(how), k.index(0), f"{name}_columns")
        return lambda x: scaled(how, lanes["bias"] + (x << left), lanes)


@frozen
class ShiftedSumInt16(Value):
    """`x + y` or `x - y`, each side shifted first: `x_right` bits down, halves away from zero, and `x_left` bits up.

    Slots and work tiles as those of `SumInt16`, but for the multipliers.
    """

    form: Form = Form.SUM
    single: tuple[bool, bool] = SINGLE

    @property
    def name(self) -> str:
        return f"shifted_{self.form.value}_int16"

    @property
    def slots(self) -> tuple[str, ...]:
        shifts = (f"{name}_{way}" for name in OPERANDS for way in ("right", "left"))
        return (*broadcast_rows.slots(OPERANDS), "out", "width", *_BOUNDS, *shifts)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32

        def shifted(name: str, x: Val) -> Val:
            right, left = (task.i64(f"{name}_{way}").cast(I32).splat(lanes) for way in ("right", "left"))
            rest = (k.const(I32, 1).splat(lanes) << right) - 1
            half = (rest >> 1) + (x < 0).select(x.like(1), 0)
            return ((x >> right) + ((x & rest) > half).select(x.like(1), 0)) << left

        def value(x: Val, y: Val) -> Val:
            a, b = shifted("x", x), shifted("y", y)
            return a + b if self.form is Form.SUM else a - b

        _pairwise(k, task, begin, end, self.single, value)


@frozen
class MultiplyInt16(Value):
    """`x * y`, scaled once, zero points 0; slots and work tiles as those of `MultiplyInt8`."""

    scaling: Scaling
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        return (*broadcast_rows.slots(OPERANDS), "out", "width", *_BOUNDS, *Requantize(self.scaling).slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        how = Requantize(self.scaling)
        lanes = load_lanes(k, task, how, k.index(0))
        _pairwise(
            k,
            task,
            begin,
            end,
            self.single,
            lambda x, y: with_zero_point(task, how, lanes["bias"] + x * y, lanes),
        )


def _pairwise(
    k: Kernel, task: Task, begin: Val, end: Val, single: tuple[bool, bool], value: Callable[[Val, Val], Val]
) -> None:
    """Write the loop over rows and registers around a function of two operands in 32 bits."""
    lanes, width = k.isa.f32, task.i64("width")
    low, high = (task.i64(name).cast(I32).splat(lanes) for name in _BOUNDS)
    whole = width - width % lanes
    with k.loop(end, begin) as r:
        out = task.view("out", I16, width, 1)[r]
        rows = broadcast_rows.rows_at(k, task, OPERANDS, I16, r)
        once = [row[0].load().cast(I32).splat(lanes) if s else None for row, s in zip(rows, single, strict=True)]

        def vector(at: Val, mask: Val | None) -> None:
            x, y = (found or row[at].load(lanes, mask).cast(I32) for found, row in zip(once, rows, strict=True))
            out[at].store(value(x, y).clamp(low, high).cast(I16), mask)

        with k.loop(whole, step=lanes) as at:
            vector(at, None)
        with k.when(whole < width):
            vector(whole, k.mask(lanes, width - whole))


ELEMENTS = {8: I8, 16: I16, 32: I32, 64: I64}
"""The type of so many bits."""


@frozen
class Rescale(Value):
    """`out = (x - x_zero)` times a multiplier, clamped: integers of 8 or 16 bits to others.

    `source` and `target` are their bits, `signed` says whether those of x have a sign; slot `columns` is one register.
    """

    source: int
    target: int
    signed: bool
    scaling: Scaling

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "out", "width", "x_zero", *_BOUNDS, *Requantize(self.scaling).slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        how, width, lanes = Requantize(self.scaling), task.i64("width"), k.isa.f32
        columns = load_lanes(k, task, how, k.index(0))
        zero, low, high = (task.i64(name).cast(I32).splat(lanes) for name in ("x_zero", *_BOUNDS))
        source, target = (_rows(task, name, bits) for name, bits in (("x", self.source), ("out", self.target)))

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            centred = source[row, at].load(lanes, mask).cast(I32, self.signed) - zero
            value = with_zero_point(task, how, columns["bias"] + centred, columns)
            target[row, at].store(value.clamp(low, high).cast(ELEMENTS[self.target]), mask)

        each_register(k, begin, end, width, vector)


@frozen
class MapShorts(Value):
    """`out = table[x]`: any function of one number of `source` bits, 8 or 16, to one of `target` bits.

    The table's first entry belongs to 0, that of -1 is the last. Work tiles are rows of `width`.
    """

    source: int
    target: int

    slots = ("x", "out", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        table, width = task.view("table", ELEMENTS[self.target], 1), task.i64("width")
        source, target = (_rows(task, name, bits) for name, bits in (("x", self.source), ("out", self.target)))
        paired = width - width % 4
        with k.loop(end, begin) as row:
            with k.loop(paired, step=4) as at:
                for i in range(4):
                    target[row, at + i].store(table[_index(source[row, at + i])].load())
            with k.loop(width, paired) as at:
                target[row, at].store(table[_index(source[row, at])].load())


def _rows(task: Task, name: str, bits: int) -> View:
    element: Type = ELEMENTS[bits]
    return task.view(name, element, task.i64("width"), 1)


def _index(place: View) -> Val:
    return place.load().cast(I64, signed=False)
