"""Which operators have a form in integers that LiteRT's kernels compute too, and in which numbers their results are.

Source: the quantisation specification of TFLite, and which element types its kernels take.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from onert.ir import Array


@frozen
class Numbers:
    """What stored integers stand for: `scale * (integer - zero)`."""

    scale: float
    zero: int = 0


@frozen
class Layer:
    """Which operands are activations, weights and bias, and the dimension of weights that output channels have."""

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
PAIRS = frozenset({"ADD", "SUB", "MUL", "DIV", "PRELU"})
"""Of two operands, whose result has a range of its own."""
OWN = PAIRS | {"MEAN", "RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH"}
"""Operators whose results have ranges of their own."""
JOINS = frozenset({"CONCATENATION", "PACK", "MAXIMUM", "MINIMUM"})
"""Operators that take all operands in the numbers of the result."""
MOVES = frozenset(
    {
        *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT", "UNPACK", "GATHER"),
        *("PAD", "MAX_POOL_2D", "AVERAGE_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2"),
        *("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
    }
)
"""Operators whose results are in the numbers of their operand."""
LATE = {"SPLIT": 1}
"""Where the operand of an operator is not the first."""
CLAMPED = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
"""Activations within an operator that are bounds of its result."""


@frozen
class Form:
    """One way to have a model in integers.

    `fixed` are the numbers of results whose range is known before; `lacks` are operators without this form.
    Weights are int8, symmetric with a scale for each output channel, if `by_channel`, else as activations are.
    """

    element: str
    bias: str
    by_channel: bool
    fixed: Mapping[str, Numbers]
    lacks: frozenset[str] = frozenset()

    def numbers(self, low: float, high: float) -> Numbers:
        """Those for a range, which is widened to have 0 in it."""
        low, high = min(low, 0.0), max(high, 0.0)
        if self.element == "int16":
            return Numbers(_scale(max(-low, high), 32767))
        scale, bounds = _scale(high - low, 255), np.iinfo(self.element)
        return Numbers(scale, int(np.clip(bounds.min + round(-low / scale), bounds.min, bounds.max)))

    def stored(self, real: Array, numbers: Numbers) -> Array:
        """Real numbers as integers: to the nearest, saturated."""
        bounds = np.iinfo(self.element)
        found = np.rint(real.astype(np.float64) / numbers.scale) + numbers.zero
        integers: Array = np.clip(found, bounds.min, bounds.max).astype(self.element)
        return integers


def _scale(width: float, steps: int) -> float:
    """A step as the file has it, in float32; 1 for no width at all."""
    found = float(np.float32(width / steps))
    return found if found > 0 else 1.0


FORMS: Mapping[str, Form] = {
    "uint8": Form(
        "uint8",
        "int32",
        False,
        {
            "LOGISTIC": Numbers(1 / 256),
            "SOFTMAX": Numbers(1 / 256),
            "TANH": Numbers(1 / 128, 128),
            "L2_NORMALIZATION": Numbers(1 / 128, 128),
        },
    ),
    "int8": Form(
        "int8",
        "int32",
        True,
        {
            "LOGISTIC": Numbers(1 / 256, -128),
            "SOFTMAX": Numbers(1 / 256, -128),
            "TANH": Numbers(1 / 128),
            "L2_NORMALIZATION": Numbers(1 / 128),
        },
        frozenset({"DIV"}),
    ),
    "int16": Form(
        "int16",
        "int64",
        True,
        dict.fromkeys(("LOGISTIC", "SOFTMAX", "TANH"), Numbers(1 / 32768)),
        frozenset({"DIV", "PRELU", "HARD_SWISH", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "REVERSE_V2"}),
    ),
}
"""Activations in bytes, with weights likewise or by channel, or in symmetric 16-bit integers with weights in int8 by
channel: the combinations that LiteRT's kernels take."""
UNEVEN = 8.0
"""How many times larger than another an output channel's weights are, from which on one scale for both is too coarse
for one of them: a byte has no more than 5 bits for it."""


def is_uneven(weights: Array, axis: int) -> bool:
    """Whether output channels of weights differ too much to have one scale."""
    largest = np.abs(weights).max(axis=tuple(i for i in range(weights.ndim) if i != axis), initial=0)
    used = largest[largest > 0]
    return bool(used.size) and float(used.max()) > UNEVEN * float(np.median(used))
