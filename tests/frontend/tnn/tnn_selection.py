"""NumPy versions of TNN's layers that select, count and repeat elements, and a test layer of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onert.ir import Array

MOST = (1 << 31) - 1


def arg_reduce(s: Any) -> list[Array]:
    largest, axis, _, last = (*s.ints, 0)[:4]
    find = np.argmax if largest else np.argmin
    found = s.x.shape[axis] - 1 - find(np.flip(s.x, axis), axis) if last else find(s.x, axis)
    return [np.expand_dims(found, axis).astype(np.int32)]


def normalize(s: Any) -> list[Array]:
    x, p = s.x, s.ints[4]
    by = {
        1: np.abs(x).sum(1, keepdims=True),
        2: np.maximum(np.sqrt((x * x).sum(1, keepdims=True)), s.numbers[1]),
        MOST: x.max(1, keepdims=True),
        -MOST - 1: x.min(1, keepdims=True),
    }[p]
    return [x / by]


def pad(s: Any) -> list[Array]:
    rank = s.ints[0]
    margins = list(zip(s.ints[1 : 1 + rank], s.ints[1 + rank : 1 + 2 * rank], strict=True))
    if s.ints[1 + 2 * rank]:
        return [np.pad(s.x, margins, "reflect")]
    return [np.pad(s.x, margins, constant_values=s.numbers[2 + 2 * rank])]


def signed_mul(s: Any) -> list[Array]:
    alpha, beta, gamma = s.numbers
    y = ((np.sign(s.x - np.float32(alpha)) + beta) / gamma).astype(np.float32)
    return [y * y[:, :1]]


def top(s: Any) -> list[Array]:
    axis, largest, _, count = s.ints
    order = np.argsort(-s.x if largest else s.x, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return [np.take_along_axis(s.x, places, axis), places.astype(np.int32)][: len(s.outputs)]


def one_hot(s: Any) -> list[Array]:
    axis, depth, off, on = s.ints
    line = np.arange(depth).reshape(-1, *(1,) * (s.x.ndim - axis))
    return [np.where(np.expand_dims(s.x.astype(int), axis) == line, on, off).astype(np.float32)]


def grid_sample(s: Any) -> list[Array]:
    """Bilinear, zeros outside, corners at the outer borders."""
    x, grid = s.x, s.net.float(s.inputs[1])
    n, c, h, w = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]), np.float32)
    for b, i, j in np.ndindex(n, *grid.shape[1:3]):
        across, down = ((grid[b, i, j] + 1) * (w, h) - 1) / 2
        left, high = int(np.floor(across)), int(np.floor(down))
        for row in (high, high + 1):
            for column in (left, left + 1):
                if 0 <= row < h and 0 <= column < w:
                    out[b, :, i, j] += x[b, :, row, column] * (1 - abs(down - row)) * (1 - abs(across - column))
    return [out]


SELECTION: dict[str, Callable[[Any], list[Array]]] = {
    "ArgMaxOrMin": arg_reduce,
    "Cast": lambda s: [s.x.astype({0: np.float32, 3: np.int32}[s.ints[0]])],
    "Expand": lambda s: [np.broadcast_to(s.x, np.broadcast_shapes(s.x.shape, s.ints[1:]))],
    "GridSample": grid_sample,
    "Normalize": normalize,
    "OneHot": one_hot,
    "PadV2": pad,
    "Repeat": lambda s: [np.tile(s.x, s.ints)],
    "Shape": lambda s: [np.array(s.x.shape, np.int32)],
    "SignedMul": signed_mul,
    "Size": lambda s: [np.array([s.x.size], np.int32)],
    "Tile": lambda s: [np.tile(s.x, s.ints)],
    "TopK": top,
}
LAYERS = {
    "where the largest stands": "ArgMaxOrMin l 1 1 x y 1 1 1 0",
    "where the last of the smallest stands": "ArgMaxOrMin l 1 1 x y 0 3 1 1",
    "over the sum of magnitudes": "Normalize l 1 1 x y 0 1e-12 1 1 1",
    "over the length": "Normalize l 1 1 x y 0 1e-12 1 1 2",
    "over the largest": f"Normalize l 1 1 x y 0 1e-12 1 1 {MOST}",
    "over the least": f"Normalize l 1 1 x y 0 1e-12 1 1 {-MOST - 1}",
    "margins around all": "PadV2 l 1 1 x y 4 0 1 2 0 1 0 0 3 0 0.5",
    "mirrored margins": "PadV2 l 1 1 x y 4 0 1 2 0 0 0 1 3 1 0",
    "tiles": "Tile l 1 1 x y 1 2 1 3",
    "repeated with one more axis": "Repeat l 1 1 x y 2 1 1 1 2",
    "broadcast": "Expand l 1 1 x y 5 3 1 1 1 1",
    "signs": "SignedMul l 1 1 x y 0.25 3 2",
    "largest elements": "TopK l 1 1 x y 1 1 1 2",
    "smallest elements": "TopK l 1 1 x y 3 0 1 4",
    "whole numbers": "Cast l 1 1 x y 3",
    "lengths": "Shape l 1 1 x y",
    "number of elements": "Size l 1 1 x y",
    "ones": "OneHot l 1 1 x y 1 3 2 5",
}
