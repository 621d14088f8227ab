"""NumPy versions of TNN's layers for logic, data movement and statistics, and test layers of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onert.ir import Array


def both(function: Callable[[Array, Array], Array]) -> Callable[[Any], list[Array]]:
    """An element-wise function of two blobs, as int8."""
    return lambda s: [function(s.x, s.net.float(s.inputs[1])).astype(np.int8)]


def reorganized(s: Any) -> list[Array]:
    """Element by element, as TNN's reference device does."""
    size, back, _, mode = s.ints
    n, c, h, w = s.x.shape
    low = np.zeros((n, c // size**2, h * size, w * size) if back else (n, c * size**2, h // size, w // size))
    few, many = (s.x, low) if back else (low, s.x)
    channels = few.shape[1] // size**2
    for at in np.ndindex(*few.shape):
        inner, offset = (at[1] // size**2, at[1] % size**2) if mode else (at[1] % channels, at[1] // channels)
        other = (at[0], inner, at[2] * size + offset // size, at[3] * size + offset % size)
        if back:
            many[other] = few[at]
        else:
            few[at] = many[other]
    return [low.astype(np.float32)]


def statistics(s: Any) -> list[Array]:
    channels = s.x.shape[1]
    mean, variance, factor = s.draw("m", channels), 2 + s.draw("v", channels), np.full(1, 2, np.float32)
    s.keep(s.name, 1, mean, variance, factor)
    across = (-1, 1, 1)
    return [(s.x - (mean / 2).reshape(across)) / np.sqrt((variance / 2).reshape(across) + 1e-5)]


def bias(s: Any) -> list[Array]:
    offset = s.draw("b", s.x.shape[1])
    s.keep(offset)
    return [s.x + offset.reshape(-1, 1, 1)]


def log_softmax(s: Any) -> list[Array]:
    return [s.x - np.log(np.exp(s.x).sum(s.ints[0], keepdims=True))]


def gated(s: Any) -> list[Array]:
    a, b = np.split(s.x, 2, s.ints[0])
    return [a / (1 + np.exp(-b))]


def constant(s: Any) -> list[Array]:
    value = s.draw("w", *s.ints[1:])
    s.keep(value)
    return [value]


def constant_of_shape(s: Any) -> list[Array]:
    s.keep(np.full(1, 2.5, np.float32))
    return [np.full(s.x, 2.5, np.float32)]


def cumulated(s: Any) -> list[Array]:
    axis, exclusive, reverse = s.ints
    x = np.flip(s.x, axis) if reverse else s.x
    sums = x.cumsum(axis) - (x if exclusive else 0)
    return [np.flip(sums, axis) if reverse else sums]


def scattered_slices(s: Any) -> list[Array]:
    at = np.array([[1, 2], [0, 1]], np.int32)
    s.keep(b"\1", at, b"\0")
    y = s.x.copy()
    y[tuple(at.T)] = s.net.float(s.inputs[1])
    return [y]


def split_evenly(s: Any) -> list[Array]:
    axis, size = s.ints[0], s.ints[-1]
    return np.split(s.x, np.arange(size, s.x.shape[axis], size), axis)


def swapped(s: Any) -> list[Array]:
    return [s.x.swapaxes(*s.ints)]


def shuffle(s: Any) -> list[Array]:
    n, c, h, w = s.x.shape
    return [s.x.reshape(n, s.ints[0], c // s.ints[0], h, w).swapaxes(1, 2).reshape(n, c, h, w)]


def guide(s: Any) -> list[Array]:
    sizes = (9, 3, 12, 12, 3, 1)
    parts = [s.draw(f"p{at}", size) for at, size in enumerate(sizes)]
    s.keep(*parts)
    matrix, offset, shifts, slopes, mix, last = parts
    colours = np.einsum("ij,njhw->nihw", matrix.reshape(3, 3), s.x) + offset.reshape(3, 1, 1)
    bent = np.maximum(colours[:, :, None] - shifts.reshape(3, 4, 1, 1), 0) * slopes.reshape(3, 4, 1, 1)
    return [np.clip((bent.sum(2) * mix.reshape(3, 1, 1)).sum(1, keepdims=True) + last, 0, 1)]


LOGIC: dict[str, Callable[[Any], list[Array]]] = {
    "And": both(np.logical_and),
    "BatchNorm": statistics,
    "BiasAdd": bias,
    "Const": constant,
    "ConstantOfShape": constant_of_shape,
    "Cumsum": cumulated,
    "Einsum": lambda s: [np.einsum(s.words[0].replace(";", ","), *(s.net.float(name) for name in s.inputs))],
    "Equal": both(np.equal),
    "FlattenTorch": lambda s: [s.x.reshape(*s.x.shape[: s.ints[0]], -1, *s.x.shape[s.ints[1] + 1 :])],
    "GLU": gated,
    "Greater": both(np.greater),
    "HDRGuide": guide,
    "Inverse": lambda s: [np.linalg.inv(s.x)],
    "Less": both(np.less),
    "LogSoftmax": log_softmax,
    "Mod": lambda s: [np.fmod(s.x, s.net.float(s.inputs[1]))],
    "NonZero": lambda s: [np.stack(np.nonzero(s.x)).astype(np.int32)],
    "Not": lambda s: [np.logical_not(s.x).astype(np.int8)],
    "Or": both(np.logical_or),
    "PermuteV2": swapped,
    "Reorg": reorganized,
    "Roll": lambda s: [np.roll(s.x, s.ints[1 : 1 + s.ints[0]], s.ints[1 + s.ints[0] :])],
    "ScatterND": scattered_slices,
    "ShuffleChannel": shuffle,
    "SplitTorch": split_evenly,
    "Where": lambda s: [np.where(s.net.float(s.inputs[2]) != 0, s.x, s.net.float(s.inputs[1]))],
}
_OF = {
    "x 4 2 4 6 8 0": {
        "squares into channels": "Reorg l 1 1 x y 2 0 0 0",
        "channels into squares": "Reorg l 1 1 x y 2 1 0 0",
        "squares of each channel": "Reorg l 1 1 x y 2 1 0 1",
        "stored statistics": "BatchNorm l 1 1 x y",
        "numbers of channels": "BiasAdd l 1 1 x y",
        "logarithms": "LogSoftmax l 1 1 x y 1",
        "gates": "GLU l 1 1 x y 1",
        "a constant": "Const k 0 1 k 4 1 4 1 1 | Mul l 2 1 x k y",
        "a filled shape": "Shape s 1 1 x s | ConstantOfShape l 1 1 s y",
        "sums so far": "Cumsum l 1 1 x y 2 0 0",
        "sums of what follows": "Cumsum l 1 1 x y 3 1 1",
        "axes that changed places": "PermuteV2 l 1 1 x y 1 -1",
        "axes as one": "FlattenTorch l 1 1 x y 1 2",
        "moved around": "Roll l 1 1 x y 2 1 -3 2 3",
        "parts of a length": "SplitTorch l 1 3 x a b y 3 0 0 3 | ReLU r 1 1 a c",
    },
    "x 3 2 3 4 0 : z 3 2 4 5 0": {"products by letters": "Einsum l 2 1 x z y bij;bjk->bik"},
    "x 2 3 4 0 : z 2 4 3 0": {"products of what letters tell": "Einsum l 2 1 x z y ij;jk"},
    "x 3 5 2 2 0": {"inverses": "Inverse l 1 1 x y"},
    "x 3 2 3 4 0 : z 3 2 3 4 0": {
        "where less": "Less t 2 1 x z t | Where l 3 1 x z t y",
        "equal or greater": "Equal e 2 1 x x e | Greater t 2 1 x z t | Or l 2 1 e t y",
        "not both": "Greater e 2 1 x z e | Less t 2 1 x z t | And a 2 1 e t a | Not l 1 1 a y",
        "remainders": "Mod l 2 1 x z y",
        "places": "Greater t 2 1 x z t | NonZero l 1 1 t y",
    },
    "x 3 2 3 4 0 : z 2 2 4 0": {"slices put in": "ScatterND l 2 1 x z y"},
    "x 4 2 3 4 5 0": {"a guide": "HDRGuide l 1 1 x y"},
}
LAYERS = {name: (inputs, *layers.split(" | ")) for inputs, those in _OF.items() for name, layers in those.items()}
"""Inputs, followed by layers that use them."""
