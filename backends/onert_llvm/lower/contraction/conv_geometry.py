"""The geometry of sliding windows over images, and the offsets of the rows and batches of products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, DType
from onert.ir.ops.arithmetic.window import Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.reduction.pool import Pool2D
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import hint, is_symbolic, largest, maximum, minimum, where_greater
from onert.ir.value import Value
from onert_llvm.command.command import Pointer, Slot
from onert_llvm.kernels.contraction.contraction import Operand
from onert_llvm.kernels.contraction.im2col import Patch
from onert_llvm.kernels.contraction.operands import Matrix, Windows
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.runtime.aligned_memory import Elements

MOST_PATCH_CHANNELS = 4
MOST_PATCH_DEPTH = 512
"""Windows of few channels are gathered first: up to this many channels, and this many elements per window (twice as
many for bytes).
"""

MOST_PATCH_BYTES = 16
"""The same limit for channels of bytes; their windows are gathered only where they extend beyond the image."""


TYPICAL_ROWS, MOST_ROWS = 8, 14
"""Rows of a register tile."""

SKIPPED, SKIPPED_IF_OPEN = 3 / 4, 0.95
"""Padding taps are skipped if tiles meet at most this fraction of the windows' elements; otherwise it does not pay. The
second one is for sizes that are known only at run time, and may be a fraction of the initial ones."""

_FEW_OFFSETS = 256
"""Offset tables up to this size are set element by element if they depend on lengths."""

MOST_LINE_CHANNELS, MOST_LINES, MOST_LINE = 16, 16, 1024
"""In float32, windows with up to this many channels, rows, and elements in a row are multiplied row by row instead of
tap by tap.
"""


@frozen
class Plane(Value):
    """The geometry of a sliding window over images; its fields correspond to the slots of window kernels."""

    images: int
    size: tuple[int, int]
    channels: int
    out: tuple[int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int]

    @property
    def taps(self) -> int:
        """The number of elements of a window in one channel."""
        return self.window[0] * self.window[1]

    def patched(self, channels: int, most: int = MOST_PATCH_CHANNELS) -> bool:
        """Whether windows of these channels, which must be all and at most `most`, are gathered as patches."""
        depth = MOST_PATCH_DEPTH * (2 if most > MOST_PATCH_CHANNELS else 1)
        few = channels == self.channels <= most and self.taps * channels <= depth
        return few and self.window[1] > 1 and self.dilation[1] == 1

    def lined(self, channels: int) -> bool:
        """Whether a window's row is contiguous in memory, and short enough that multiplying it whole is better."""
        few = channels == self.channels <= MOST_LINE_CHANNELS
        small = self.window[0] <= MOST_LINES and self.window[1] * channels <= MOST_LINE
        return few and small and self.window[1] > 1 and self.dilation[1] == 1

    @property
    def near(self) -> bool:
        """Whether windows extend beyond the image by at most half their width on either side."""
        span = (self.window[1] - 1) * self.dilation[1]
        right = (self.out[1] - 1) * self.stride[1] + span - self.pads[1] - (self.size[1] - 1)
        return max(self.pads[1], right) <= (span + 1) // 2

    @property
    def padded(self) -> bool:
        """Whether any window extends beyond the image."""
        ends = (
            (o - 1) * s + (w - 1) * d - p
            for o, s, w, d, p in zip(self.out, self.stride, self.window, self.dilation, self.pads, strict=True)
        )
        return any(self.pads) or any(end >= n for end, n in zip(ends, self.size, strict=True))

    @property
    def term_fractions(self) -> tuple[float, ...]:
        """The fractions of the windows' elements that tiles of 1, 2, ... adjacent outputs meet inside the image, if
        skipping the others pays; empty if it does not, or if sizes are symbolic and windows are not dilated: those only
        leave tiny images.
        """
        if not self._is_open:
            return _term_fractions(*zip(*self._spaces, strict=True), SKIPPED) if self.padded else ()
        if max(self.dilation) == 1 or not self._at_first.padded:  # querying margins would fix a length
            return ()
        down, across = zip(*self._spaces, strict=True)
        return _fractions(down, across, SKIPPED)

    @property
    def skipped_fractions(self) -> tuple[float, ...]:
        """`term_fractions`; for symbolic sizes and dilated windows those of the initial lengths.

        They may decide whether elements are skipped, which changes no result, but not between algorithms. Skipping then
        pays if it may for shorter lengths.
        """
        if not self._is_open:
            return self.term_fractions
        if max(self.dilation) == 1:
            return ()
        return _term_fractions(*zip(*self._at_first._spaces, strict=True), SKIPPED_IF_OPEN)

    @property
    def _at_first(self) -> Plane:
        """The geometry for the initial lengths."""
        (h, w), (down, across), (top, left) = (tuple(map(hint, each)) for each in (self.size, self.out, self.pads))
        return evolve(self, size=(h, w), out=(down, across), pads=(top, left))

    @property
    def _spaces(self) -> tuple[tuple[int, int], ...]:
        return (self.size, self.out, self.window, self.stride, self.dilation, self.pads)

    @property
    def _is_open(self) -> bool:
        return any(map(is_symbolic, chain(*self._spaces)))

    @property
    def rows(self) -> int:
        return self.images * self.out[0] * self.out[1]

    @property
    def pointwise(self) -> bool:
        """Whether windows are single pixels in order, so that the convolution is a plain matrix product."""
        return self.window == self.stride == (1, 1) and self.size == self.out and self.pads == (0, 0)

    @property
    def slots(self) -> dict[str, Slot]:
        (h, w), c = self.size, self.channels
        pairs = {
            "in": self.size,
            "out": self.out,
            "kernel": self.window,
            "stride": self.stride,
            "dilation": self.dilation,
            "pad": self.pads,
        }
        both: dict[str, Slot] = {
            f"{name}_{axis}": pair[i] for name, pair in pairs.items() for i, axis in enumerate("hw")
        }
        return both | {"pixel": c, "row": w * c, "image": h * w * c}


