"""Bytes put together that have different scales, or an activation behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve

from onert.ir import Array, CallTypes, TensorType, evaluate
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.shape import normalize_axis
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES

from .int8_lookup_tables import all_bytes, map_rows


def why_not(op: Concat, types: CallTypes) -> str | None:
    """Why this backend does not join the tensors; None if it does."""
    present = [t for t in types.inputs if t is not None]
    if any(t.dtype not in BYTES or 0 in t.shape for t in present):
        return "only bytes are native"
    quantized = all(t.quantization is not None and t.quantization.per_tensor for t in (*present, types.output))
    return None if quantized and op.activation.value.function is None else "its quantisation has no native form"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Each operand copied into its place, through a table where its elements change."""
    (at,) = operations
    operation = lowering.operation(at)
    op, target = operation.op, operation.outputs[0]
    assert isinstance(op, Concat)
    out = lowering.type(target)
    axis = normalize_axis(op.axis, out.rank)
    shape = lowering.shape(target)
    rows = math.prod(shape[:axis])
    step = math.prod(shape[axis:])
    offset = 0
    for source in operation.used:
        width = math.prod(lowering.shape(source)[axis:])
        map_rows(
            lowering,
            at,
            _table(op, lowering.type(source), out),
            (source, lowering.operand(source), width),
            (target, lowering.operand(target, offset), step),
            (rows, width),
        )
        offset += width


def _table(op: Concat, source: TensorType, result: TensorType) -> Array:
    """What becomes of every byte of an operand."""
    plain = Concat(0, op.activation) if op.activation is not Activation.NONE else Concat(0)
    types = CallTypes((evolve(source, shape=(256,), data=None),), (evolve(result, shape=(256,), data=None),))
    (found,) = evaluate(plain, [all_bytes(source)], types)
    return found
