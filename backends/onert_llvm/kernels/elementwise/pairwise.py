"""Functions of two quantised operands with broadcasting, bit for bit as TFLite computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, I64, Kernel, Val
from onert_llvm.irbuilder.math import nearest_even
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, scaled

from . import broadcast_rows

LIFT: Mapping[Kind, int] = {Kind.I8: 20, Kind.U8: 20, Kind.I16: 15}
"""The left shift that TFLite's addition (kernels/add.cc) applies to operands before it scales them."""

LIFT_SQUARED: Mapping[Kind, int] = {Kind.I8: 7, Kind.U8: 7, Kind.I16: 0}
"""The same for squared differences."""

SINGLE = (False, False)
OPERANDS = ("x", "y")

Pair = Callable[[Val, Val], Val]


@frozen
class Function(Value):
    """A function of two 32-bit numbers, before clamping; 16-bit operands have no zero point."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The task slots that it reads."""
        raise NotImplementedError

    def bind(self, k: Kernel, task: Task, kind: Kind) -> Pair:
        """Load the parameters and return the function."""
        raise NotImplementedError


@frozen
class Affine(Function):
    """`x · x_factor + y · y_factor + offset` in float32, rounded to the nearest integer: a sum or a difference.

    The caller has verified that all 65536 results are right and below 2**22 in size. A product and a sum are fused if
    the target has such an instruction; the order of the operations is part of the contract.
    """

    slots = ("x_factor", "y_factor", "offset")

    def bind(self, k: Kernel, task: Task, kind: Kind) -> Pair:
        x_factor, y_factor, offset = (task.f32(n).splat(k.isa.f32) for n in self.slots)
        return lambda x, y: nearest_even(k, k.fma(y.cast(F32), y_factor, k.fma(x.cast(F32), x_factor, offset)))


class Form(Enum):
    """The combination of two operands on a common scale."""

    SUM = "sum"
    DIFFERENCE = "difference"
    SQUARED_DIFFERENCE = "squared_difference"

    def of(self, x: Val, y: Val) -> Val:
        total = x + y if self is Form.SUM else x - y
        return total * total if self is Form.SQUARED_DIFFERENCE else total

    def lift(self, kind: Kind) -> int:
        """The left shift of operands."""
        return (LIFT_SQUARED if self is Form.SQUARED_DIFFERENCE else LIFT)[kind]


@frozen
class FixedSum(Function):
    """`x + y`, `x - y` or `(x - y)²` in fixed point; operands are shifted left before they are scaled.

    `columns`, `x_columns` and `y_columns` point to one register each of a multiplier; `sides` are the scalings of the
    operands' multipliers, None for 1/2.
    """

    scaling: Scaling
    sides: tuple[Scaling | None, Scaling | None]
    form: Form = Form.SUM

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x_zero", "y_zero", "x_columns", "y_columns", *Requantize(self.scaling).slots)

    def bind(self, k: Kernel, task: Task, kind: Kind) -> Pair:
        how = Requantize(self.scaling)
        lanes = how.lanes(k, task, k.index(0))
        x_lifted, y_lifted = (self._lifted(k, task, kind, *side) for side in zip(OPERANDS, self.sides, strict=True))
        return lambda x, y: how.with_zero_point(task, lanes["bias"] + self.form.of(x_lifted(x), y_lifted(y)), lanes)

    def _lifted(self, k: Kernel, task: Task, kind: Kind, name: str, how: Scaling | None) -> Callable[[Val], Val]:
        """An operand less its zero point, on the common scale; halving is exact after the left shift."""
        left = self.form.lift(kind)
        if how is None:
            return lambda x: _centred(task, kind, name, x) << (left - 1)
        lanes = Requantize(how).lanes(k, task, k.index(0), f"{name}_columns")
        return lambda x: scaled(how, lanes["bias"] + (_centred(task, kind, name, x) << left), lanes)


