"""Dynamic-range products: floats are quantised just before they are multiplied, and the sums become floats again.

The arithmetic is that of `onert.ir.ops.arithmetic.dynamic_range`, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from attrs import frozen

from onert.ir.ops.arithmetic.dynamic_range import TOGETHER
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I8, I32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.interleave_x86 import REGISTERS, neighbours
from onert_llvm.kernels.arithmetic.requantize_int8 import BELOW_HALF, nearest
from onert_llvm.target.isa import Isa

from .epilogue import PLAIN, Epilogue
from .extremes import SLOTS, Extremes, extremes, least_and_greatest
from .int8_microkernel import offset
from .scaled_results import Real

_CHUNKED = ("x", "size", "chunk", "chunks")
"""Items of `size` elements, in `chunks` pieces of `chunk` each; the last may be shorter."""

_CHAINS = 4
"""Registers that are compared in turn: each depends on its own previous comparison."""


def _piece(task: Task, tile: Val) -> tuple[Val, Val, Val]:
    """The item of a work tile, and its first and last element within the item."""
    item, part = tile // task.i64("chunks"), tile % task.i64("chunks")
    first = part * task.i64("chunk")
    return item, first, (first + task.i64("chunk")).min(task.i64("size"))


@frozen
class Extent(Value):
    """The minimum and maximum of each piece and 0: `out[item, piece] = (low, high)`. A work tile is a piece.

    They are stored as bits, as in `Extremes`.
    """

    slots = (*_CHUNKED, "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as tile:
            item, first, last = _piece(task, tile)
            found = extent(k, task.view("x", F32, task.i64("size"), 1)[item], first, last)
            out = task.view("out", I32, 2, 1)[tile]
            for i, value in enumerate(found.over_lanes()):
                out[i].store(value)


def extent(k: Kernel, row: View, first: Val, last: Val) -> Extremes:
    """The extremes of a range of a row."""
    lanes = k.isa.f32
    found, *others = (extremes(k, lanes) for _ in range(_CHAINS))
    chains = (found, *others)
    whole = last - (last - first) % lanes
    several = last - (last - first) % (lanes * _CHAINS)
    with k.loop(several, first, step=lanes * _CHAINS) as at:
        for chain in range(_CHAINS):
            chains[chain].see(row[at + chain * lanes].load(lanes))
    with k.loop(whole, several, step=lanes) as at:
        found.see(row[at].load(lanes))
    with k.when(whole < last):
        found.see(row[whole].load(lanes, k.mask(lanes, last - whole)))
    for other in others:
        found.join(other.below.get(), other.above.get())
    return found


@frozen
class QuantizeDynamic(Value):
    """Quantise items to bytes in `out`; `scales` gets each item's float32 scale, `offsets` its 32-bit zero point.

    Bytes are signed, or have 128 added to them. `extents` are the extremes of each item's `parts`, unless pieces
    are `whole` items, whose range is found here; `padding` points to `channels` bytes per item, which are set to its
    zero point. A work tile is a piece.
    """

    asymmetric: bool
    signed: bool = False
    whole: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        extents = () if self.whole else ("extents", "parts")
        return (*_CHUNKED, *extents, "out", "scales", "offsets", "padding", "channels")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        with k.loop(end, begin) as tile:
            item, first, last = _piece(task, tile)
            row = task.view("x", F32, task.i64("size"), 1)[item]
            seen = extent(k, row, first, last).over_lanes() if self.whole else self._seen(k, task, item)
            low, high = least_and_greatest(k, *seen)
            scale, inverse, zero = parameters(k, low, high, self.asymmetric)
            with k.when(first.eq(0)):
                self._parameters(k, task, item, scale, zero)
            out = task.view("out", I8, task.i64("size"), 1)[item]

            def four(at: Val) -> None:
                half = k.f32(0.5).splat(lanes)
                values = [row[at + i * lanes].load(lanes) for i in range(REGISTERS)]
                words = [_rounded(x * inverse.splat(lanes), half, zero, self.asymmetric) for x in values]
                out[at].store(self._stored(k, neighbours(k, words)))

            def write(clamped: bool) -> None:
                start = first
                if not clamped and k.isa.triple.startswith("x86_64") and lanes % TOGETHER == 0:
                    start = last - (last - first) % (lanes * REGISTERS)
                    with k.loop(start, first, step=lanes * REGISTERS) as at:
                        four(at)
                for at, mask in k.registers(last, start, free=False):
                    x, half = row[at].load(lanes, mask), halves(k, at, task.i64("size"), whole=mask is None)
                    bytes_ = as_bytes(x, half, inverse, zero, self.asymmetric, clamped)
                    out[at].store(self._stored(k, bytes_), mask)

            span = (high - low) * inverse
            with k.either((span - span).eq(0.0)) as (finite, otherwise):
                with finite:
                    write(clamped=False)
                with otherwise:
                    write(clamped=True)

    def _seen(self, k: Kernel, task: Task, item: Val) -> tuple[Val, Val]:
        parts = task.view("extents", I32, task.i64("parts") * 2, 2, 1)[item]
        found = extremes(k, 1)
        with k.loop(task.i64("parts"), nonempty=True) as i:
            found.join(*(parts[i, j].load() for j in range(2)))
        return found.below.get(), found.above.get()

    def _parameters(self, k: Kernel, task: Task, item: Val, scale: Val, zero: Val) -> None:
        task.view("scales", F32, 1)[item].store(scale)
        task.view("offsets", I32, 1)[item].store(zero)
        padding = task.view("padding", I8, task.i64("channels"), 1)[item]
        with k.loop(task.i64("channels")) as c:
            padding[c].store(self._stored(k, zero.cast(I8)))

    def _stored(self, k: Kernel, value: Val) -> Val:
        return value if self.signed else value ^ -128


def halves(k: Kernel, at: Val, size: Val, *, whole: bool) -> Val:
    """What is added to round each element of the register at `at`: a half, or at a row's end the float just below it.

    `whole` registers end within the row.
    """
    lanes = k.isa.f32
    half = k.f32(0.5).splat(lanes)
    if whole and lanes % TOGETHER == 0:
        return half
    return k.mask(lanes, size - size % TOGETHER - at).select(half, BELOW_HALF)


def as_bytes(x: Val, half: Val, inverse: Val, zero: Val, asymmetric: bool, clamped: bool = True) -> Val:
    """A register of floats as bytes; NaN becomes the zero point.

    If all elements and the inverse are finite, products are at most 128 or 256 and need not be `clamped`.
    """
    x = x * inverse.splat(x.lanes)
    if clamped:
        most = 256.0 if asymmetric else 127.0
        x = x.ne(x).select(0.0, x).clamp(-most, most)
    rounded = _rounded(x, half, zero, asymmetric)
    return (rounded.clamp(-128, 127) if asymmetric else rounded).cast(I8)


def _rounded(x: Val, half: Val, zero: Val, asymmetric: bool) -> Val:
    rounded = (x + half.call("copysign", x)).cast(I32)
    return rounded + zero.splat(x.lanes) if asymmetric else rounded


def parameters(k: Kernel, low: Val, high: Val, asymmetric: bool) -> tuple[Val, Val, Val]:
    """Scale, its inverse and zero point of elements from `low` to `high`, a range that contains 0.

    The scale is not finite if `low` or `high` is not: NaN if the range is asymmetric.
    """
    return _asymmetric(k, low, high) if asymmetric else _symmetric(k, low, high)


def _symmetric(k: Kernel, low: Val, high: Val) -> tuple[Val, Val, Val]:
    """Scale, its inverse and zero point: the largest magnitude maps to 127."""
    largest = (-low).max(high)  # NaN where `high` is
    empty = largest.eq(0.0)
    safe = empty.select(1.0, largest)
    return empty.select(1.0, safe / 127.0), k.f32(127.0) / safe, k.const(I32, 0)


def _asymmetric(k: Kernel, low: Val, high: Val) -> tuple[Val, Val, Val]:
    """The same if the range maps to -128 to 127."""
    empty = low.eq(high)
    wide = empty.select(1.0, (high - low).cast(F64) / 255.0)
    wide = wide + (wide - wide)  # an infinite range has no scale
    scale = wide.cast(F32)
    below, above = low.cast(F64) / wide, high.cast(F64) / wide
    minus, plus = k.const(F64, -128.0) - below, k.const(F64, 127.0) - above
    nearer = below.call("fabs") + 128.0 < above.call("fabs") + 127.0
    zero = nearest(nearer.select(minus, plus).clamp(-128.0, 127.0)).cast(I32)
    return scale, k.f32(1.0) / scale, empty.select(0, zero)


@frozen
class Dynamic(Real):
    """Converts sums of such bytes to floats: times the scales of row and filter, plus the bias, then the epilogue.

    `filter_first` determines the order of the scales in the product. Slots `row_scales` and `row_offsets` have an
    element per row, or one if all rows are `alike`; `sums` (32 bits) and `filter_scales` have one per column, padded to
    whole registers. With `ranged`, the extremes of the stored values are written too.
    """

    epilogue: Epilogue = PLAIN
    asymmetric: bool = False
    filter_first: bool = False
    alike: bool = False
    ranged: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        moved = ("row_offsets",) if self.asymmetric else ()
        ranges = SLOTS if self.ranged else ()
        return ("sums", "filter_scales", "row_scales", *moved, *ranges, *self.epilogue.slots)

    def observer(self, k: Kernel) -> Extremes | None:
        return extremes(k, k.isa.f32) if self.ranged else None

    def start(self, k: Kernel, task: Task, column: Val) -> Val:
        """Initial accumulators such that the sums become those of the bytes as stored, less the zero point if all rows
        have the same one.
        """
        sums = task.view("sums", I32, 1)[column].load(k.isa.f32)
        moved = k.const(I32, moved_by(k.isa))
        if self.asymmetric and self.alike:
            moved = moved + task.view("row_offsets", I32, 1)[0].load()
        return sums * (-moved).splat(k.isa.f32)

    def real(self, k: Kernel, task: Task, column: Val, mask: Val | None) -> Callable[[Val, Val], Val]:
        lanes = k.isa.f32
        filters = task.view("filter_scales", F32, 1)[column].load(lanes)
        sums = task.view("sums", I32, 1)[column].load(lanes) if self.asymmetric and not self.alike else None
        bias = self.epilogue.start(k, task, column, lanes, mask) if self.epilogue.bias else None

        def factors(row: Val | int) -> list[Val]:
            own = task.view("row_scales", F32, 1)[row].load().splat(lanes)
            return [filters, own] if self.filter_first else [own * filters]

        every = factors(0) if self.alike else None

        def value(acc: Val, row: Val) -> Val:
            if sums is not None:
                acc = acc - sums * task.view("row_offsets", I32, 1)[row].load()
            out = reduce(Val.__mul__, every or factors(row), acc.cast(F32))
            return out if bias is None else out + bias

        return value


def moved_by(isa: Isa) -> int:
    """What the dot product adds to signed bytes."""
    return offset(isa, True)
