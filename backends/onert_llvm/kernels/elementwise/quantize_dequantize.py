"""From float32 to quantised integers of 8 or 16 bits and back, and to floats of 16 bits and back."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Val, vec
from onert_llvm.kernels.arithmetic.requantize_int8 import nearest


@frozen
class QuantizeF32(Value):
    """`out = x / scale` to the nearest integer, halves away from zero, `zero_point` added, within the integers' range.

    These have 16 bits where they are `short`, else 8. What is no number becomes the zero point. `low` and `high` are
    the range less the zero point. Work tiles are rows of `width` elements, all of them neighbours in memory.
    """

    short: bool = False

    slots = ("x", "out", "width", "scale", "zero_point", "low", "high")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        scale, low, high = (task.f32(n).splat(lanes) for n in ("scale", "low", "high"))
        zero = task.i64("zero_point").cast(I32).splat(lanes)
        width = task.i64("width")
        stored = I16 if self.short else I8
        x, out = task.view("x", F32, width, 1), task.view("out", stored, width, 1)

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            ratio = x[row, at].load(lanes, mask) / scale
            ratio = ratio.ne(ratio).select(0.0, ratio).clamp(low, high)
            out[row, at].store((nearest(ratio).cast(I32) + zero).cast(stored), mask)

        each_register(k, begin, end, width, vector)


@frozen
class DequantizeIntegers(Value):
    """`out = scale * (x - zero_point)` in float32; bits and work tiles as in `QuantizeF32`."""

    signed: bool = True
    short: bool = False

    slots = ("x", "out", "width", "scale", "zero_point")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        scale, zero = task.f32("scale").splat(lanes), task.i64("zero_point").cast(I32).splat(lanes)
        width = task.i64("width")
        x, out = task.view("x", I16 if self.short else I8, width, 1), task.view("out", F32, width, 1)

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            centred = x[row, at].load(lanes, mask).cast(I32, self.signed) - zero
            out[row, at].store(centred.cast(F32) * scale, mask)

        each_register(k, begin, end, width, vector)


@frozen
class WidenHalves(Value):
    """Floats of 16 bits as float32, exactly: IEEE's, or with `brain` those that are the upper half of a float32.

    Work tiles are rows of `width` elements, all of them neighbours in memory.
    """

    brain: bool

    slots = ("x", "out", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        x, out = task.view("x", I16, width, 1), task.view("out", F32, width, 1)

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            bits = x[row, at].load(lanes, mask).cast(I32, signed=False)
            out[row, at].store((bits << 16).bits(vec(F32, lanes)) if self.brain else _widened(bits), mask)

        each_register(k, begin, end, width, vector)


def _widened(bits: Val) -> Val:
    """The exponent moves by a product, also of what is below the normal range; infinities and NaN by themselves."""
    real = vec(F32, bits.lanes)
    size = bits & 0x7FFF
    found = ((size << 13).bits(real) * 2.0**112).bits(bits.type)
    found = (size >= 0x7C00).select(found | 0x7F800000, found)
    return (found | ((bits & 0x8000) << 16)).bits(real)


@frozen
class NarrowFloats(Value):
    """float32 as floats of 16 bits, halves to even: IEEE's, or with `brain` those that are the upper half of a float32.

    What is too large becomes infinite. Work tiles are rows of `width` elements, all of them neighbours in memory.
    """

    brain: bool

    slots = ("x", "out", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        x, out = task.view("x", F32, width, 1), task.view("out", I16, width, 1)

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            bits = x[row, at].load(lanes, mask).bits(vec(I32, lanes))
            size = bits & 0x7FFFFFFF
            found = (_brain if self.brain else _half)(size)
            out[row, at].store((found | ((bits >> 16) & 0x8000)).cast(I16), mask)

        each_register(k, begin, end, width, vector)


def _brain(size: Val) -> Val:
    """The upper half of a float32 without sign, rounded; not-a-number stays one."""
    rounded = (size + ((size >> 16) & 1) + 0x7FFF) >> 16
    return (size > 0x7F800000).select((size >> 16) | 0x40, rounded)


def _half(size: Val) -> Val:
    """A float32 without sign in IEEE's 16 bits: below the normal range the unit is 2**-24, that of 0.5 in float32."""
    least = ((size.bits(vec(F32, size.lanes)) + 0.5).bits(size.type)) - 0x3F000000
    rounded = ((size - 0x38000000) + ((size >> 13) & 1) + 0xFFF) >> 13
    finite = (size < 0x38800000).select(least, rounded)
    large = (size > 0x7F800000).select(((size >> 13) & 0x3FF) | 0x7E00, size.like(0x7C00))
    return (size >= 0x477FF000).select(large, finite)


def each_register(k: Kernel, begin: Val, end: Val, width: Val, body: Callable[[Val, Val, Val | None], None]) -> None:
    """Write the loop over rows and over the registers of each: (row, element, mask)."""
    lanes = k.isa.f32
    whole = width - width % lanes
    with k.loop(end, begin) as row:
        with k.loop(whole, step=lanes) as at:
            body(row, at, None)
        with k.when(whole < width):
            body(row, whole, k.mask(lanes, width - whole))
