"""The rules for 16-bit integers and complex numbers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.unary import Unary

from . import fourier, short_products
from .rule import Rule

SHORTS: dict[type[Op], Rule] = {
    Conv2D: Rule(short_products.why_not, short_products.lower_convolution),
    DepthwiseConv2D: Rule(short_products.why_not, short_products.lower_depthwise),
    FullyConnected: Rule(short_products.why_not, short_products.lower_fully_connected),
}

_PART = Rule(fourier.why_no_part, fourier.lower_part)


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation on 16-bit integers or on complex numbers."""
    if any(t is not None and t.dtype is DType.INT16 for t in (*types.inputs, *types.outputs)) and type(op) in SHORTS:
        yield SHORTS[type(op)]
    if isinstance(op, Unary) and types.input(0).dtype is DType.COMPLEX64:
        yield _PART
