"""Pictures of dynamic size, for tests of lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.ir import DType, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation

_DRAWN = np.random.default_rng(9)


def _dilated() -> Subgraphs:
    """Windows of nine pixels far from one another, most of them beyond short images."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 9, 8, 16)), "x")
    filters, bias = _DRAWN.normal(0, 0.1, (24, 3, 3, 16)), _DRAWN.normal(0, 1, 24)
    op = Conv2D(Padding.SAME, dilation_width=20, dilation_height=20)
    return b.model([b.add(op, x, b.constant(filters.astype(np.float32)), b.constant(bias.astype(np.float32)))])


def _planes(scale: float) -> Callable[[], Subgraphs]:
    """Planes of one channel scaled by a factor, interpolated between pixels."""

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (1, 6, 5, 4)), "x")
        return b.model([b.add(Interpolate(Interpolation.LINEAR, (2, 3), scales=(scale, scale)), x)])

    return made


def _antialiased() -> Subgraphs:
    """An image scaled to a size, in wide filters where it shrinks."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 5, 4)), "x")
    op = Interpolate(Interpolation.LINEAR, (1, 2), antialias=True)
    return b.model([b.add(op, x, b.constant([3, 8], dtype=DType.INT64))])


Row = tuple[str, Callable[[], Subgraphs], Callable[[int], list[tuple[int, ...]]]]
PICTURES: list[Row] = [
    ("dilated", _dilated, lambda n: [(1, 9, n + 1, 16)]),
    ("larger planes", _planes(1.7), lambda n: [(1, 6, 5, n + 1)]),
    ("smaller planes", _planes(0.3), lambda n: [(1, 6, 5, n + 4)]),
]
ANTIALIASED: Row = ("antialiased", _antialiased, lambda n: [(1, 6, 3 * n + 1, 4)])
"""Its places are constants for a single size, and computed for many, by other kernels."""
