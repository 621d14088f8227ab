"""Sums, differences and products of quantised 8-bit and 16-bit tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.fixed_point import quantize_multipliers
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.elementwise import byte_sums
from onert_llvm.kernels.elementwise.byte_sums import ByteSums
from onert_llvm.kernels.elementwise.pairwise import (
    OPERANDS,
    Affine,
    FixedProduct,
    FixedSum,
    Form,
    Function,
    Pairwise,
    ShiftedSum,
)
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS, QUANTIZED
from onert_llvm.schedule.weight_packing import pack_columns, scaling

from .broadcast import grid, longer, why_no_grid
from .sum_factors import affine_factors, whole_factors

_FORMS = {
    BinaryKind.ADD: Form.SUM,
    BinaryKind.SUB: Form.DIFFERENCE,
    BinaryKind.SQUARED_DIFFERENCE: Form.SQUARED_DIFFERENCE,
}
_SUMS = (BinaryKind.ADD, BinaryKind.SUB)

_MOST_LEFT, _MOST_RIGHT = 14, 20
"""The most bits by which 16-bit numbers are shifted in 32 bits: two must add up, and beyond 20 nothing is left."""


def why_not(op: Binary, types: CallTypes) -> str | None:
    """Why this backend does not run the operation on quantised tensors; None if it does."""
    present = (types.input(0), types.input(1), types.output)
    dtype = types.output.dtype
    short = dtype is DType.INT16
    if op.kind not in (*_FORMS, BinaryKind.MUL):
        return "it has no native integer form"
    if dtype not in QUANTIZED or any(t.dtype is not dtype for t in present):
        return "only 8-bit or 16-bit tensors of one type are native"
    if any(t.quantization is None or not t.quantization.per_tensor or (short and t.zero_point) for t in present):
        return "a tensor has no per-tensor scale, or a 16-bit one has a zero point"
    if op.activation.value.function is not None:
        return "its activation has no integer form"
    shifts = _shifts(op, types)
    if shifts is not None and not all(-_MOST_LEFT <= by <= _MOST_RIGHT for by in shifts):
        return "its scales are too far apart to be shifted"
    if op.kind is BinaryKind.SQUARED_DIFFERENCE and not short and _square(types)[0] >= 1:
        return "its squares may need more than 32 bits"
    return why_no_grid(types)


def _square(types: CallTypes) -> tuple[float, float]:
    """The multiplier of the square of a difference, and the scale to which TFLite brings both sides."""
    x, y, out = types.input(0), types.input(1), types.output
    twice, left = 2.0 * max(x.scale, y.scale), Form.SQUARED_DIFFERENCE.lift(KINDS[out.dtype])
    return twice * twice / ((1 << 2 * left) * out.scale), twice


def _shifts(op: Binary, types: CallTypes) -> tuple[int, int] | None:
    """The right shifts of the sides of a 16-bit sum if all scales are powers of two; None if they are not shifted."""
    (x, ex), (y, ey), (out, eo) = (math.frexp(t.scale) for t in (types.input(0), types.input(1), types.output))
    powers = x == y == out == 0.5 and types.output.dtype is DType.INT16
    return (eo - ex, eo - ey) if op.power_of_two and op.kind in _SUMS and powers else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The operation as one loop over rows."""
    at, operation, op = lowering.single(operations, Binary)
    types = lowering.subgraph.types(operation)
    x, y, result = operation.used[0], operation.used[-1], operation.outputs[0]
    found = grid(lowering.shape(result), [lowering.shape(x), lowering.shape(y)])
    assert found is not None
    places = [lowering.operand(x), lowering.operand(y)]
    for i, operand in enumerate((x, y)):
        if lowering.subgraph.operands[operand].is_constant:
            found, times = longer(found, i)
            if times > 1:
                places[i] = lowering.constant(np.tile(lowering.elements(operand).reshape(-1), times))
    low, high = op.activation.bounds(types.output)
    kind, single = KINDS[types.output.dtype], (found.single[0], found.single[1])
    clamped = (low, high) != types.output.dtype.limits
    algorithm: Algorithm
    whole = whole_factors(op, types) if _is_byte_sum(op, types) and byte_sums.has(lowering.isa) else None
    if whole is None:
        function, own = (_product if op.kind is BinaryKind.MUL else _sum)(lowering, op, types)
        algorithm = Pairwise(function, kind, clamped, single)
    else:
        algorithm, own = ByteSums(kind.signed, clamped, single), dict[str, Slot](whole)
    slots: dict[str, Slot] = {
        **found.slots(OPERANDS),
        **own,
        "x": places[0],
        "y": places[1],
        "x_zero": types.input(0).zero_point,
        "y_zero": types.input(1).zero_point,
        "out": lowering.operand(result),
        "zero_point": types.output.zero_point,
        "low": low,
        "high": high,
    }
    used: dict[str, Slot] = {name: slots[name] for name in algorithm.slots}
    lowering.emit(at, algorithm, used, found.rows, operation.used, (result,), found.rows * found.width)


