"""Writes models of one depthwise convolution each, in float32, int8 and int16.

    python tests/bench/depthwise.py FOLDER [NAME ...]

The shapes are those of mobile networks, the weights are random. `onert_bench FOLDER/*.tflite` compares with peers.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.writing import write_models
from model_writer import Graph, Model

from onert.ir import DType, Quantization

_RELU6 = 3


@frozen
class Layer:
    """A `size` x `size` input with `channels`, a `window` x `window` filter, and SAME padding."""

    size: int
    channels: int
    window: int = 3
    stride: int = 1
    dilation: int = 1

    @property
    def name(self) -> str:
        moved = f"_by_{self.stride}" if self.stride > 1 else f"_dilated_{self.dilation}" if self.dilation > 1 else ""
        return f"{self.size}x{self.size}x{self.channels}_{self.window}x{self.window}{moved}"


LAYERS = (
    Layer(112, 32), Layer(112, 96, stride=2), Layer(56, 144), Layer(56, 144, stride=2), Layer(28, 192),
    Layer(14, 384), Layer(7, 960), Layer(112, 24), Layer(80, 40), Layer(64, 24, stride=2),
    Layer(33, 384, dilation=2), Layer(33, 576, dilation=2), Layer(33, 960, dilation=4),
    Layer(14, 240, 5), Layer(7, 576, 5), Layer(28, 120, 5), Layer(14, 672, 5, 2), Layer(56, 24, 5), Layer(56, 96, 7),
)  # fmt: skip


def _numbers(graph: Graph, layer: Layer, dtype: DType) -> tuple[list[int], int]:
    """The input tensors of a layer, and its output tensor."""
    rng, n, out = np.random.default_rng(1), layer.channels, -(-layer.size // layer.stride)
    shape, result = (1, layer.size, layer.size, n), (1, out, out, n)
    weights = rng.normal(0, 0.3, (1, layer.window, layer.window, n)).astype(np.float32)
    if dtype is DType.FLOAT32:
        bias = rng.normal(0, 1, n).astype(np.float32)
        return [graph.input(dtype, shape), graph.constant(weights), graph.constant(bias)], graph.tensor(dtype, result)
    small = dtype is DType.INT8
    scale, scales = 0.05 if small else 0.05 / 256, np.abs(weights).max((0, 1, 2)) / 127
    stored = np.rint(weights / scales).astype(np.int8)
    x = graph.input(dtype, shape, Quantization((scale,), (-3 if small else 0,)))
    w = graph.tensor(DType.INT8, stored.shape, stored, Quantization(tuple(scales), (0,) * n, 3))
    of_sums = Quantization(tuple(scales * scale), (0,) * n, 0)
    sums = np.rint(rng.normal(0, 0.3, n) / (scales * scale)).astype(np.int32 if small else np.int64)
    bias_at = graph.tensor(DType.INT32 if small else DType.INT64, (n,), sums, of_sums)
    last = Quantization((6 / 255,), (-128,)) if small else Quantization((6 / 32767,), (0,))
    return [x, w, bias_at], graph.tensor(dtype, result, None, last)


def model(layer: Layer, dtype: DType) -> bytes:
    """A model consisting of the layer alone."""
    made = Model()
    graph = made.graph()
    inputs, result = _numbers(graph, layer, dtype)
    options = {"padding": 0, "strideW": layer.stride, "strideH": layer.stride, "depthMultiplier": 1}
    options |= {"dilationWFactor": layer.dilation, "dilationHFactor": layer.dilation}
    options |= {"fusedActivationFunction": _RELU6}
    graph.operator("DEPTHWISE_CONV_2D", inputs, [result], ("DepthwiseConv2DOptions", options))
    graph.outputs(result)
    return made.done()


MODELS = {
    f"{dtype.name.lower()}_{layer.name}": partial(model, layer, dtype)
    for dtype in (DType.FLOAT32, DType.INT8, DType.INT16)
    for layer in LAYERS
}

if __name__ == "__main__":
    write_models(__doc__, MODELS)
