"""Element type conversions: quantise, dequantise, rescale, widen and narrow floats, take parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F16, F32, I16, I32, Kernel, Val, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, nearest


@frozen
class Conversion(Value):
    """`out = function(x)`, element by element. Work tiles are rows of `width` elements, contiguous on both sides."""

    @property
    def ends(self) -> tuple[Kind, Kind]:
        """The element kinds that are read and written."""
        raise NotImplementedError

    @property
    def own(self) -> tuple[str, ...]:
        """The slots of the function's parameters."""
        return ()

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "out", "width", *self.own)

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        """Load the parameters and return the function of a register."""
        raise NotImplementedError

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        function, width, lanes = self.bind(k, task), task.i64("width"), k.isa.f32
        pairs = zip(("x", "out"), self.ends, strict=True)
        x, out = (task.view(name, kind.memory, width, 1) for name, kind in pairs)

        with k.loop(end, begin) as row:
            for at, mask in k.registers(width, free=False):
                out[row, at].store(function(x[row, at].load(lanes, mask)), mask)


@frozen
class QuantizeF32(Conversion):
    """`out = x / scale` to the nearest integer, halves away from zero, plus `zero_point`, within the integers' range.

    NaN becomes the zero point. `low` and `high` are the range less the zero point.
    """

    kind: Kind = Kind.I8

    own = ("scale", "zero_point", "low", "high")

    @property
    def ends(self) -> tuple[Kind, Kind]:
        return Kind.F32, self.kind

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        scale, low, high = (task.f32(n).splat(k.isa.f32) for n in ("scale", "low", "high"))
        zero = task.i64("zero_point").cast(I32).splat(k.isa.f32)

        def quantized(x: Val) -> Val:
            ratio = x / scale
            ratio = ratio.ne(ratio).select(0.0, ratio).clamp(low, high)
            return (nearest(ratio).cast(I32) + zero).cast(self.kind.memory)

        return quantized


@frozen
class DequantizeIntegers(Conversion):
    """`out = scale * (x - zero_point)` in float32."""

    kind: Kind = Kind.I8

    own = ("scale", "zero_point")

    @property
    def ends(self) -> tuple[Kind, Kind]:
        return self.kind, Kind.F32

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        scale, zero = task.f32("scale").splat(k.isa.f32), task.i64("zero_point").cast(I32).splat(k.isa.f32)
        return lambda x: (x.cast(I32, self.kind.signed) - zero).cast(F32) * scale


@frozen
class Rescale(Conversion):
    """`out = (x - x_zero)` times a multiplier, clamped to [`low`, `high`]; slot `columns` is one register."""

    source: Kind
    target: Kind
    scaling: Scaling

    @property
    def ends(self) -> tuple[Kind, Kind]:
        return self.source, self.target

    @property
    def own(self) -> tuple[str, ...]:
        return ("x_zero", "low", "high", *Requantize(self.scaling).slots)

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        how = Requantize(self.scaling)
        columns = how.lanes(k, task, k.index(0))
        zero, low, high = (task.i64(name).cast(I32).splat(k.isa.f32) for name in ("x_zero", "low", "high"))

        def rescaled(x: Val) -> Val:
            centred = x.cast(I32, self.source.signed) - zero
            value = how.with_zero_point(task, columns["bias"] + centred, columns)
            return value.clamp(low, high).cast(self.target.memory)

        return rescaled


@frozen
class WidenHalves(Conversion):
    """16-bit floats as float32, exactly: IEEE float16, or bfloat16 with `brain`."""

    brain: bool

    ends = (Kind.U16, Kind.F32)

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        def widened(x: Val) -> Val:
            if k.isa.converts_halves and not self.brain:
                return x.bits(vec(F16, x.lanes)).cast(F32)
            bits = x.cast(I32, signed=False)
            return (bits << 16).bits(vec(F32, x.lanes)) if self.brain else _widened(bits)

        return widened


