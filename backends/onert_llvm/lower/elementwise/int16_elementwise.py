"""Element-wise functions of 16-bit integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, Op, RuleError, TensorType, evaluate
from onert.ir.ops.arithmetic.fixed_point import activation_range
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.kernels.elementwise.elementwise_int8 import OPERANDS
from onert_llvm.kernels.elementwise.elementwise_int16 import (
    ELEMENTS,
    Form,
    MapShorts,
    MultiplyInt16,
    Rescale,
    ShiftedSumInt16,
    SumInt16,
)
from onert_llvm.lower.command_builder import Lowering

from .broadcast import grid, why_no_grid
from .float_elementwise import matrix
from .int8_binary import register

_FORMS = {
    BinaryKind.ADD: Form.SUM,
    BinaryKind.SUB: Form.DIFFERENCE,
    BinaryKind.SQUARED_DIFFERENCE: Form.SQUARED_DIFFERENCE,
}
_SUMS = (BinaryKind.ADD, BinaryKind.SUB)
_LEFT = 15
"""Bits by which TFLite lifts the sides of a sum of 16-bit numbers before it scales them (kernels/add.cc)."""

_NARROW = (DType.INT8, DType.UINT8, DType.INT16)
_CLAMPS = {
    UnaryKind.RELU: (0, None),
    UnaryKind.RELU6: (0, 6),
    UnaryKind.RELU_N1_TO_1: (-1, 1),
    UnaryKind.RELU_0_TO_1: (0, 1),
}


def why_not_binary(op: Binary, types: CallTypes) -> str | None:
    """Why this backend does not run the operation on two tensors; None if it does."""
    present = (types.input(0), types.input(1), types.output)
    if not (op.kind in _FORMS or op.kind is BinaryKind.MUL) or any(t.dtype is not DType.INT16 for t in present):
        return "only sums, differences and products of 16-bit numbers are native"
    if any(t.quantization is None or not t.quantization.per_tensor or t.zero_point for t in present):
        return "a tensor is not quantised with a zero point of 0"
    if op.activation.value.function is not None:
        return "its activation has no native form"
    shifts = _shifts(op, types)
    if shifts is not None and not all(-_MOST_LEFT <= by <= _MOST_RIGHT for by in shifts):
        return "its scales are too far apart to be shifted"
    return why_no_grid(types)


_MOST_LEFT, _MOST_RIGHT = 14, 20
"""Bits by which numbers of 16 bits are shifted in 32 bits: two of them add up, and further down nothing is left."""


def _shifts(op: Binary, types: CallTypes) -> tuple[int, int] | None:
    """By how many bits the sides of a sum are shifted down where all scales are powers of two; None if they are not
    shifted.
    """
    (x, ex), (y, ey), (out, eo) = (math.frexp(t.scale) for t in (types.input(0), types.input(1), types.output))
    powers = x == y == out == 0.5
    return (eo - ex, eo - ey) if op.power_of_two and op.kind in _SUMS and powers else None


def lower_binary(lowering: Lowering, operations: Sequence[int]) -> None:
    """The operation as one loop over rows."""
    at, operation, op = lowering.single(operations, Binary)
    types = lowering.subgraph.types(operation)
    x, y, result = operation.used[0], operation.used[-1], operation.outputs[0]
    found = grid(lowering.shape(result), [lowering.shape(x), lowering.shape(y)])
    assert found is not None
    low, high = op.activation.bounds(types.output)
    slots: dict[str, Slot] = {
        **found.slots(OPERANDS),
        "x": lowering.operand(x),
        "y": lowering.operand(y),
        "out": lowering.operand(result),
        "zero_point": 0,
        "low": low,
        "high": high,
    }
    single = (found.single[0], found.single[1])
    shifts = _shifts(op, types)
    algorithm: Algorithm
    if shifts is not None:
        algorithm = ShiftedSumInt16(_FORMS[op.kind], single)
        own: dict[str, Slot] = {}
        for name, by in zip(OPERANDS, shifts, strict=True):
            own |= {f"{name}_right": max(by, 0), f"{name}_left": max(-by, 0)}
    else:
        algorithm, own = (_product if op.kind is BinaryKind.MUL else _sum)(lowering, op, types, single)
    used = {name: slot for name, slot in (slots | own).items() if name in algorithm.slots}
    lowering.emit(at, algorithm, used, found.rows, operation.used, (result,), found.rows * found.width)


def _sum(
    lowering: Lowering, op: Binary, types: CallTypes, single: tuple[bool, bool]
) -> tuple[Algorithm, dict[str, Slot]]:
    x, y, out = types.input(0), types.input(1), types.output
    form = _FORMS[op.kind]
    squared = form is Form.SQUARED_DIFFERENCE
    twice = 2.0 * max(x.scale, y.scale)
    real = twice * twice / out.scale if squared else twice / ((1 << _LEFT) * out.scale)
    how, columns = register(lowering, real, (1 << 30) + (1 << 17), 0)
    slots: dict[str, Slot] = {"columns": columns}
    sides = []
    for name, side in zip(OPERANDS, (x, y), strict=True):
        scale, slots[f"{name}_columns"] = register(lowering, side.scale / twice, 1 << 30, 0)
        sides.append(None if side.scale * 2.0 == twice and not squared else scale)
    return SumInt16(how, (sides[0], sides[1]), form, single), slots


def _product(
    lowering: Lowering, op: Binary, types: CallTypes, single: tuple[bool, bool]
) -> tuple[Algorithm, dict[str, Slot]]:
    x, y, out = types.input(0), types.input(1), types.output
    real = float(np.float32(x.scale) * np.float32(y.scale) / np.float32(out.scale))
    how, columns = register(lowering, real, 1 << 30, 0)
    return MultiplyInt16(how, single), {"columns": columns}


def why_not_rescaled(op: Op, types: CallTypes) -> str | None:
    """Why an operation does not bring numbers of 8 or 16 bits to another scale; None if it does."""
    rectified = isinstance(op, Unary) and op.kind in _CLAMPS
    if not (rectified or isinstance(op, Quantize)):
        return "it does more than to bring numbers to another scale"
    x, out = types.input(0), types.output
    if x.dtype not in _NARROW or out.dtype not in _NARROW or 0 in out.shape:
        return "only numbers of 8 and 16 bits are native"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, out)):
        return "its quantisation has no native form"
    return None


def lower_rescaled(lowering: Lowering, operations: Sequence[int]) -> None:
    """Element by element."""
    (at,) = operations
    operation = lowering.operation(at)
    op, types = operation.op, lowering.subgraph.types(operation)
    source, target = operation.used[0], operation.outputs[0]
    x, out = types.input(0), types.output
    low, high = out.dtype.limits
    real = x.scale / out.scale
    if isinstance(op, Unary):
        low, high = _bounds(op, out)
        real = float(np.float32(x.scale) / np.float32(out.scale))
    how, columns = register(lowering, real, 1 << 17, out.zero_point)
    rows, width = matrix(lowering.shape(target), flat=True)
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "out": lowering.operand(target),
        "width": width,
        "x_zero": x.zero_point,
        "low": low,
        "high": high,
        "columns": columns,
    }
    if how is not Scaling.NARROW:
        slots["zero_point"] = out.zero_point
    assert set(Requantize(how).slots) <= slots.keys()
    algorithm = Rescale(x.dtype.bits, out.dtype.bits, x.dtype is not DType.UINT8, how)
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), rows * width)


def why_not_mapped(op: Op, types: CallTypes) -> str | None:
    """Why an operation is no function of one number of 16 bits, or of 8 with 16-bit results; None if it is."""
    x, out = types.input(0), types.output
    if len(types.inputs) != 1 or len(types.outputs) != 1 or 0 in out.shape or x.shape != out.shape:
        return "it is not a function of the elements of one tensor"
    if not (x.dtype in _NARROW and out.dtype.is_integer and out.dtype.bits in ELEMENTS):
        return "only numbers of 8 and 16 bits are native"
    if any(t.quantization is not None and not t.quantization.per_tensor for t in (x, out)):
        return "its quantisation has no native form"
    try:
        _table(op, types)
    except RuleError as error:
        return str(error)
    return None


def _table(op: Op, types: CallTypes) -> Array:
    """The results for every stored number, in the order of the unsigned number that it is."""
    count = (1 << types.input(0).dtype.bits,)
    return _results(op, *(evolve(t, shape=count, data=None) for t in (types.input(0), types.output)))


@lru_cache(64)
def _results(op: Op, x: TensorType, out: TensorType) -> Array:
    """The same, kept for the next who asks: whether there is one, and what it is, is asked more than once."""
    wide = np.dtype(f"u{x.dtype.itemsize}")
    values = np.arange(1 << x.dtype.bits).astype(wide).view(x.dtype.numpy)
    (found,) = evaluate(op, [values], CallTypes((x,), (out,)))
    return found


def lower_mapped(lowering: Lowering, operations: Sequence[int]) -> None:
    """A function of one stored number as a table of all of its results."""
    (at,) = operations
    operation = lowering.operation(at)
    types = lowering.subgraph.types(operation)
    source, target = operation.used[0], operation.outputs[0]
    rows, width = matrix(lowering.shape(target), flat=True)
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "out": lowering.operand(target),
        "width": width,
        "table": lowering.constant(_table(operation.op, types)),
    }
    algorithm = MapShorts(types.input(0).dtype.bits, types.output.dtype.bits)
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), rows * width)


def _bounds(op: Unary, out: TensorType) -> tuple[int, int]:
    low, high = _CLAMPS[op.kind]
    return activation_range(low, high, out.scale, out.zero_point, out.dtype.limits)