@frozen
class ShiftedSum(Function):
    """`x + y` or `x - y`, each side shifted first: right by `x_right`, halves away from zero, and left by `x_left`."""

    form: Form = Form.SUM

    slots = ("x_right", "x_left", "y_right", "y_left")

    def bind(self, k: Kernel, task: Task, kind: Kind) -> Pair:
        def shifted(name: str, x: Val) -> Val:
            right, left = (task.i64(f"{name}_{way}").cast(I32).splat(x.lanes) for way in ("right", "left"))
            rest = (k.const(I32, 1).splat(x.lanes) << right) - 1
            half = (rest >> 1) + (x < 0).select(x.like(1), 0)
            return ((x >> right) + ((x & rest) > half).select(x.like(1), 0)) << left

        return lambda x, y: self.form.of(shifted("x", x), shifted("y", y))


@frozen
class FixedProduct(Function):
    """`x * y`, scaled once; `columns` points to one register."""

    scaling: Scaling

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x_zero", "y_zero", *Requantize(self.scaling).slots)

    def bind(self, k: Kernel, task: Task, kind: Kind) -> Pair:
        how = Requantize(self.scaling)
        lanes = how.lanes(k, task, k.index(0))

        def value(x: Val, y: Val) -> Val:
            product = _centred(task, kind, "x", x) * _centred(task, kind, "y", y)
            return how.with_zero_point(task, lanes["bias"] + product, lanes)

        return value


def _centred(task: Task, kind: Kind, name: str, x: Val) -> Val:
    return x if kind is Kind.I16 else x - task.i64(f"{name}_zero").cast(I32)


@frozen
class Pairwise(Value):
    """`out = function(x, y)` of integers of one kind, `clamped` to [`low`, `high`] or else to their type.

    Work tiles are rows of `width` elements, contiguous in the result; `single` tells which operand has only one element
    per row.
    """

    function: Function
    kind: Kind = Kind.I8
    clamped: bool = False
    single: tuple[bool, bool] = SINGLE

    @property
    def slots(self) -> tuple[str, ...]:
        bounds = ("low", "high") if self.clamped else ()
        return (*broadcast_rows.slots(OPERANDS), "out", "width", *self.function.slots, *bounds)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, memory, signed = k.isa.f32, task.i64("width"), self.kind.memory, self.kind.signed
        function = self.function.bind(k, task, self.kind)
        with k.loop(end, begin) as r:
            out = task.view("out", memory, width, 1)[r]
            rows = broadcast_rows.rows_at(k, task, OPERANDS, memory, r)
            once = [
                row[0].load().cast(I32, signed).splat(lanes) if s else None
                for row, s in zip(rows, self.single, strict=True)
            ]

            for at, mask in k.registers(width, free=False):
                x, y = (o or row[at].load(lanes, mask).cast(I32, signed) for o, row in zip(once, rows, strict=True))
                out[at].store(self._bounded(task, function(x, y)).cast(memory), mask)

    def _bounded(self, task: Task, x: Val) -> Val:
        if self.clamped:
            return x.clamp(*(task.i64(name).cast(I32).splat(x.lanes) for name in ("low", "high")))
        bits = self.kind.memory.width
        least = -(1 << bits - 1) if self.kind.signed else 0
        return x.clamp(least, least + (1 << bits) - 1)


@frozen
class PairTable(Value):
    """`out = table[x, y]` for two bytes: any function of two quantised elements.

    The table's rows belong to x; both are indexed as unsigned bytes. Work tiles as in `Pairwise`.
    """

    single: tuple[bool, bool] = SINGLE

    slots = (*broadcast_rows.slots(OPERANDS), "out", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        byte = Kind.U8.memory
        width, table = task.i64("width"), task.view("table", byte, 256, 1)
        steps = [0 if s else 1 for s in self.single]
        with k.loop(end, begin) as r:
            out = task.view("out", byte, width, 1)[r]
            rows = broadcast_rows.rows_at(k, task, OPERANDS, byte, r)
            with k.loop(width) as at:
                x, y = (row[at * step].load().cast(I64, signed=False) for row, step in zip(rows, steps, strict=True))
                out[at].store(table[x, y].load())
