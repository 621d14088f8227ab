"""Softmax of bytes in TFLite's fixed-point arithmetic by tables in registers, 64 elements at a time (AVX-512 VBMI).

Exponentials depend on how far an element is below its row's maximum, and so do results once the sum is known. The sum
takes three tables, one for each byte of an exponential; a fourth table holds the results of a row.
"""

from __future__ import annotations

from functools import reduce

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val, intrinsic, vec
from onert_llvm.kernels.arithmetic import bytes_of_four
from onert_llvm.kernels.arithmetic.byte_table import loaded, looked_up
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS, packed, unpacked
from onert_llvm.target.isa import Isa, Lookup

from .integer_softmax import LARGEST, greatest, multiply, reciprocal

PLANES = 3
"""Bytes of an exponential in Q12."""
_LANES = 64
LEAST_POWER = 1 << 21
"""An exponential in Q0 below which an 8-bit result is 0: the sum, at least 1, does not increase it when divided by."""


MOST_NARROW = 64
"""The most bytes of a row that fits in one register."""


def runs(isa: Isa) -> bool:
    """Whether the target has the instructions."""
    return isa.rounds and isa.lookup is Lookup.PERMUTE


@frozen
class TabledSoftmax(Value):
    """Rows of `width` bytes to bytes, as `SoftmaxInt8` computes them; work tiles are rows.

    `powers` is as there; `planes` are the bytes of `shares`, the lowest first, 256 of each. Results are 0 except for
    distances in the first `tables` times 64.
    """

    tables: int
    signed: bool = True

    name = "softmax_tables"
    slots = ("x", "out", "width", "powers", "planes")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, low = task.i64("width"), -128 if self.signed else 0
        x, out = (task.view(name, I8, width, 1) for name in ("x", "out"))
        planes = [loaded(k, task.view("planes", I8, 256, 1)[i]) for i in range(PLANES)]
        none = k.zeros(I8, _LANES)
        nothing = k.const(I8, low).splat(_LANES)
        with k.loop(end, begin) as r:
            row, result = x[r], out[r]
            top = greatest(k, Kind.I8 if self.signed else Kind.U8, row, width).splat(_LANES)
            sums = [k.var(k.zeros(I64, _LANES // 8)) for _ in range(PLANES)]
            with k.loop(width, step=_LANES, nonempty=True) as at:
                mask = self._mask(k, width - at)
                below = top - row[at].load(_LANES, mask)
                for table, total in zip(planes, sums, strict=True):
                    found = mask.select(looked_up(k, table, below), none)
                    total.set(total.get() + intrinsic(k.b, _ADD, vec(I64, _LANES // 8), found, none))
            whole = k.index(0)
            for i, each in enumerate(sums):
                whole = whole + (each.get().over_lanes(Val.__add__) << (8 * i))
            scale, bits = reciprocal(k, whole.min(LARGEST))
            results = [self._results(k, task, i, scale, bits + 23, low) for i in range(self.tables)]
            results += [nothing] * (4 - self.tables)
            with k.loop(width, step=_LANES, nonempty=True) as at:
                mask = self._mask(k, width - at)
                result[at].store(looked_up(k, results, top - row[at].load(_LANES, mask)), mask)

    def _mask(self, k: Kernel, left: Val) -> Val:
        return k.iota(I8, _LANES) < left.min(_LANES).cast(I8).splat(_LANES)

    def _results(self, k: Kernel, task: Task, number: int, scale: Val, exponent: Val, low: int) -> Val:
        """The results for 64 distances; packing saturates them to bytes."""
        powers, half = task.view("powers", I32, 1), k.const(I64, 1) << (exponent - 1)
        factor = scale.cast(I32).cast(I64)
        words = []
        for first in range(number * _LANES, (number + 1) * _LANES, 16):
            parts = []
            for at in (first, first + 8):
                value = multiply(powers[at].load(8).cast(I64), factor.splat(8))
                parts.append((((value + half.splat(8)) >> exponent.splat(8)) + low).cast(I32))
            words.append(parts[0].shuffle(range(16), parts[1]))
        return bytes_of_four.packed_to_type(k, task, self.signed, words)


@frozen
class NarrowSoftmax(Value):
    """The same for rows of at most `MOST_NARROW` bytes, each in one register; work tiles are rows.

    `planes` are the bytes of the exponentials in Q0, the lowest first, 256 of each. Those in Q12 are rounded from them.
    """

    signed: bool = True

    name = "softmax_narrow"
    slots = ("x", "out", "width", "planes")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, low = task.i64("width"), -128 if self.signed else 0
        x, out = (task.view(name, I8, width, 1) for name in ("x", "out"))
        planes = [loaded(k, task.view("planes", I8, 256, 1)[i]) for i in range(REGISTERS)]
        none, mask = k.zeros(I8, _LANES), k.iota(I8, _LANES) < width.cast(I8).splat(_LANES)
        with k.loop(end, begin) as r:
            row = x[r].load(_LANES, mask)
            row = row if self.signed else row ^ -128
            below = mask.select(row, none - 128).over_lanes(Val.max).splat(_LANES) - row
            found = [mask.select(looked_up(k, plane, below), none) for plane in planes]
            powers = [word.bits(vec(I32, _LANES // 4)) for word in unpacked(k, found)]
            shares = [(power + (1 << 11)).lshr(12) for power in powers]
            total = reduce(Val.__add__, shares).over_lanes(Val.__add__)
            scale, bits = reciprocal(k, total.cast(I64))
            factor, exponent = (scale & LARGEST).splat(_LANES // 8), (bits + 23).splat(_LANES // 8)
            results = [self._scaled(k, power, factor, exponent) + low for power in powers]
            out[r].store(packed(k, task, False, self.signed, results), mask)

    def _scaled(self, k: Kernel, powers: Val, factor: Val, exponent: Val) -> Val:
        """The products with a factor: even lanes, then odd lanes."""
        wide = powers.bits(vec(I64, powers.lanes // 2))
        half = (exponent.like(1) << exponent) >> 1
        even, odd = (
            ((each * factor + (1 << 30)).lshr(31) + half).lshr(exponent) for each in (wide & LARGEST, wide.lshr(32))
        )
        return (even | (odd << 32)).bits(powers.type)


_ADD = "llvm.x86.avx512.psad.bw.512"
"""Sums of eight bytes each."""
