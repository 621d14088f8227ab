"""Packages with branches of small kernels: recurrent pairs, detector heads, ensembles, Inception-like blocks.

Weights are random and determined by the model's name. `PACKAGES` maps each name to its maker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import onert
from onert.ir import DType, Package, Port, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.reduction.pool import Pool2D, Pooling

_SAME = {"padding": Padding.SAME}
_RELU = {"activation": Activation.RELU}


class _Draft:
    """A graph under construction, with layers of random weights."""

    def __init__(self, seed: int, *shape: int) -> None:
        self.b = Builder()
        self.rng = np.random.default_rng(seed)
        self.x = self.b.input(TensorType(DType.FLOAT32, shape), "x")

    def shape(self, x: int) -> tuple[int, ...]:
        return tuple(d or 0 for d in self.b.subgraph([x]).type(x).shape)

    def weights(self, *shape: int) -> int:
        spread = np.sqrt(2 / max(np.prod(shape[1:]), 1))
        return self.b.constant((self.rng.normal(size=shape) * spread).astype(np.float32))

    def conv(self, x: int, filters: int, window: int = 1, stride: int = 1) -> int:
        weights = self.weights(filters, window, window, self.shape(x)[3])
        op = Conv2D(stride_height=stride, stride_width=stride, **_SAME, **_RELU)
        return self.b.add(op, x, weights, self.weights(filters))

    def depthwise(self, x: int, window: int = 3, stride: int = 1) -> int:
        channels = self.shape(x)[3]
        op = DepthwiseConv2D(stride_height=stride, stride_width=stride, **_SAME, **_RELU)
        return self.b.add(op, x, self.weights(1, window, window, channels), self.weights(channels))

    def pool(self, x: int, window: int, stride: int, kind: Pooling) -> int:
        op = Pool2D(kind, filter_height=window, filter_width=window, stride_height=stride, stride_width=stride, **_SAME)
        return self.b.add(op, x)

    def rows(self, x: int, width: int) -> int:
        """The elements reshaped to rows of a width."""
        return self.b.add(Reshape(new_shape=(1, -1, width)), x)

    def dense(self, x: int, units: int) -> int:
        width = int(np.prod(self.shape(x)))
        flat = self.b.add(Reshape(new_shape=(1, width)), x)
        return self.b.add(FullyConnected(), flat, self.weights(units, width), self.weights(units))

    def lstm(self, x: int, cells: int) -> int:
        width = self.shape(x)[2]
        gates = [self.weights(cells, width) for _ in range(4)] + [self.weights(cells, cells) for _ in range(4)]
        biases = [self.weights(cells) for _ in range(4)]
        state = [self.b.constant(np.zeros((1, cells), np.float32)) for _ in range(2)]
        return self.b.add_many(LSTM(), x, *gates, *(None,) * 3, *biases, None, None, *state)[0]

    def model(self, *outputs: int) -> Subgraphs:
        return self.b.model(outputs)


def recurrent_pair(seed: int = 0, layers: int = 2, steps: int = 40, cells: int = 96) -> Package:
    """Layers of two LSTMs, one of which reads the sequence backwards."""
    d = _Draft(seed, 1, steps, 64)
    x = d.x
    for _ in range(layers):
        axis = d.b.constant(np.int32([1]))
        back = d.b.add(Reverse(), d.lstm(d.b.add(Reverse(), x, axis), cells), axis)
        x = d.b.add(Concat(axis=2), d.lstm(x, cells), back)
    return Package((d.model(d.dense(x, 40)),))


def detector_heads(seed: int = 1) -> Package:
    """The heads of a single-shot detector on its feature maps: boxes and classes of each size."""
    d = _Draft(seed, 1, 10, 10, 96)
    boxes, classes = [], []
    x = d.x
    for size, channels in ((10, 96), (5, 96), (3, 64), (2, 64), (1, 64)):
        if size < 10:
            x = d.conv(d.depthwise(d.conv(x, channels // 2), stride=2), channels)
        for found, per_anchor in ((boxes, 4), (classes, 21)):
            found.append(d.rows(d.conv(d.depthwise(x), 3 * per_anchor), per_anchor))
    joined = [d.b.add(Concat(axis=1), *found) for found in (boxes, classes)]
    return Package((d.model(joined[0], d.b.add(Unary(UnaryKind.LOGISTIC), joined[1])),))


def _classifier(seed: int, size: int, channels: int, blocks: int) -> Subgraphs:
    d = _Draft(seed, 1, size, size, 8)
    x = d.conv(d.x, channels, 3)
    for _ in range(blocks):
        x = d.conv(d.depthwise(x), channels)
    return d.model(d.dense(d.pool(x, size, size, Pooling.AVERAGE), 12))


def ensemble(seed: int = 2, members: int = 4) -> Package:
    """A package of several small classifiers of different shapes, each with an input of its own."""
    models = tuple(_classifier(seed + i, 8 + 2 * (i % 2), 24 + 8 * (i % 3), 4 + i % 2) for i in range(members))
    ports = tuple(Port(i, 0, 0) for i in range(members))
    return Package(models, "ensemble", ports, ports)


def inception(seed: int = 3, blocks: int = 4, size: int = 8, channels: int = 64) -> Package:
    """Blocks of four branches whose results are concatenated."""
    d = _Draft(seed, 1, size, size, channels)
    x = d.x
    for _ in range(blocks):
        branches = [
            d.conv(x, channels // 4),
            d.conv(d.conv(x, channels // 8), channels // 4, 3),
            d.conv(d.conv(d.conv(x, channels // 8), channels // 8, 3), channels // 4, 3),
            d.conv(d.pool(x, 3, 1, Pooling.MAX), channels // 4),
        ]
        x = d.b.add(Concat(axis=3), *branches)
    return Package((d.model(d.dense(x, 10)),))


def two_natures(seed: int = 5) -> Package:
    """Convolutions of few channels, which run best on floats, and large dense layers, which run best on bytes."""
    d = _Draft(seed, 1, 64, 64, 8)
    x = d.x
    for _ in range(4):
        x = d.conv(x, 8)
    x = d.conv(d.depthwise(x, stride=2), 16, 3, 2)
    for units in (1024, 1024, 512, 10):
        x = d.dense(x, units)
    return Package((d.model(x),))


PACKAGES: Mapping[str, Callable[[], Package]] = {
    "recurrent pair": recurrent_pair,
    "detector heads": detector_heads,
    "ensemble": ensemble,
    "inception": inception,
}


def real_ensemble(models: Path) -> Package | None:
    """Small third-party models as one package, each with inputs of its own; None if they are not available."""
    found = [next(models.rglob(name), None) for name in _REAL]
    paths = [path for path in found if path is not None]
    if len(paths) < len(_REAL):
        return None
    parts = tuple(onert.load(path).model for path in paths)
    sizes = [(len(model.primary.inputs), len(model.primary.outputs)) for model in parts]
    ends = [tuple(Port(m, 0, i) for m, size in enumerate(sizes) for i in range(size[side])) for side in (0, 1)]
    return Package(parts, "real ensemble", ends[0], ends[1])


_REAL = ("kws_ref_model.tflite", "model_ToyCar_quant.tflite", "model_quant_1.tflite", "trained_lstm.tflite")
