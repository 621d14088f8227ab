"""Element-wise arithmetic on 8-bit integers, bit for bit as TFLite computes it, and tables of 256 results."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, I32, I64, Kernel, Val, View
from onert_llvm.layout import TaskLayout

from .requantize import as_byte, bounded, fixed, same_lanes

_LEFT_SHIFT = 20
"""How far TFLite's addition lifts its operands before it scales them."""

_RESULT = ("out", "width", "zero_point", "low", "high")
_MULTIPLIER = ("mantissa", "right", "left")


def _scaled(task: Task, k: Kernel, x: Val, which: str) -> Val:
    """`x` times one of the task's multipliers."""
    mantissa, right, left = (task.i64(f"{which}_{field}").cast(I32) for field in _MULTIPLIER)
    return fixed(x, same_lanes(k, mantissa, right, left))


def _multiplier(which: str) -> tuple[str, ...]:
    return tuple(f"{which}_{field}" for field in _MULTIPLIER)


@frozen
class AddInt8:
    """`x + y` (or `x - y`) of equal shapes; each operand has a zero point and a multiplier, so has the sum.

    Work tiles are rows of `width` elements, all of them neighbours in memory; a step of 0 repeats one row of y.
    """

    signed: bool = True
    subtract: bool = False

    @property
    def name(self) -> str:
        return "add_int8"

    @property
    def layout(self) -> TaskLayout:
        scales = (*_multiplier("x"), *_multiplier("y"), *_multiplier("out"))
        return TaskLayout((*_RESULT, "x", "y", "y_step", "x_zero", "y_zero", *scales))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def value(x: Val, y: Val) -> Val:
            a, b = _scaled(task, k, x << _LEFT_SHIFT, "x"), _scaled(task, k, y << _LEFT_SHIFT, "y")
            return _scaled(task, k, a - b if self.subtract else a + b, "out")

        _pairwise(k, task, begin, end, self.signed, value)


@frozen
class MultiplyInt8:
    """`x * y` of equal shapes, scaled once; work tiles as in `AddInt8`."""

    signed: bool = True

    @property
    def name(self) -> str:
        return "multiply_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout((*_RESULT, "x", "y", "y_step", "x_zero", "y_zero", *_multiplier("out")))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        _pairwise(k, task, begin, end, self.signed, lambda x, y: _scaled(task, k, x * y, "out"))


def _pairwise(k: Kernel, task: Task, begin: Val, end: Val, signed: bool, value: Callable[[Val, Val], Val]) -> None:
    """Write the loop over rows and registers around a function of two operands less their zero points."""
    lanes, width = k.isa.f32, task.i64("width")

    def load(row: View, at: Val, mask: Val | None, zero: str) -> Val:
        return row[at].load(lanes, mask).cast(I32, signed=signed) - task.i64(zero).cast(I32)

    def vector(rows: tuple[View, View, View], at: Val, mask: Val | None) -> None:
        x, y, out = rows
        result = value(load(x, at, mask, "x_zero"), load(y, at, mask, "y_zero"))
        result = bounded(task, True, signed, result + task.i64("zero_point").cast(I32))
        out[at].store(as_byte(result), mask)

    whole = width - width % lanes
    with k.loop(end, begin) as r:
        x, y = task.view("x", I8, width, 1)[r], task.view("y", I8, task.i64("y_step"), 1)[r]
        rows = x, y, task.view("out", I8, width, 1)[r]
        with k.loop(whole, step=lanes) as at:
            vector(rows, at, None)
        with k.when(whole < width):
            vector(rows, whole, k.mask(lanes, width - whole))


@frozen
class TableInt8:
    """`out = table[x]` for bytes: any function of one quantised element. Work tiles are runs of 64 elements.

    `size` is the number of elements; the table's first entry belongs to the byte 0, that of -1 is the last.
    """

    @property
    def name(self) -> str:
        return "table_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("out", "x", "table", "size"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        x, out, table = (task.view(n, I8, 1) for n in ("x", "out", "table"))
        last = (end * 64).min(task.i64("size"))
        first = begin * 64
        paired = last - (last - first) % 4

        def one(at: Val) -> None:
            out[at].store(table[x[at].load().cast(I64, signed=False)].load())

        with k.loop(paired, first, step=4) as at:
            for i in range(4):
                one(at + i)
        with k.loop(last, paired) as at:
            one(at)
