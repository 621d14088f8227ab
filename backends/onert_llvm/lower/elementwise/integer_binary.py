"""Sums, differences and products of quantised tensors of bytes and of 16-bit numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.fixed_point import quantize_multipliers
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
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
from onert_llvm.target.isa import Isa

from .broadcast import grid, longer, why_no_grid
from .int8_lookup_tables import all_bytes, pair_table

_FORMS = {
    BinaryKind.ADD: Form.SUM,
    BinaryKind.SUB: Form.DIFFERENCE,
    BinaryKind.SQUARED_DIFFERENCE: Form.SQUARED_DIFFERENCE,
}
_SUMS = (BinaryKind.ADD, BinaryKind.SUB)

_MOST_LEFT, _MOST_RIGHT = 14, 20
"""Bits by which numbers of 16 bits are shifted in 32 bits: two of them add up, and further down nothing is left."""


def why_not(op: Binary, types: CallTypes) -> str | None:
    """Why this backend does not run the operation on quantised tensors; None if it does."""
    present = (types.input(0), types.input(1), types.output)
    dtype = types.output.dtype
    short = dtype is DType.INT16
    if op.kind not in (*_FORMS, BinaryKind.MUL):
        return "it has no native integer form"
    if dtype not in QUANTIZED or any(t.dtype is not dtype for t in present):
        return "only operands of 8 or of 16 bits are native"
    if any(t.quantization is None or not t.quantization.per_tensor or (short and t.zero_point) for t in present):
        return "a tensor has no scale of its own, or one of 16 bits a zero point"
    if op.activation.value.function is not None:
        return "its activation has no integer form"
    shifts = _shifts(op, types)
    if shifts is not None and not all(-_MOST_LEFT <= by <= _MOST_RIGHT for by in shifts):
        return "its scales are too far apart to be shifted"
    if op.kind is BinaryKind.SQUARED_DIFFERENCE and not short and _square(types)[0] >= 1:
        return "its squares grow, which may take more than 32 bits"
    return why_no_grid(types)


def _square(types: CallTypes) -> tuple[float, float]:
    """What the square of a difference is multiplied by, and the scale that TFLite brings both sides to."""
    x, y, out = types.input(0), types.input(1), types.output
    twice, left = 2.0 * max(x.scale, y.scale), Form.SQUARED_DIFFERENCE.lift(KINDS[out.dtype])
    return twice * twice / ((1 << 2 * left) * out.scale), twice


def _shifts(op: Binary, types: CallTypes) -> tuple[int, int] | None:
    """By how many bits the sides of a sum of 16-bit numbers are shifted down where all scales are powers of two; None
    if they are not shifted.
    """
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
    function, own = (_product if op.kind is BinaryKind.MUL else _sum)(lowering, op, types)
    low, high = op.activation.bounds(types.output)
    clamped = (low, high) != types.output.dtype.limits
    algorithm = Pairwise(function, KINDS[types.output.dtype], clamped, (found.single[0], found.single[1]))
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


def _sum(lowering: Lowering, op: Binary, types: CallTypes) -> tuple[Function, dict[str, Slot]]:
    """A sum or a difference: in floats where these are exact, by shifts where the scales allow, else in fixed point, as
    the square of a difference always is.
    """
    x, y, out = types.input(0), types.input(1), types.output
    shifts, slots, form = _shifts(op, types), dict[str, Slot](), _FORMS[op.kind]
    if shifts is not None:
        for name, by in zip(OPERANDS, shifts, strict=True):
            slots |= {f"{name}_right": max(by, 0), f"{name}_left": max(-by, 0)}
        return ShiftedSum(form), slots
    affine = op.kind in _SUMS and out.dtype is not DType.INT16
    factors = affine_factors(op, types, lowering.isa) if affine else None
    if factors is not None:
        return Affine(), dict(zip(Affine.slots, factors, strict=True))
    squared, left = form is Form.SQUARED_DIFFERENCE, form.lift(KINDS[out.dtype])
    real, twice = _square(types)
    if not squared:
        real = twice / ((1 << left) * out.scale)
    bound = 1 << 30 if squared else 1 << 29  # both sides of bytes are at most 2**28 after TFLite has halved their scale
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
    """One register of a multiplier for values of magnitude `bound` at most."""
    multiplier = quantize_multipliers([real])
    how = scaling(np.array([bound]), multiplier, zero_point)
    same = np.zeros(lowering.isa.f32, np.int64)
    return how, lowering.constant(pack_columns(how, same, multiplier, zero_point, lowering.isa))


_STEPS = 8
"""How far the search for factors goes, in steps of 2**-18 of the offset."""


_ROWS = 48
"""Of the table of results that are looked at together: few enough that the memory for them is used again."""


def affine_factors(op: Binary, types: CallTypes, isa: Isa) -> tuple[float, float, float] | None:
    """Factors of x and y and an offset in float32 with which `Affine` gives every result; None if none is found.

    All 65536 results are compared: most with what arithmetic without error gives, which no factors that are tried come
    far from; those that lie near a half with what the target computes.
    """
    x, y, out = types.input(0), types.input(1), types.output
    a, b = (all_bytes(t).astype(np.float64) for t in (x, y))
    sign = 1 if op.kind is BinaryKind.ADD else -1
    real = (np.float32(x.scale / out.scale), np.float32(sign * y.scale / out.scale))
    start = out.zero_point - x.zero_point * float(real[0]) - y.zero_point * float(real[1])
    reach = np.abs(a).max() * abs(float(real[0])) + np.abs(b).max() * abs(float(real[1])) + abs(start) + 1
    if reach >= 1 << 13 or min(np.abs(real)) < 2.0**-16:
        return None  # float64 would not hold what a trial computes
    bounds, error, found = op.activation.bounds(out), _most_error(real, reach), []
    for part in (slice(at, at + _ROWS) for at in range(0, 256, _ROWS)):
        exact = pair_table(op, types, part)
        sums = a[part, None] * float(real[0]) + (b * float(real[1]) + start)
        rounded = np.rint(sums)
        near = np.abs(sums - rounded) > 0.5 - error
        if not np.all(near[np.clip(rounded, *bounds) != exact]):
            return None
        rows, columns = np.nonzero(near)
        found.append((a[part][rows], b[columns], exact[rows, columns].astype(np.float64)))
    x_near, y_near, results = (np.concatenate(each) for each in zip(*found, strict=True))
    trial = _Trial(x_near, y_near, results, bounds, isa.fma)
    steps = sorted(range(-_STEPS, _STEPS + 1), key=abs)
    nearby = [(r, np.nextafter(r, np.float32(0)), np.nextafter(r, 2 * r)) for r in real]
    for p in nearby[0]:
        for q in nearby[1]:
            for step in steps:
                factors = (p, q, np.float32(start + step * 2.0**-18))
                if trial.agrees(*factors):
                    return float(p), float(q), float(factors[2])
    return None


def _most_error(factors: tuple[np.float32, np.float32], reach: float) -> float:
    """How far what a trial computes may be from arithmetic without error on `factors`, where nothing exceeds `reach`.

    Factors that are tried differ by one unit in the last place, for up to 255; the offset by its steps; and five
    results of less than `reach` are rounded to float32: two products, two sums, the offset. Twice that, to be sure.
    """
    other = 255 * sum(float(np.spacing(np.abs(f))) for f in factors) + _STEPS * 2.0**-18
    return 2 * (other + 5 * float(np.spacing(np.float32(reach))))


@frozen(eq=False)
class _Trial:
    """Pairs of operands, their exact results, and how the target computes."""

    x: Array
    y: Array
    exact: Array
    bounds: tuple[int, int]
    fma: bool

    def agrees(self, p: np.float32, q: np.float32, offset: np.float32) -> bool:
        total = self._added(self.y, q, self._added(self.x, p, np.float64(offset)))
        return bool(np.array_equal(np.clip(np.rint(total), *self.bounds), self.exact))

    def _added(self, x: Array, factor: np.float32, to: Array | np.float64) -> Array:
        """`x * factor + to` in float32: all of it is exact in float64, where nothing is rounded before the end."""
        product = x * np.float64(factor)
        if not self.fma:
            product = product.astype(np.float32).astype(np.float64)
        out: Array = np.asarray(product + to).astype(np.float32).astype(np.float64)
        return out
