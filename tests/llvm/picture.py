"""Convolutions for kernel tests: shapes, task slots of their windows, and windows gathered by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from onert_llvm.lower.contraction.conv_geometry import Plane

from .harness import Array


@frozen
class Picture:
    """A convolution's geometry. `pads` are at the top and left; the output size determines the others."""

    images: int
    size: tuple[int, int]
    channels: int
    window: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    out: tuple[int, int] = (0, 0)

    @property
    def rows(self) -> int:
        return self.images * self.out[0] * self.out[1]

    @property
    def near(self) -> bool:
        """Whether windows extend beyond the image by at most half their width."""
        pairs = (self.size, self.channels, self.out, self.window, self.stride, self.dilation, self.pads)
        return Plane(self.images, *pairs).near

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (self.images, *self.size, self.channels)

    def slots(self, source: Array, zero: Array) -> dict[str, Any]:
        (h, w), c = self.size, self.channels
        names = ("in", "out", "kernel", "stride", "dilation", "pad")
        pairs = (self.size, self.out, self.window, self.stride, self.dilation, self.pads)
        both = {f"{n}_{axis}": pair[i] for n, pair in zip(names, pairs, strict=True) for i, axis in enumerate("hw")}
        return {**both, "input": source, "zero": zero, "pixel": c, "row": w * c, "image": h * w * c}

    def windows(self, source: Array, padding: int) -> Array:
        """`[rows, taps, channels]`, in float64."""
        (h, w), (kh, kw), (oh, ow) = self.size, self.window, self.out
        found = np.full((self.images, oh, ow, kh, kw, self.channels), padding, np.float64)
        for oy, ox, ky, kx in np.ndindex(oh, ow, kh, kw):
            y = oy * self.stride[0] + ky * self.dilation[0] - self.pads[0]
            x = ox * self.stride[1] + kx * self.dilation[1] - self.pads[1]
            if 0 <= y < h and 0 <= x < w:
                found[:, oy, ox, ky, kx] = source[:, y, x]
        return found.reshape(self.rows, kh * kw, self.channels)


def same(
    images: int, size: tuple[int, int], channels: int, window: tuple[int, int], stride: int = 1, dilation: int = 1
) -> Picture:
    """The geometry with SAME padding."""
    out = tuple(-(-n // stride) for n in size)
    reach = [(k - 1) * dilation + 1 for k in window]
    pads = [max((o - 1) * stride + r - n, 0) // 2 for o, r, n in zip(out, reach, size, strict=True)]
    return Picture(
        images, size, channels, window, (stride, stride), (dilation, dilation), (pads[0], pads[1]), (out[0], out[1])
    )


FEW_CHANNELS = (
    same(1, (17, 13), 3, (3, 3), 2),
    same(2, (9, 8), 1, (10, 4), 2),
    same(1, (12, 20), 3, (7, 7), 2),
)
PICTURES = (
    same(1, (1, 1), 1, (1, 1)),
    same(2, (9, 7), 5, (3, 3), 2),
    same(1, (5, 11), 19, (3, 3)),
    same(1, (8, 9), 16, (5, 5), 1, 2),
    same(3, (4, 6), 32, (2, 3), 1),
    same(1, (7, 7), 48, (3, 3), 1),
    same(1, (5, 9), 64, (3, 3), 2),
    same(2, (6, 5), 150, (5, 3), 1),
    Picture(2, (6, 9), 8, (3, 2), (2, 3), (1, 2), (0, 0), (2, 3)),
    Picture(1, (3, 3), 21, (5, 5), (1, 1), (1, 1), (3, 3), (5, 5)),
    same(1, (2, 75), 66, (1, 11), 1, 3),
    same(1, (1, 40), 68, (3, 23), 3, 2),
)
