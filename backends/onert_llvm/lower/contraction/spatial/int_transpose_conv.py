"""Transposed convolutions of 8-bit and 16-bit integers with constant filters, bit-exact with TFLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import CallTypes
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction import int8_conv_fc as integer_products
from onert_llvm.lower.contraction import int8_filters as integer_filters
from onert_llvm.lower.contraction import int16_conv_fc as short_products
from onert_llvm.lower.contraction import int16_filters as short_filters
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.quantized_layer import Layer, MakeOutputs, OutputsT, why_no_form

from .phases import phases, put, rooms

Convolve = Callable[[Lowering, Layer[OutputsT], Plane], None]


def why_not(op: TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation on bytes; None if it does."""
    plain = _as_convolution(types)
    return integer_filters.why_not(plain) or why_no_form(op, plain)


def why_not_shorts(op: TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation on 16-bit numbers; None if it does."""
    plain = _as_convolution(types)
    return short_filters.why_not(plain) or short_filters.why_not_scaled(op, plain) or why_no_form(op, plain)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution of bytes."""
    _lower(lowering, operations, integer_filters.Outputs, integer_products.convolve)


def lower_shorts(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution of 16-bit numbers."""
    _lower(lowering, operations, short_filters.Parameters, short_products.convolve)


def _lower(
    lowering: Lowering, operations: Sequence[int], make: MakeOutputs[OutputsT], convolve: Convolve[OutputsT]
) -> None:
    """The convolution of all phases, whose results are put into their places if strides are greater than one."""
    at, operation, op = lowering.single(operations, TransposeConv2D)
    types = _as_convolution(lowering.subgraph.types(operation))
    source, result = operation.used[2], operation.outputs[0]
    own = integer_filters.stored(types.input(1))
    found = phases(op, lowering.shape(source), own.values.shape, lowering.shape(result))
    ordered = own.ordered(found.filters(own.values, own.zero).transpose(1, 2, 3, 0))
    columns = np.tile(np.arange(found.channels), found.count)
    made = lowering.scratch(*rooms(found, types.output.dtype.itemsize))
    layer = Layer(
        at, source, result, make(types, op.activation, False), ordered, columns, room=made[0] if made else None
    )
    convolve(lowering, layer, found.plane(ordered.values.shape[2]))
    put(lowering, at, found, made)


def _as_convolution(types: CallTypes) -> CallTypes:
    """The types in a convolution's order: input, filter and bias."""
    bias = types.inputs[3] if len(types.inputs) > 3 else None
    return CallTypes((types.input(2), types.input(1), bias), types.outputs)
