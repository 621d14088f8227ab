"""A NumPy version of TNN: runs a structure layer by layer, drawing weights when a layer needs them.

It uses nothing from the package under test: the formulas are those of TNN's reference device, on [batch, channels,
height, width]. Drawn weights are recorded so that a file with the same weights can be written.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np

from onert.ir import Array

from .tnn_boxes import detections, prior_box
from .tnn_logic import LOGIC
from .tnn_selection import SELECTION
from .tnn_volume import VOLUME
from .tnn_writer import Resource

Words = list[str]


class Network:
    """One run of a structure's text on random inputs; `columns` sets the width of MatMul layers' weights."""

    def __init__(self, text: str, columns: dict[str, int] | None = None) -> None:
        lines = [line.split() for line in text.replace('"', "").split(",")]
        self.columns = columns or {}
        self.resources: list[Resource] = []
        self.constants: dict[str, Array] = {}
        self.real: dict[str, Array] = {}
        self.stored: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        new = lines[0][3] == "4206624772"
        for words in " ".join(lines[1]).split(":"):
            name, *shape = words.split()
            dims = tuple(map(int, shape[1:-1] if new else shape))
            self.inputs[name] = self.real[name] = self.draw(name, *dims)
        for words in lines[5:]:
            if words:
                self.layer(words)
        self.outputs = {name: self.float(name) for name in lines[3]}

    @staticmethod
    def draw(key: str, *shape: int) -> Array:
        out: Array = np.random.default_rng(zlib.crc32(key.encode())).random(shape, np.float32) * 2 - 1
        return out

    def layer(self, words: Words) -> None:
        kind, name = words[0], words[1]
        ins, outs = int(words[2]), int(words[3])
        inputs, outputs = words[4 : 4 + ins], words[4 + ins : 4 + ins + outs]
        quantized = kind.startswith("Quantized")
        plain = kind.removeprefix("Quantized")
        site = Site(self, kind, name, inputs, outputs, words[4 + ins + outs :])
        if quantized and plain in INTEGER:
            self.stored[outputs[0]] = INTEGER[plain](site)
            return
        results = FLOAT[plain](site)
        for blob, result in zip(outputs, results, strict=True):
            if quantized:
                self.stored[blob] = to_int8(result / self.scale(blob))
            else:
                self.real[blob] = result

    def float(self, name: str) -> Array:
        if name not in self.real:
            self.real[name] = self.stored[name].astype(np.float32) * self.scale(name)
        return self.real[name]

    def int8(self, name: str) -> Array:
        if name not in self.stored:
            self.stored[name] = to_int8(self.real[name] / self.scale(name))
        return self.stored[name]

    def scale(self, name: str) -> np.float32:
        found = np.full(1, 1 / 32, np.float32)
        if not any(r.name == name + "_scale_data_" for r in self.resources):
            self.resources.append(Resource("BlobScale", name + "_scale_data_", [found, np.zeros(1, np.int32)]))
        return np.float32(found[0])


class Site:
    """One layer of a network."""

    def __init__(self, net: Network, kind: str, name: str, inputs: Words, outputs: Words, words: Words) -> None:
        self.net, self.kind, self.name = net, kind, name
        self.inputs, self.outputs, self.words = inputs, outputs, words

    @property
    def numbers(self) -> list[float]:
        return [float(word) for word in self.words]

    @property
    def ints(self) -> list[int]:
        return [int(number) for number in self.numbers]

    @property
    def x(self) -> Array:
        return self.net.float(self.inputs[0])

    def keep(self, *parts: Array | bytes | int | str) -> None:
        self.net.resources.append(Resource(self.kind, self.name, list(parts)))

    def draw(self, part: str, *shape: int, spread: float = 1.0) -> Array:
        return self.net.draw(self.name + part, *shape) * np.float32(spread)


def to_int8(x: Array) -> Array:
    """Rounded, halves away from zero."""
    out: Array = np.clip(np.trunc(x + np.where(x >= 0, 0.5, -0.5)), -128, 127).astype(np.int8)
    return out


def halves(total: int) -> int:
    return math.trunc(total / 2)


def conv_geometry(size: int, kernel: int, stride: int, pad: int, dilation: int, kind: int) -> tuple[int, int]:
    """The number of outputs, and the padding in front."""
    if kind == -1:
        return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1, pad
    outputs = math.ceil(size / stride) if kind == 0 else math.ceil((size - kernel + 1) / stride)
    return outputs, halves((outputs - 1) * stride + kernel - size)


def strided_elements(x: Array, axis: int, first: int, outputs: int, stride: int, fill: float = 0.0) -> Array:
    """The elements first, first + stride, ... of an axis; those outside are `fill`."""
    at = first + np.arange(outputs) * stride
    inside = (at >= 0) & (at < x.shape[axis])
    out = np.take(x, np.clip(at, 0, x.shape[axis] - 1), axis)
    return np.where(inside.reshape(-1, *(1,) * (x.ndim - 1 - axis)), out, np.asarray(fill, x.dtype))


def convolved(x: Array, weight: Array, p: list[int]) -> Array:
    """A convolution: [batch, outputs, height, width]."""
    group, stride, pad, kind = p[0], p[5:7], p[7:9], p[10]
    dilation = p[11:13] or [1, 1]
    outputs, inner, kernel_h, kernel_w = weight.shape
    rows, top = conv_geometry(x.shape[2], kernel_h, stride[0], pad[0], dilation[0], kind)
    columns, left = conv_geometry(x.shape[3], kernel_w, stride[1], pad[1], dilation[1], kind)
    total = np.zeros((x.shape[0], outputs, rows, columns), x.dtype)
    for i in range(kernel_h):
        band = strided_elements(x, 2, i * dilation[0] - top, rows, stride[0])
        for j in range(kernel_w):
            seen = strided_elements(band, 3, j * dilation[1] - left, columns, stride[1])
            taps = weight[:, :, i, j]
            if inner == 1 and outputs == group:
                total += seen * taps.reshape(1, -1, 1, 1)
                continue
            parts = seen.reshape(x.shape[0], group, inner, rows * columns)
            total += np.matmul(taps.reshape(1, group, outputs // group, inner), parts).reshape(total.shape)
    return total


def activation(x: Array, code: int) -> Array:
    if code == 256:
        return x / (1 + np.exp(-x))
    return x if code == 0 else np.clip(x, 0, None if code == 1 else 6)


def convolution(s: Site) -> list[Array]:
    p, x = s.ints, s.x
    shape = (p[2], x.shape[1] // p[0], p[3], p[4])
    weight = s.draw("w", *shape, spread=math.sqrt(6 / math.prod(shape[1:])))
    bias = s.draw("b", p[2], spread=0.1)
    s.keep(s.name, p[9], weight, *([bias] if p[9] else []))
    y = convolved(x, weight, p) + (bias.reshape(1, -1, 1, 1) if p[9] else 0)
    return [activation(y, p[13] if len(p) > 13 else 0)]


def int8_convolution(s: Site) -> Array:
    p, x = s.ints, s.net.int8(s.inputs[0])
    shape = (p[2], x.shape[1] // p[0], p[3], p[4])
    weight = np.rint(s.draw("w", *shape, spread=15)).astype(np.int8)
    bias = np.rint(s.draw("b", p[2], spread=8)).astype(np.int32)
    scale = (1.5 + s.draw("s", p[2], spread=0.5)) / np.float32(15 / math.sqrt(3) * 32 * math.sqrt(weight[0].size))
    s.keep(s.name, 1, weight, bias, np.zeros(p[2], np.int8), scale)
    sums = convolved(x.astype(np.float64), weight.astype(np.float64), p) + bias.reshape(1, -1, 1, 1)
    y = sums.astype(np.float32) * (scale / s.net.scale(s.outputs[0])).reshape(1, -1, 1, 1)
    return to_int8(np.maximum(y, 0) if len(p) > 13 and p[13] == 1 else y)


def deconvolution(s: Site) -> list[Array]:
    p, x = s.ints, s.x
    group, stride, pad = p[0], p[5:7], p[7:9]
    inner, outer = x.shape[1] // group, p[2] // group
    weight = s.draw("w", group, inner, outer, p[3], p[4], spread=math.sqrt(6 / inner))
    bias = s.draw("b", p[2], spread=0.1)
    s.keep(s.name, p[9], weight, *([bias] if p[9] else []))
    full = [stride[a] * (x.shape[2 + a] - 1) + (p[11 + a] if len(p) > 12 else 1) * (p[3 + a] - 1) + 1 for a in (0, 1)]
    y = np.zeros((x.shape[0], p[2], *full), np.float32)
    for i in range(p[3]):
        for j in range(p[4]):
            taps = weight[..., i, j].transpose(0, 2, 1)
            parts = x.reshape(x.shape[0], group, inner, -1)
            added = np.matmul(taps, parts).reshape(x.shape[0], p[2], *x.shape[2:])
            top, left = i * (p[11] if len(p) > 12 else 1), j * (p[12] if len(p) > 12 else 1)
            y[:, :, top :: stride[0]][:, :, : x.shape[2], left :: stride[1]][..., : x.shape[3]] += added
    rows, columns = (full[a] - 2 * pad[a] for a in (0, 1))
    y = y[:, :, pad[0] : pad[0] + rows, pad[1] : pad[1] + columns] + (bias.reshape(1, -1, 1, 1) if p[9] else 0)
    return [activation(y, p[13] if len(p) > 13 else 0)]


def pooled(x: Array, p: list[int]) -> Array:
    """Maximum or average pooling; elements outside do not count."""
    spans = []
    for a in (0, 1):
        size = x.shape[2 + a]
        kernel, stride, pad, kind = p[1 + a] or size, p[3 + a], p[5 + a], p[9]
        outputs, before = conv_geometry(size, kernel, stride, pad, 1, kind)
        if kind == -1 and len(p) > 10 and p[10]:
            outputs = math.ceil((size + 2 * pad - kernel) / stride) + 1
        spans.append((kernel, stride, outputs, before))
    out = x.astype(np.float32)
    fill = -np.inf if p[0] == 0 else 0.0
    inside = np.ones((1, 1, *x.shape[2:]), np.float32)
    for a, (kernel, stride, outputs, before) in enumerate(spans):
        seen = np.stack([strided_elements(out, 2 + a, k - before, outputs, stride, fill) for k in range(kernel)])
        inside = np.stack([strided_elements(inside, 2 + a, k - before, outputs, stride) for k in range(kernel)]).sum(0)
        out = seen.max(0) if p[0] == 0 else seen.sum(0)
    return out if p[0] == 0 else out / inside


def pooling(s: Site) -> list[Array]:
    return [pooled(s.x, s.ints)]


def int8_pooling(s: Site) -> Array:
    return np.trunc(pooled(s.net.int8(s.inputs[0]), s.ints)).astype(np.int8)


def inner_product(s: Site) -> list[Array]:
    x, outputs = s.x, s.ints[0]
    flat = x.reshape(x.shape[0], -1)
    weight = s.draw("w", outputs, flat.shape[1], spread=math.sqrt(3 / flat.shape[1]))
    bias = s.draw("b", outputs)
    s.keep(s.name, weight, bias)
    return [(flat @ weight.T + bias).reshape(x.shape[0], outputs, *(1,) * (x.ndim - 2))]


def binary(function: Callable[[Array, Array], Array]) -> Callable[[Site], list[Array]]:
    def compute(s: Site) -> list[Array]:
        x = s.x
        if len(s.inputs) > 1:
            return [function(x, s.net.float(s.inputs[1]))]
        weight = s.draw("w", 1, x.shape[1], *(1,) * (x.ndim - 2))
        s.keep(weight)
        return [function(x, weight)]

    return compute


def matmul(s: Site) -> list[Array]:
    x = s.x
    if len(s.inputs) > 1:
        return [x @ s.net.float(s.inputs[1])]
    weight = s.draw("w", x.shape[-1], s.net.columns.get(s.name, x.shape[-1]), spread=math.sqrt(3 / x.shape[-1]))
    s.keep(weight)
    return [x @ weight]


def prelu(s: Site) -> list[Array]:
    slope = s.draw("k", 1 if s.ints[0] else s.x.shape[1], spread=0.25)
    s.keep(s.name, slope)
    return [np.where(s.x < 0, s.x * slope.reshape(-1, *(1,) * (s.x.ndim - 2)), s.x)]


def batch_norm(s: Site) -> list[Array]:
    scale, bias = 1 + s.draw("s", s.x.shape[1], spread=0.5), s.draw("b", s.x.shape[1])
    s.keep(scale, bias)
    return [s.x * scale.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1)]


def layer_norm(s: Site) -> list[Array]:
    x = s.x
    shape = x.shape[x.ndim - s.ints[0] :]
    axes = tuple(range(x.ndim - s.ints[0], x.ndim))
    scale, bias = (s.net.constants.setdefault(blob, s.net.draw(blob, *shape)) for blob in s.inputs[1:])
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return [(x - mean) / np.sqrt(variance + s.numbers[1]) * scale + bias]


def softmax(s: Site) -> list[Array]:
    axis = s.ints[0] if s.ints else 1
    e = np.exp(s.x - s.x.max(axis, keepdims=True))
    return [e / e.sum(axis, keepdims=True)]


def reduction(function: Callable[..., Array]) -> Callable[[Site], list[Array]]:
    def compute(s: Site) -> list[Array]:
        return [function(s.x, axis=tuple(s.ints[1:]), keepdims=bool(s.ints[0]))]

    return compute


def reshape(s: Site) -> list[Array]:
    rank, x = s.ints[2], s.x
    shape = [x.shape[i] if d == 0 else d for i, d in enumerate(s.ints[3 : 3 + rank])]
    if len(s.ints) == 3 + rank or not s.ints[3 + rank]:
        return [x.reshape(shape)]
    n, c, h, w = np.empty(x.size, np.bool_).reshape(shape).shape
    return [x.transpose(0, 2, 3, 1).reshape(n, h, w, c).transpose(0, 3, 1, 2)]


def split(s: Site) -> list[Array]:
    axis, sizes = s.ints[0], s.ints[2:]
    return np.split(s.x, np.cumsum(sizes)[:-1].tolist() if sizes else len(s.outputs), axis)


def strided(s: Site) -> list[Array]:
    rank = s.ints[0]
    begins, ends = s.ints[1 : 1 + rank], s.ints[2 + rank : 2 + 2 * rank]
    steps = s.ints[3 + 2 * rank :]
    return [s.x[tuple(slice(b, e or None, k) for b, e, k in zip(begins, ends, steps, strict=True))]]


def strided_v2(s: Site) -> list[Array]:
    begin, end, axis, step = s.ints[1::2]
    return [np.take(s.x, np.arange(begin, min(end, s.x.shape[axis]), step), axis)]


def pad(s: Site) -> list[Array]:
    top, bottom, left, right, front, back = s.ints[2:8]
    return [np.pad(s.x, ((0, 0), (front, back), (top, bottom), (left, right)))]


def upsample(s: Site) -> list[Array]:
    x = s.x
    size = s.ints[4:6] or [round(d * k) for d, k in zip(x.shape[2:], s.numbers[1:3], strict=True)]
    for axis, new in ((2, size[0]), (3, size[1])):
        old = x.shape[axis]
        if s.ints[0] == 1:
            x = np.take(x, np.arange(new) * old // new, axis)
            continue
        at = np.maximum((np.arange(new) + 0.5) * old / new - 0.5, 0)
        low = at.astype(int)
        far = (at - low).astype(np.float32).reshape(-1, *(1,) * (3 - axis))
        x = np.take(x, low, axis) * (1 - far) + np.take(x, np.minimum(low + 1, old - 1), axis) * far
    return [x]


def sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):  # far below 0 the result is 0
        out: Array = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    return out


def unary(function: Callable[[Array], Array]) -> Callable[[Site], list[Array]]:
    return lambda s: [function(s.x)]


FLOAT: dict[str, Callable[[Site], list[Array]]] = {
    "Convolution": convolution,
    "Deconvolution": deconvolution,
    "Pooling": pooling,
    "InnerProduct": inner_product,
    "MatMul": matmul,
    "Add": binary(np.add),
    "Sub": binary(np.subtract),
    "Mul": binary(np.multiply),
    "Div": binary(np.divide),
    "PReLU": prelu,
    "BatchNormCxx": batch_norm,
    "LayerNorm": layer_norm,
    "ReLU": unary(lambda x: np.maximum(x, 0)),
    "Sigmoid": unary(sigmoid),
    "HardSigmoid": lambda s: [np.clip(s.x * s.numbers[0] + s.numbers[1], 0, 1)],
    "HardSwish": lambda s: [s.x * np.clip(s.x * s.numbers[0] + s.numbers[1], 0, 1)],
    "Softmax": softmax,
    "SoftmaxCaffe": softmax,
    "ReduceMean": reduction(np.mean),
    "ReduceMax": reduction(np.max),
    "ReduceMin": reduction(np.min),
    "Concat": lambda s: [np.concatenate([s.net.float(name) for name in s.inputs], s.ints[0])],
    "Reshape": reshape,
    "Permute": lambda s: [s.x.transpose(s.ints[1:])],
    "SplitV": split,
    "StridedSlice": strided,
    "StridedSliceV2": strided_v2,
    "Pad": pad,
    "Upsample": upsample,
    "PriorBox": lambda s: [prior_box(s.x.shape, s.net.float(s.inputs[1]).shape, s.numbers)],
    **SELECTION,
    **LOGIC,
    **VOLUME,
    "DetectionOutput": lambda s: [detections(*(s.net.float(name) for name in s.inputs), s.numbers)],
}
INTEGER: dict[str, Callable[[Site], Array]] = {
    "Convolution": int8_convolution,
    "Pooling": int8_pooling,
    "ReLU": lambda s: np.maximum(s.net.int8(s.inputs[0]), 0),
}
