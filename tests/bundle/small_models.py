"""Small quantised models of the kinds that microcontrollers run, as TFLite files with random weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from model_writer import Graph, Model

from onert.ir import DType, Quantization

Array = np.ndarray[Any, Any]


class Network:
    """A chain of int8 layers on images; `x` is the input tensor of the next layer, `shape` its shape."""

    def __init__(self, shape: Sequence[int], seed: int = 0) -> None:
        self.model = Model()
        self.graph: Graph = self.model.graph()
        self.rng = np.random.default_rng(seed)
        self.shape = tuple(shape)
        self.x = self.graph.input(DType.INT8, self.shape, self._activations())

    def _activations(self) -> Quantization:
        return Quantization((float(self.rng.uniform(0.02, 0.04)),), (int(self.rng.integers(-20, 20)),))

    def _made(self, shape: Sequence[int]) -> int:
        self.shape = tuple(shape)
        return self.graph.tensor(DType.INT8, self.shape, None, self._activations())

    def _filter(self, shape: Sequence[int], axis: int, n: int, terms: int, one: bool = False) -> tuple[int, int]:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        count = 1 if one else n
        scales = self.rng.uniform(0.6, 1.2, count) / (127 * np.sqrt(terms))
        quantization = Quantization(tuple(scales), (0,) * count, 0 if one else axis)
        weights = self.graph.tensor(DType.INT8, shape, data, quantization)
        bias = self.rng.integers(-800, 800, n).astype(np.int32)
        return weights, self.graph.constant(bias)

    def conv(self, n: int, k: int = 3, stride: int = 1, padding: int = 0, activation: int = 1) -> Network:
        _, h, w, c = self.shape
        inputs = [self.x, *self._filter((n, k, k, c), 0, n, k * k * c)]
        out = self._made((1, *self._cut(h, w, k, stride, padding), n))
        options = {"strideW": stride, "strideH": stride, "padding": padding, "fusedActivationFunction": activation}
        self.graph.operator("CONV_2D", inputs, [out], ("Conv2DOptions", options))
        self.x = out
        return self

    def depthwise(self, k: int = 3, stride: int = 1, padding: int = 0, multiplier: int = 1) -> Network:
        _, h, w, c = self.shape
        n = c * multiplier
        inputs = [self.x, *self._filter((1, k, k, n), 3, n, k * k)]
        out = self._made((1, *self._cut(h, w, k, stride, padding), n))
        options = {
            "strideW": stride,
            "strideH": stride,
            "padding": padding,
            "depthMultiplier": multiplier,
            "fusedActivationFunction": 1,
        }
        self.graph.operator("DEPTHWISE_CONV_2D", inputs, [out], ("DepthwiseConv2DOptions", options))
        self.x = out
        return self

    def residual(self, n: int) -> Network:
        """Two convolutions with a skip connection."""
        before, shape = self.x, self.shape
        self.conv(n).conv(shape[-1], activation=0)
        out = self._made(shape)
        self.graph.operator("ADD", [before, self.x], [out], ("AddOptions", {"fusedActivationFunction": 1}))
        self.x = out
        return self

    def pool(self, kind: str = "MAX", k: int = 2) -> Network:
        _, h, w, c = self.shape
        quantization = self.graph.table.tensors[self.x].quantization
        self.shape = (1, h // k, w // k, c)
        out = self.graph.tensor(DType.INT8, self.shape)
        self.graph.table.tensors[out].quantization = quantization
        options = {"strideW": k, "strideH": k, "filterWidth": k, "filterHeight": k, "padding": 1}
        self.graph.operator(f"{kind}_POOL_2D", [self.x], [out], ("Pool2DOptions", options))
        self.x = out
        return self

    def dense(self, n: int, activation: int = 0) -> Network:
        depth = int(np.prod(self.shape))
        if len(self.shape) > 2:
            quantization = self.graph.table.tensors[self.x].quantization
            flat = self.graph.tensor(DType.INT8, (1, depth))
            self.graph.table.tensors[flat].quantization = quantization
            shape = self.graph.constant(np.array([1, depth], np.int32))
            self.graph.operator("RESHAPE", [self.x, shape], [flat], ("ReshapeOptions", {"newShape": [1, depth]}))
            self.x = flat
        inputs = [self.x, *self._filter((n, depth), 0, n, depth, one=True)]
        out = self._made((1, n))
        options = {"fusedActivationFunction": activation}
        self.graph.operator("FULLY_CONNECTED", inputs, [out], ("FullyConnectedOptions", options))
        self.x = out
        return self

    def done(self) -> bytes:
        self.graph.outputs(self.x)
        return self.model.done()

    @staticmethod
    def _cut(h: int, w: int, k: int, stride: int, padding: int) -> tuple[int, int]:
        less = k - 1 if padding else 0
        return -(-(h - less) // stride), -(-(w - less) // stride)


def _separable() -> bytes:
    net = Network((1, 24, 20, 1), 2).conv(12, 5, 2)
    for n in (12, 20):
        net = net.depthwise().conv(n, 1)
    return net.depthwise(stride=2).conv(17, 1).pool("AVERAGE", 3).dense(5).done()


def _dense() -> bytes:
    net = Network((1, 240), 3)
    for n in (64, 30, 7, 64):
        net = net.dense(n, activation=1)
    return net.dense(240).done()


SMALL: dict[str, Callable[[], bytes]] = {
    "convolutions": lambda: (
        Network((1, 20, 20, 3), 1).conv(8).pool().conv(13, stride=2).conv(10, padding=1).dense(10).done()
    ),
    "separable": _separable,
    "residuals": lambda: (
        Network((1, 12, 12, 3), 4).conv(16).residual(16).residual(9).pool("AVERAGE", 6).dense(4).done()
    ),
    "dense": _dense,
    "multiplier": lambda: (
        Network((1, 16, 16, 5), 5).depthwise(5, 2, multiplier=3).conv(6, 1).depthwise(3, 1, 1).dense(3).done()
    ),
    "wide input": lambda: Network((1, 48, 48, 3), 6).conv(4, 3, 2).conv(8, 3, 2).conv(8, 3, 1).dense(2).done(),
    "wide output": lambda: Network((1, 8), 7).dense(16, 1).dense(3000).done(),
}
"""Models by name."""
