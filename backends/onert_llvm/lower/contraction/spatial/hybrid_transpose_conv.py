"""Transposed float convolutions with 8-bit filters, whose input is quantised on the fly (dynamic range)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import CallTypes
from onert.ir.ops.arithmetic.dynamic_range import filter_values
from onert.ir.ops.arithmetic.rescale import filter_scales
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction import dynamic_range_conv_fc as products
from onert_llvm.lower.contraction.quantized_rows import quantize

from .phases import after_sums, phases, put, rooms


def why_not(op: TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    bias = types.inputs[3] if len(types.inputs) > 3 else None
    if bias is not None and bias.value is None:
        return "the bias is not constant"
    return products.why_not(op, CallTypes((types.input(2), types.input(1), bias), types.outputs))


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The convolution of all phases, whose results are put into their places if strides are greater than one."""
    at, operation, op = lowering.single(operations, TransposeConv2D)
    _, weight, x, bias = (*operation.inputs, None)[:4]
    assert x is not None
    assert weight is not None
    result, (images, *_, channels) = operation.outputs[0], lowering.shape(x)
    filters = filter_values(lowering.elements(weight))
    found = phases(op, lowering.shape(x), filters.shape, lowering.shape(result))
    geometry = evolve(found.plane(channels), images=1)
    source = quantize(lowering, at, x, images, channels, True, *rooms(found))
    split = found.filters(filters)
    shape = products.filter_shape(geometry, channels, len(split))
    ordered = np.ascontiguousarray(split.transpose(1, 2, 3, 0).reshape(shape))
    scales = filter_scales(lowering.type(weight))
    every = np.tile(scales, found.count) if scales.size > 1 else scales
    after = after_sums(lowering, found, op.activation, bias, result, source.more)
    after = evolve(after, slots=after.slots | products.columns(lowering, ordered, every))
    how = Dynamic(after.epilogue, asymmetric=True, filter_first=True, alike=True)
    products.multiply(lowering, at, source, ordered, after, how, (geometry.rows, channels), geometry, images)
    put(lowering, at, found, source.more)
