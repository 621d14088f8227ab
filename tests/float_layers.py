"""Layers of float networks beyond plain convolutions, for `bench/float_networks.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bench.convolutions import _NONE, _RELU, _WINDOW, Network, _Tensor

from onert.ir import DType

NONE, RELU, WINDOW, Tensor = _NONE, _RELU, _WINDOW, _Tensor


class Kinds(Network):
    """A float graph under construction, with layers beyond convolutions."""

    def given(self, *shape: int) -> Tensor:
        """An input."""
        return Tensor(self.graph.input(DType.FLOAT32, shape), shape)

    def operator(self, code: str, inputs: Sequence[Tensor | int], shape: Sequence[int], **fields: object) -> Tensor:
        """An operator whose options table has the operator's name by default."""
        table = fields.pop("table", "".join(w.capitalize() for w in code.split("_")) + "Options")
        return self._make(code, inputs, tuple(shape), (str(table), fields))

    def ints(self, *values: int) -> int:
        return self.graph.constant(np.array(values, np.int32))

    def number(self, value: float) -> int:
        return self.graph.constant(np.array(value, np.float32))

    def vector(self, n: int) -> int:
        return self.graph.constant(1 + self.rng.standard_normal(n, np.float32) * np.float32(0.1))

    def unary(self, code: str, x: Tensor, **fields: object) -> Tensor:
        return self.operator(code, [x], x.shape, **{"table": "ReshapeOptions", **fields})

    def binary(self, code: str, x: Tensor, y: Tensor | int, activation: int = NONE) -> Tensor:
        """ADD, SUB or MUL with a constant or a tensor that broadcasts to `x`'s shape."""
        return self.operator(code, [x, y], x.shape, fusedActivationFunction=activation)

    def swish(self, x: Tensor) -> Tensor:
        return self.binary("MUL", x, self.unary("LOGISTIC", x))

    def gelu(self, x: Tensor) -> Tensor:
        return self.unary("GELU", x, table="GeluOptions", approximate=False)

    def depthwise(
        self, x: Tensor, window: int = 3, stride: int = 1, activation: int = RELU, line: bool = False
    ) -> Tensor:
        """A depthwise convolution, with a one-row window if the image is a line."""
        _, height, width, c = x.shape
        rows = 1 if line else window
        kernel = self.rng.standard_normal((1, rows, window, c), np.float32) * np.float32(np.sqrt(2 / (rows * window)))
        options = {
            **WINDOW, "padding": 0, "strideW": stride, "strideH": 1 if line else stride, "depthMultiplier": 1,
            "fusedActivationFunction": activation,
        }  # fmt: skip
        shape = (1, height if line else -(-height // stride), -(-width // stride), c)
        inputs = [x, self.graph.constant(kernel), self.vector(c)]
        return self._make("DEPTHWISE_CONV_2D", inputs, shape, ("DepthwiseConv2DOptions", options))

    def line(self, x: Tensor, n: int, window: int, stride: int = 1, activation: int = NONE) -> Tensor:
        """A convolution along a line [1, 1, time, channels], without padding if it strides."""
        _, _, width, c = x.shape
        options = {
            **WINDOW, "padding": int(stride > 1), "strideW": stride, "strideH": 1,
            "fusedActivationFunction": activation,
        }  # fmt: skip
        wide = (width - window) // stride + 1 if stride > 1 else width
        weights = self._weights(n, 1, window, c)
        return self._make("CONV_2D", [x, *weights], (1, 1, wide, n), ("Conv2DOptions", options))

    def dilated(self, x: Tensor, n: int, window: tuple[int, int], rate: int, activation: int = RELU) -> Tensor:
        """A convolution with a dilated window."""
        options = {
            "dilationWFactor": rate, "dilationHFactor": rate if window[0] > 1 else 1, "padding": 0, "strideW": 1,
            "strideH": 1, "fusedActivationFunction": activation,
        }  # fmt: skip
        weights = self._weights(n, *window, x.shape[3])
        return self._make("CONV_2D", [x, *weights], (*x.shape[:3], n), ("Conv2DOptions", options))

    def grouped(self, x: Tensor, n: int, groups: int, stride: int = 1) -> Tensor:
        """A grouped 3x3 convolution."""
        _, height, width, c = x.shape
        options = {**WINDOW, "padding": 0, "strideW": stride, "strideH": stride, "fusedActivationFunction": RELU}
        shape = (1, -(-height // stride), -(-width // stride), n)
        return self._make("CONV_2D", [x, *self._weights(n, 3, 3, c // groups)], shape, ("Conv2DOptions", options))

    def transposed(self, x: Tensor, n: int, window: int = 2, stride: int = 2, activation: int = NONE) -> Tensor:
        """A transposed convolution with bias that enlarges images by `stride`."""
        _, height, width, c = x.shape
        shape = (1, height * stride, width * stride, n)
        kernel = self.rng.standard_normal((n, window, window, c), np.float32) * np.float32(np.sqrt(2 / c) / window)
        options = {"padding": 0, "strideW": stride, "strideH": stride, "fusedActivationFunction": activation}
        inputs = [self.ints(*shape), self.graph.constant(kernel), x, self.vector(n)]
        return self._make("TRANSPOSE_CONV", inputs, shape, ("TransposeConvOptions", options))

    def average(self, x: Tensor, window: int, stride: int, padding: int = 0) -> Tensor:
        _, height, width, n = x.shape
        options = {
            "padding": padding, "strideW": stride, "strideH": stride, "filterWidth": window, "filterHeight": window,
        }  # fmt: skip
        high, wide = ((-(-d // stride)) if not padding else (d - window) // stride + 1 for d in (height, width))
        return self._make("AVERAGE_POOL_2D", [x], (1, high, wide, n), ("Pool2DOptions", options))

    def kept_mean(self, x: Tensor, *axes: int) -> Tensor:
        """The mean along axes that are kept with length 1."""
        shape = tuple(1 if at in axes else d for at, d in enumerate(x.shape))
        return self._make("MEAN", [x, self.ints(*axes)], shape, ("ReducerOptions", {"keepDims": True}))

    def normal(self, x: Tensor, *axes: int) -> Tensor:
        """Layer normalisation along the last axis, or instance normalisation along others, then scale and shift."""
        mean = self.kept_mean(x, *axes)
        off = self._make("SQUARED_DIFFERENCE", [x, mean], x.shape, ("SquaredDifferenceOptions", {}))
        variance = self.kept_mean(off, *axes)
        rate = self.unary("RSQRT", self.binary("ADD", variance, self.number(1e-5)))
        y = self.binary("MUL", self.binary("SUB", x, mean), rate)
        return self.binary("ADD", self.binary("MUL", y, self.vector(x.shape[-1])), self.vector(x.shape[-1]))

    def excited(self, x: Tensor, n: int) -> Tensor:
        """Squeeze and excitation by convolutions."""
        y = self.swish(self.convolution(self.kept_mean(x, 1, 2), n, 1, 1, NONE))
        return self.binary("MUL", x, self.unary("LOGISTIC", self.convolution(y, x.shape[3], 1, 1, NONE)))

    def dense(self, x: Tensor, n: int, activation: int = NONE) -> Tensor:
        """A fully connected layer on the last axis."""
        options = {"fusedActivationFunction": activation, "keepNumDims": True}
        shape = (*x.shape[:-1], n)
        return self._make(
            "FULLY_CONNECTED", [x, *self._weights(n, x.shape[-1])], shape, ("FullyConnectedOptions", options)
        )

    def shaped(self, x: Tensor, *shape: int) -> Tensor:
        return self.operator("RESHAPE", [x, self.ints(*shape)], shape, newShape=shape)

    def turned(self, x: Tensor, *order: int) -> Tensor:
        return self.operator("TRANSPOSE", [x, self.ints(*order)], [x.shape[at] for at in order])

    def cut(self, x: Tensor, start: int, n: int) -> Tensor:
        """A slice of the last axis."""
        begin, size = [0] * (len(x.shape) - 1) + [start], [*x.shape[:-1], n]
        return self.operator("SLICE", [x, self.ints(*begin), self.ints(*size)], size)

    def together(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        shape = list(parts[0].shape)
        shape[axis] = sum(p.shape[axis] for p in parts)
        return self.operator("CONCATENATION", parts, shape, axis=axis)

    def product(self, x: Tensor, y: Tensor, turned: bool) -> Tensor:
        n = y.shape[-2] if turned else y.shape[-1]
        return self.operator("BATCH_MATMUL", [x, y], (*x.shape[:-1], n), table="BatchMatMulOptions", adjY=turned)

    def attention(self, x: Tensor, heads: int) -> Tensor:
        """Self-attention of [batch, rows, channels]."""
        batch, rows, c = x.shape
        split = batch, rows, heads, c // heads
        q, k, v = (self.turned(self.shaped(self.dense(x, c), *split), 0, 2, 1, 3) for _ in range(3))
        scores = self.binary("MUL", self.product(q, k, True), self.number((c // heads) ** -0.5))
        found = self.product(self.unary("SOFTMAX", scores, table="SoftmaxOptions", beta=1.0), v, False)
        return self.dense(self.shaped(self.turned(found, 0, 2, 1, 3), batch, rows, c), c)

    def encoder(self, x: Tensor, heads: int) -> Tensor:
        """A pre-norm transformer block."""
        x = self.binary("ADD", x, self.attention(self.normal(x, 2), heads))
        c = x.shape[2]
        return self.binary("ADD", x, self.dense(self.gelu(self.dense(self.normal(x, 2), 4 * c)), c))

    def resized(self, x: Tensor, height: int, width: int, **fields: bool) -> Tensor:
        return self.operator("RESIZE_BILINEAR", [x, self.ints(height, width)], (1, height, width, x.shape[3]), **fields)

    def space(self, x: Tensor, block: int) -> Tensor:
        _, height, width, n = x.shape
        shape = (1, height * block, width * block, n // block**2)
        return self.operator("DEPTH_TO_SPACE", [x], shape, blockSize=block)
