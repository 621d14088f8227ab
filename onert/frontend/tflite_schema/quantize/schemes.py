"""The operators that LiteRT's kernels can run on integers, and the quantisation of their results.

Source: the quantisation specification of TFLite, and the element types its kernels accept.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from onert.ir import Array


@frozen
class QuantizationParameters:
    """Quantisation parameters: a stored integer represents `scale * (integer - zero_point)`."""

    scale: float
    zero_point: int = 0


@frozen
class Layer:
    """Indices of the activation, weight and bias operands, and the output channel dimension of the weights."""

    x: int
    weights: int
    bias: int
    axis: int


LAYERS: Mapping[str, Layer] = {
    "FULLY_CONNECTED": Layer(0, 1, 2, 0),
    "CONV_2D": Layer(0, 1, 2, 0),
    "DEPTHWISE_CONV_2D": Layer(0, 1, 2, 3),
    "TRANSPOSE_CONV": Layer(2, 1, 3, 0),
}
BINARY = frozenset({"ADD", "SUB", "MUL", "DIV", "PRELU"})
"""Binary operators whose results have their own range."""
OWN_RANGE = BINARY | {"MEAN", "RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH"}
"""Operators whose results have their own range."""
JOINS = frozenset({"CONCATENATION", "PACK", "MAXIMUM", "MINIMUM"})
"""Operators that require all operands to have the quantisation of the result."""
MOVES = frozenset(
    {
        *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT", "UNPACK", "GATHER"),
        *("PAD", "MAX_POOL_2D", "AVERAGE_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2"),
        *("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
    }
)
"""Operators whose results have the quantisation of their operand."""
DATA_OPERAND = {"SPLIT": 1}
"""The index of the data operand if it is not the first."""
CLAMPED = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
"""Fused activations that are bounds of the result."""


@frozen
class Scheme:
    """A way to quantise a model.

    `fixed` is the quantisation of results whose range is known in advance; `unsupported` are operators without it.
    Weights are int8, symmetric and per output channel if `by_channel`, otherwise quantised like activations.
    """

    element: str
    bias: str
    by_channel: bool
    fixed: Mapping[str, QuantizationParameters]
    unsupported: frozenset[str] = frozenset()

    def parameters(self, low: float, high: float) -> QuantizationParameters:
        """The quantisation for a range, which is widened to include 0."""
        low, high = min(low, 0.0), max(high, 0.0)
        if self.element == "int16":
            return QuantizationParameters(_scale(max(-low, high), 32767))
        scale, bounds = _scale(high - low, 255), np.iinfo(self.element)
        return QuantizationParameters(scale, int(np.clip(bounds.min + round(-low / scale), bounds.min, bounds.max)))

    def quantize(self, real: Array, parameters: QuantizationParameters) -> Array:
        """Quantise real numbers: round to nearest, saturate."""
        bounds = np.iinfo(self.element)
        found = np.rint(real.astype(np.float64) / parameters.scale) + parameters.zero_point
        integers: Array = np.clip(found, bounds.min, bounds.max).astype(self.element)
        return integers


def _scale(width: float, steps: int) -> float:
    """A scale as stored in the file, in float32; 1 for an empty range."""
    found = float(np.float32(width / steps))
    return found if found > 0 else 1.0


SCHEMES: Mapping[str, Scheme] = {
    "uint8": Scheme(
        "uint8",
        "int32",
        False,
        {
            "LOGISTIC": QuantizationParameters(1 / 256),
            "SOFTMAX": QuantizationParameters(1 / 256),
            "TANH": QuantizationParameters(1 / 128, 128),
            "L2_NORMALIZATION": QuantizationParameters(1 / 128, 128),
        },
    ),
    "int8": Scheme(
        "int8",
        "int32",
        True,
        {
            "LOGISTIC": QuantizationParameters(1 / 256, -128),
            "SOFTMAX": QuantizationParameters(1 / 256, -128),
            "TANH": QuantizationParameters(1 / 128),
            "L2_NORMALIZATION": QuantizationParameters(1 / 128),
        },
        frozenset({"DIV"}),
    ),
    "int16": Scheme(
        "int16",
        "int64",
        True,
        dict.fromkeys(("LOGISTIC", "SOFTMAX", "TANH"), QuantizationParameters(1 / 32768)),
        frozenset({"DIV", "PRELU", "HARD_SWISH", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "REVERSE_V2"}),
    ),
}
"""8-bit activations with weights of the same form or per-channel int8, or symmetric 16-bit activations with per-channel
int8 weights: the combinations that LiteRT's kernels support."""
UNEVEN_RATIO = 8.0
"""The ratio between an output channel's largest weight and the median channel's from which a shared scale is too
coarse: it leaves at most 5 of 8 bits for the smaller channel."""


def is_uneven(weights: Array, axis: int) -> bool:
    """Whether the output channels of weights differ too much to share a scale."""
    largest = np.abs(weights).max(axis=tuple(i for i in range(weights.ndim) if i != axis), initial=0)
    used = largest[largest > 0]
    return bool(used.size) and float(used.max()) > UNEVEN_RATIO * float(np.median(used))