def _widened(bits: Val) -> Val:
    """Scale the exponent by a multiplication, which also handles subnormals; infinities and NaN separately."""
    real = vec(F32, bits.lanes)
    size = bits & 0x7FFF
    found = ((size << 13).bits(real) * 2.0**112).bits(bits.type)
    found = (size >= 0x7C00).select(found | 0x7F800000, found)
    return (found | ((bits & 0x8000) << 16)).bits(real)


@frozen
class NarrowFloats(Conversion):
    """float32 as 16-bit floats, ties to even: IEEE float16, or bfloat16 with `brain`.

    Numbers that are too large become infinite.
    """

    brain: bool

    ends = (Kind.F32, Kind.U16)

    def bind(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        def narrowed(x: Val) -> Val:
            if k.isa.converts_halves and not self.brain:
                return x.cast(F16).bits(vec(I16, x.lanes))
            bits = x.bits(vec(I32, x.lanes))
            size = bits & 0x7FFFFFFF
            found = (_brain if self.brain else _half)(size)
            return (found | ((bits >> 16) & 0x8000)).cast(I16)

        return narrowed


def _brain(size: Val) -> Val:
    """The rounded upper half of a float32 without its sign; NaN stays NaN."""
    rounded = (size + ((size >> 16) & 1) + 0x7FFF) >> 16
    return (size > 0x7F800000).select((size >> 16) | 0x40, rounded)


def _half(size: Val) -> Val:
    """A float32 without its sign as float16: below the normal range the unit is 2**-24, the ulp of 0.5 in float32."""
    least = ((size.bits(vec(F32, size.lanes)) + 0.5).bits(size.type)) - 0x3F000000
    rounded = ((size - 0x38000000) + ((size >> 13) & 1) + 0xFFF) >> 13
    finite = (size < 0x38800000).select(least, rounded)
    large = (size > 0x7F800000).select(((size >> 13) & 0x3FF) | 0x7E00, size.like(0x7C00))
    return (size >= 0x477FF000).select(large, finite)


class Part(Enum):
    """The part of a complex number to extract."""

    REAL = "real"
    IMAGINARY = "imaginary"
    SIZE = "size"


@frozen
class ComplexParts(Value):
    """`out[width]` from `x[width]` complex numbers, for each row; work tiles are rows."""

    part: Part

    @property
    def name(self) -> str:
        return f"complex_{self.part.value}"

    slots = ("x", "out", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, lanes = task.i64("width"), k.isa.f32
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", F32, width * 2)[row].address, F32, 2, 1)
            out = k.view(task.view("out", F32, width)[row].address, F32, 1)
            for at, count in k.pieces(width, lanes):
                self._some(k, x, out, at, count)

    def _some(self, k: Kernel, x: View, out: View, at: Val, lanes: int) -> None:
        low, high = (x[at, i * lanes].load(lanes) for i in range(2))
        if lanes == 1:
            real, imaginary = low, high
        else:
            real, imaginary = (low.shuffle(range(first, 2 * lanes, 2), high) for first in range(2))
        found = {Part.REAL: real, Part.IMAGINARY: imaginary}
        out[at].store(found[self.part] if self.part in found else _size(k, real, imaginary))


_LEAST, _MOST, _TURN = 0x00800000, 0x7E800000, 0x7F000000
"""The exponents of 2**-126 and 2**126, and the sum of the exponents of a number and its inverse."""


def _size(k: Kernel, real: Val, imaginary: Val) -> Val:
    """The length of a vector without overflow or underflow: a power of two first scales both parts to near 1."""
    longest = real.call("fabs").max(imaginary.call("fabs"))
    exponent = (longest.bits(vec(I32, real.lanes)) & 0x7F800000).max(_LEAST).min(_MOST)
    back, near = exponent.bits(real.type), (-exponent + _TURN).bits(real.type)
    a, b = real * near, imaginary * near
    return k.fma(a, a, b * b).call("sqrt") * back