def _fractions(down: tuple[int, ...], across: tuple[int, ...], most: float) -> tuple[float, ...]:
    """`Plane.term_fractions`, from the sizes, outputs, windows, strides, dilations and leading margins of both axes;
    empty if tiles meet more than `most` of the elements, which becomes a condition if sizes are symbolic."""

    def meeting(size: int, out: int, window: int, stride: int, dilation: int, before: int) -> list[int]:
        found = []
        for offset in (index * dilation - before for index in range(window)):
            stop = minimum(out, (size - 1 - offset) // stride + 1)
            found.append(maximum(stop - maximum(0, -(offset // stride)), 0))
        return found

    lines, lengths = sum(meeting(*down)) / (down[1] * down[2]), meeting(*across)

    def part(rows: int) -> Any:
        """The fraction that tiles of this many rows meet, averaged over where they begin."""
        met = (where_greater(length, 0, minimum(length + rows - 1, across[1]), 0) for length in lengths)
        return lines * sum(met) / (across[1] * across[2])

    return tuple(map(part, range(1, MOST_ROWS + 1))) if part(TYPICAL_ROWS) <= most else ()


_term_fractions = lru_cache(256)(_fractions)


def plane(op: Conv2D | DepthwiseConv2D, x: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> Plane:
    """The geometry of an NHWC convolution; weights are `[n, height, width, channels]`."""
    rows = Window(weight[1], op.stride_height, op.dilation_height, op.padding.along(0))
    columns = Window(weight[2], op.stride_width, op.dilation_width, op.padding.along(1))
    return _slid(x, out, rows, columns)


def pooled_plane(op: Pool2D, x: Sequence[int], out: Sequence[int]) -> Plane:
    """The geometry of an NHWC pooling operation."""
    return _slid(x, out, *op.windows())


def _slid(x: Sequence[int], out: Sequence[int], rows: Window, columns: Window) -> Plane:
    return Plane(
        x[0],
        (x[1], x[2]),
        x[3],
        (out[1], out[2]),
        (rows.size, columns.size),
        (rows.stride, columns.stride),
        (rows.dilation, columns.dilation),
        (rows.before(x[1]), columns.before(x[2])),
    )


def counts(op: Pool2D, x: Sequence[int]) -> Array:
    """The number of pixels that count in each output's window, `[rows, columns]`."""
    down, across = op.counted(x[1], x[2])
    return down[:, None] * across


def rows_of(source: Slot, depth: int, lda: int | None = None) -> tuple[Operand, dict[str, Slot]]:
    """The rows of a matrix, with `depth` elements each and `lda` elements apart (contiguous by default)."""
    return Matrix(), {"a": source, "k": depth, "lda": depth if lda is None else lda}


def windows_of(
    geometry: Plane,
    channels: int,
    source: Slot,
    padding: Callable[[], Slot],
    patches: Callable[[Patch], Operand] | None = None,
    pointwise: bool = True,
    most: int = MOST_PATCH_CHANNELS,
    skips: bool = False,
) -> tuple[Operand, dict[str, Slot]]:
    """The windows of a convolution over `channels`; a plain matrix if they are single pixels and that is allowed.
    Windows with up to `most` channels are read as `patches` if such a form is given; `padding` makes the pixel for
    positions outside the image. With `skips`, tiles skip the taps that are outside the image for all their rows.
    """
    if pointwise and geometry.pointwise:
        return rows_of(source, channels, geometry.channels)
    slots = geometry.slots | {"input": source, "zero": padding()}
    if patches is not None and geometry.patched(channels, most):
        height, width = geometry.window
        return patches(Patch(height, width * channels)), slots
    return Windows(skips), {**slots, "k": channels}


def offsets_of(
    lowering: Lowering, sides: Sequence[Sequence[int]], batches: Sequence[int], sizes: Sequence[int]
) -> Pointer:
    """The offset in elements of each batch's part of every side: [batches, sides]. The batches of the sides broadcast
    to `batches`; `sizes` are the elements of a side's part.
    """
    steps = [[n * math.prod(own[i + 1 :]) for i in range(len(own))] for own, n in zip(sides, sizes, strict=True)]
    return strided_offsets(lowering, sides, batches, steps)


def strided_offsets(
    lowering: Lowering, sides: Sequence[Sequence[int]], batches: Sequence[int], strides: Sequence[Sequence[int]]
) -> Pointer:
    """The same for sides whose parts are as many elements apart along each dimension.

    The table is not rebuilt for each length if it is small (its elements are then set one by one), or if the table for
    the greatest length begins with it.
    """
    ranks = tuple(map(len, sides))
    dims, steps = [d for own in sides for d in own], [n for own in strides for n in own]
    if not any(map(is_symbolic, (*dims, *batches))) and math.prod(batches) * len(sides) <= _FEW_OFFSETS:
        found: list[int] = []
        for at in np.ndindex(*batches):
            for own, apart in zip(sides, strides, strict=True):
                tail = at[len(at) - len(own) :]
                found.append(sum(i * n for i, d, n in zip(tail, own, apart, strict=True) if d != 1))
        return lowering.computed(Elements(DType.INT64, (math.prod(batches), len(sides))), *found)
    first, *rest = batches or (1,)
    following = [len(own) == len(batches) and are_same(own[0], first) for own in sides]
    others = [d for own, follows in zip(sides, following, strict=True) for d in own[follows:]]
    if is_symbolic(first) and not any(map(is_symbolic, (*rest, *others, *steps))):
        whole = largest(first)  # the table for fewer batches is a prefix of it
        sides = [[whole, *own[1:]] if follows else own for own, follows in zip(sides, following, strict=True)]
        batches = [whole, *rest]
    return lowering.computed(partial(_offsets, ranks), *(d for own in sides for d in own), *batches, *steps)


@of_lengths
def _offsets(ranks: tuple[int, ...], *numbers: int) -> Array:
    """The table for known numbers: the dimensions of each side's batches (`ranks` has their counts), those of all
    batches, and the strides of each side's.
    """
    count = sum(ranks)
    batches = numbers[count : len(numbers) - count]
    found: Array = np.zeros((*batches, len(ranks)), np.int64)
    at = 0
    for side, rank in enumerate(ranks):
        for axis in range(rank):
            size, stride = numbers[at], numbers[len(numbers) - count + at]
            along = np.arange(size, dtype=np.int64) * stride
            found[..., side] += along.reshape(-1, *(1,) * (rank - 1 - axis))
            at += 1
    return found.reshape(-1, len(ranks))