def _is_byte_sum(op: Binary, types: CallTypes) -> bool:
    """Whether it is a sum or a difference of bytes."""
    return op.kind in _SUMS and types.output.dtype is not DType.INT16


def _sum(lowering: Lowering, op: Binary, types: CallTypes) -> tuple[Function, dict[str, Slot]]:
    """A sum or a difference: in floats if these are exact, by shifts if the scales allow, otherwise in fixed point, as
    the square of a difference always is.
    """
    x, y, out = types.input(0), types.input(1), types.output
    shifts, slots, form = _shifts(op, types), dict[str, Slot](), _FORMS[op.kind]
    if shifts is not None:
        for name, by in zip(OPERANDS, shifts, strict=True):
            slots |= {f"{name}_right": max(by, 0), f"{name}_left": max(-by, 0)}
        return ShiftedSum(form), slots
    factors = affine_factors(op, types, lowering.isa) if _is_byte_sum(op, types) else None
    if factors is not None:
        return Affine(), dict(zip(Affine.slots, factors, strict=True))
    squared, left = form is Form.SQUARED_DIFFERENCE, form.lift(KINDS[out.dtype])
    real, twice = _square(types)
    if not squared:
        real = twice / ((1 << left) * out.scale)
    bound = 1 << 30 if squared else 1 << 29  # bytes are at most 2**28, as TFLite halves their scale
    if out.dtype is DType.INT16:
        bound = (1 << 30) + (1 << 17)
    how, slots["columns"] = register(lowering, real, bound, out.zero_point)
    sides = []
    for name, side in zip(OPERANDS, (x, y), strict=True):
        most = 1 << (30 if out.dtype is DType.INT16 else 28)
        scale, slots[f"{name}_columns"] = register(lowering, side.scale / twice, most, 0)
        sides.append(None if side.scale * 2.0 == twice and left else scale)
    return FixedSum(how, (sides[0], sides[1]), form), slots


def _product(lowering: Lowering, op: Binary, types: CallTypes) -> tuple[Function, dict[str, Slot]]:
    x, y, out = types.input(0), types.input(1), types.output
    real = float(np.float32(x.scale) * np.float32(y.scale) / np.float32(out.scale))
    how, columns = register(lowering, real, 1 << (30 if out.dtype is DType.INT16 else 18), out.zero_point)
    return FixedProduct(how), {"columns": columns}


def register(lowering: Lowering, real: float, bound: int, zero_point: int) -> tuple[Scaling, Slot]:
    """One register of a multiplier for values of magnitude up to `bound`."""
    multiplier = quantize_multipliers([real])
    how = scaling(np.array([bound]), multiplier, zero_point)
    same = np.zeros(lowering.isa.f32, np.int64)
    return how, lowering.constant(pack_columns(how, same, multiplier, zero_point, lowering.isa))
