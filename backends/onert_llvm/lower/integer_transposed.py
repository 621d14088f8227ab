"""Transposed convolutions of 8-bit integers with constant filters, in TFLite's exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, TensorType
from onert.ir.ops.transpose_conv import TransposeConv2D

from . import integer_filters as filters
from .builder import Lowering
from .integer_filters import Outputs
from .integer_products import Layer, convolve
from .phases import phases, put


def why_not(op: TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None where it does."""
    x, weight, bias = _operands(types)
    reason = filters.why_not(x, weight, bias, types.output)
    if reason is None and op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    return reason


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution, its results put into their places where the strides are more than one."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, TransposeConv2D)
    types = lowering.subgraph.types(operation)
    x, weight, bias = _operands(types)
    source, result = operation.used[2], operation.outputs[0]
    stored = filters.stored(weight)
    found = phases(op, lowering.shape(source), stored.values.shape, lowering.shape(result))
    ordered = found.filters(stored.values, stored.zero).transpose(1, 2, 3, 0)
    outputs = Outputs(CallTypes((x, weight, bias), types.outputs), op.activation)
    columns = np.tile(np.arange(found.channels), found.count)
    room = None if found.count == 1 else lowering.scratch(found.results)[0]
    layer = Layer(at, source, result, outputs, stored.ordered(ordered), columns, room=room)
    convolve(lowering, layer, found.plane(ordered.shape[2]))
    if room is not None:
        put(lowering, at, found, room.pointer)


def _operands(types: CallTypes) -> tuple[TensorType, TensorType, TensorType | None]:
    """Input, filter and bias."""
    return types.input(2), types.input(1), types.inputs[3] if len(types.inputs) > 3 else None
