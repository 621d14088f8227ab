"""Operations of flows extracted from TensorFlow that Myelin itself lacks, with TensorFlow's names and attributes
(`strides` such as `1,2,2,1`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import RuleError
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.reduction.pool import Pool2D, Pooling


def _along_the_plane(node: Node, name: str) -> tuple[int, int]:
    """The height and width entries of an attribute; 1 if it is absent."""
    numbers = node.integers(name) or (1, 1, 1, 1)
    if len(numbers) != 4 or (numbers[0], numbers[3]) != (1, 1):
        raise RuleError(f"attribute '{name}' is {list(numbers)}, expected 1 for the batch and the channels")
    return numbers[1], numbers[2]


def _padding(node: Node) -> Padding | Margins:
    layout, text = node.attributes.get("data_format", "NHWC"), node.attributes.get("padding", "")
    if layout != "NHWC":
        raise RuleError(f"attribute 'data_format' is '{layout}', expected NHWC")
    if text == "EXPLICIT":
        margins = node.integers("explicit_paddings") or ()
        if len(margins) != 8 or any(margins[:2]) or any(margins[6:]):
            raise RuleError(f"attribute 'explicit_paddings' is {list(margins)}, expected 8 numbers, 0 at both ends")
        return Margins((margins[2:4], margins[4:6]))
    if text not in ("SAME", "VALID"):
        raise RuleError(f"attribute 'padding' is '{text}', expected SAME, VALID or EXPLICIT")
    return Padding[text]


def _convolution(kind: type[Conv2D | DepthwiseConv2D], e: Emitter, node: Node) -> int:
    """A convolution with constant filters [height, width, channels, filters], or multipliers instead of filters."""
    node.require_inputs(2)
    weight = e.elements(node.inputs[1], "the filter")
    if weight.ndim != 4:
        raise RuleError(f"the filter has shape {list(weight.shape)}, expected 4 dimensions")
    height, width, channels, times = weight.shape
    stored = weight.transpose(3, 0, 1, 2) if kind is Conv2D else weight.reshape(1, height, width, channels * times)
    op = kind(_padding(node), *_along_the_plane(node, "strides"), *_along_the_plane(node, "dilations"))
    return e.add(op, node.inputs[0], e.constant(np.ascontiguousarray(stored)))


def _pool(kind: Pooling, e: Emitter, node: Node) -> int:
    node.require_inputs(1)
    size = _along_the_plane(node, "ksize")
    return e.add(Pool2D(kind, *size, _padding(node), *_along_the_plane(node, "strides")), node.inputs[0])


def _pad(e: Emitter, node: Node) -> int:
    """Pad by [rank, 2] with zeros, or the third operand."""
    node.require_inputs(2, 3)
    return e.add(Pad(), *node.inputs)


def _fill(e: Emitter, node: Node) -> int:
    node.require_inputs(2)
    return e.add(Fill(), *node.inputs)


RULES: Mapping[str, Rule] = {
    "Conv2D": partial(_convolution, Conv2D),
    "DepthwiseConv2dNative": partial(_convolution, DepthwiseConv2D),
    "MaxPool": partial(_pool, Pooling.MAX),
    "AvgPool": partial(_pool, Pooling.AVERAGE),
    "Pad": _pad,
    "PadV2": _pad,
    "Fill": _fill,
}
