"""NumPy versions of TNN's 1-D, 3-D and recurrent layers, and test layers of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onert.ir import Array


def side(size: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int, kind: int) -> tuple[int, int]:
    """The number of outputs, and the padding in front."""
    if kind == -1:
        return (size + sum(pads) - dilation * (kernel - 1) - 1) // stride + 1, pads[0]
    outputs = math.ceil(size / stride) if kind == 0 else math.ceil((size - kernel + 1) / stride)
    return outputs, int(((outputs - 1) * stride + kernel - size) / 2)


def window_elements(
    x: Array, at: tuple[int, ...], kernel: list[int], dilation: list[int]
) -> dict[tuple[int, ...], Array]:
    """The in-bounds elements of the window that starts at `at`, by tap; x is [batch, channels, ...]."""
    found = {}
    for taps in itertools.product(*map(range, kernel)):
        place = tuple(a + t * d for a, t, d in zip(at, taps, dilation, strict=True))
        if all(0 <= p < n for p, n in zip(place, x.shape[2:], strict=True)):
            found[taps] = x[(slice(None), slice(None), *place)]
    return found


def convolution(axes: int) -> Callable[[Any], list[Array]]:
    """A convolution over `axes` axes. If quantised, it sums integer products and rescales each channel."""

    def compute(s: Any) -> list[Array]:
        stored = s.kind.startswith("Quantized")
        x, p = s.net.int8(s.inputs[0]).astype(np.float32) if stored else s.x, s.ints
        groups, outputs, kernel, stride = p[0], p[2], p[3 : 3 + axes], p[3 + axes : 3 + 2 * axes]
        count = 2 if axes == 1 else axes
        margins, rest = p[3 + 2 * axes : 3 + 2 * axes + count], p[3 + 2 * axes + count :]
        pads = [(margins[1], margins[0])] if axes == 1 else [(m, m) for m in margins]
        bias, kind, dilation, activation = rest[0], rest[1], rest[2 : 2 + axes], rest[2 + axes]
        weight = s.draw("w", outputs, x.shape[1] // groups, *kernel)
        offset = s.draw("b", outputs)
        scale = np.ones(outputs, np.float32)
        if stored:
            weight, offset = np.rint(weight * 15), np.rint(offset * 8)
            scale = (1.5 + s.draw("s", outputs)) / np.float32(15 * 32 * 5)
            integers = [weight.astype(np.int8), offset.astype(np.int32), np.zeros(outputs, np.int8), scale]
            s.keep(s.name, bias, *integers)
        else:
            s.keep(s.name, bias, weight, *([offset] if bias else []))
        sides = [side(n, *each, kind) for n, *each in zip(x.shape[2:], kernel, stride, pads, dilation, strict=True)]
        y = np.zeros((len(x), outputs, *(n for n, _ in sides)), np.float32) + (bias * offset).reshape(-1, *(1,) * axes)
        each = outputs // groups
        for place in np.ndindex(*y.shape[2:]):
            starts = tuple(o * k - before for o, k, (_, before) in zip(place, stride, sides, strict=True))
            for taps, elements in window_elements(x, starts, kernel, dilation).items():
                for group in range(groups):
                    mine = slice(group * each, (group + 1) * each)
                    part = np.split(elements, groups, 1)[group]
                    y[(slice(None), mine, *place)] += part @ weight[(mine, slice(None), *taps)].T
        y = y * scale.reshape(-1, *(1,) * axes)
        if activation == 256:
            return [y / (1 + np.exp(-y))]
        return [np.maximum(y, 0) if activation == 1 else y]

    return compute


def pooled(x: Array, kind: int, kernel: list[int], stride: list[int], sides: list[tuple[int, int]]) -> list[Array]:
    y = np.zeros((*x.shape[:2], *(n for n, _ in sides)), np.float32)
    for place in np.ndindex(*y.shape[2:]):
        starts = tuple(o * k - before for o, k, (_, before) in zip(place, stride, sides, strict=True))
        window = np.stack(list(window_elements(x, starts, kernel, [1] * len(kernel)).values()))
        y[(slice(None), slice(None), *place)] = window.max(0) if kind == 0 else window.mean(0)
    return [y]


def pool_in_line(s: Any) -> list[Array]:
    kind, size, stride, pad, _, _, pad_type, ceil = s.ints
    length = s.x.shape[2]
    kernel = size or length
    if pad_type == -1:
        room = (length + 2 * pad - kernel) / stride
        over = (math.ceil(room) if ceil else math.floor(room)) + 1, pad
    else:
        over = side(length, kernel, stride, (0, 0), 1, pad_type)
    return pooled(s.x, kind, [kernel], [stride], [over])


def pool_in_space(s: Any) -> list[Array]:
    p = s.ints
    kind, size, stride, pad = p[0], p[1:4][::-1], p[4:7][::-1], p[7:10][::-1]
    pad_type, ceil = p[13], p[14]
    sides, kernel = [], [k or n for k, n in zip(size, s.x.shape[2:], strict=True)]
    for n, k, step, margin in zip(s.x.shape[2:], kernel, stride, pad, strict=True):
        rounded = math.ceil if ceil else math.floor
        if pad_type == -1:
            sides.append((rounded((n + 2 * margin - k) / step + 1), margin))
            continue
        outputs = rounded(n / step) if pad_type == 0 else math.ceil((n - k + 1) / step)
        sides.append((outputs, math.ceil(((outputs - 1) * step + k - n) / stride[1])))
    return pooled(s.x, kind, kernel, stride, sides)


def sigmoid(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


def lstm(s: Any) -> list[Array]:
    x, cells, direction = s.x.reshape(*s.x.shape[:2], -1), s.ints[1], s.ints[2]
    ways = 2 if direction == 2 else 1
    shapes = {1: (4 * cells, x.shape[2]), 2: (4 * cells, cells), 3: (8 * cells,)}
    weight, recurrent, bias = (
        s.net.constants.setdefault(s.inputs[at], s.net.draw(s.inputs[at], ways, *shape)) for at, shape in shapes.items()
    )
    states = [s.net.float(name) for name in s.inputs[4:]] or [np.zeros((ways, x.shape[1], cells), np.float32)] * 2
    ys, hs, cs = [], [], []
    for way in range(ways):
        h, c, y = states[0][way], states[1][way], [None] * len(x)
        for t in range(len(x)) if (direction, way) in ((0, 0), (2, 0)) else reversed(range(len(x))):
            sums = x[t] @ weight[way].T + h @ recurrent[way].T + bias[way, : 4 * cells] + bias[way, 4 * cells :]
            i, o, f, g = np.split(sums, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            y[t] = h = sigmoid(o) * np.tanh(c)
        ys.append(np.stack(y))
        hs.append(h)
        cs.append(c)
    return [np.concatenate(ys, 2), np.stack(hs), np.stack(cs)][: len(s.outputs)]


VOLUME: dict[str, Callable[[Any], list[Array]]] = {
    "Convolution1D": convolution(1),
    "Convolution3D": convolution(3),
    "LSTMONNX": lstm,
    "Pooling1D": pool_in_line,
    "Pooling3D": pool_in_space,
}
LINE, SPACE, STEPS = "x 3 2 4 9 0", "x 5 2 4 5 6 7 0", "x 3 5 2 3 0"
LAYERS = {
    "a line": (LINE, "Convolution1D l 1 1 x y 1 4 6 3 2 0 1 1 -1 1 1"),
    "a line in groups": (LINE, "Convolution1D l 1 1 x y 2 4 6 3 1 2 2 0 -1 2 256"),
    "a line by channels": (LINE, "Convolution1D l 1 1 x y 4 4 4 3 2 0 0 1 0 1 0"),
    "space": (SPACE, "Convolution3D l 1 1 x y 1 4 3 3 2 3 1 2 2 1 0 1 1 -1 1 1 1 1"),
    "space in groups": (SPACE, "Convolution3D l 1 1 x y 2 4 6 3 3 3 2 2 2 0 0 0 1 0 1 1 1 0"),
    "space, dilated": (SPACE, "Convolution3D l 1 1 x y 1 4 2 2 2 2 1 1 1 1 1 1 0 -1 2 1 2 256"),
    "integers in a line": (LINE, "QuantizedConvolution1D l 1 1 x y 2 4 6 3 2 0 1 1 -1 1 1"),
    "integers in space": (SPACE, "QuantizedConvolution3D l 1 1 x y 2 4 6 3 2 3 1 2 2 1 0 1 1 -1 1 1 1 0"),
    "the largest of integers": (SPACE, "QuantizedPooling3D l 1 1 x y 0 3 2 3 2 2 1 1 0 1 -1 -1 -1 -1 0"),
    "largest in a line": (LINE, "Pooling1D l 1 1 x y 0 3 2 1 -1 -1 -1 1"),
    "average in a line": (LINE, "Pooling1D l 1 1 x y 1 2 2 0 -1 -1 0 0"),
    "largest in space": (SPACE, "Pooling3D l 1 1 x y 0 3 2 3 2 2 1 1 0 1 -1 -1 -1 -1 0"),
    "average in space": (SPACE, "Pooling3D l 1 1 x y 1 3 2 3 2 2 2 1 1 1 -1 -1 -1 -1 1"),
    "average in space, SAME": (SPACE, "Pooling3D l 1 1 x y 1 2 2 3 2 2 2 0 0 0 -1 -1 -1 0 1"),
    "average of all of space": (SPACE, "Pooling3D l 1 1 x y 1 0 0 0 1 1 1 0 0 0 -1 -1 -1 -1 0"),
    "steps forwards": (STEPS, "LSTMONNX l 4 3 x w r b y h c 0 4 0"),
    "steps backwards": (STEPS, "LSTMONNX l 4 1 x w r b y 0 4 1"),
    "steps both ways from states": (f"{STEPS} : u 3 2 2 4 0 : v 3 2 2 4 0", "LSTMONNX l 6 3 x w r b u v y h c 0 4 2"),
}
"""Inputs, followed by layers that use them."""
