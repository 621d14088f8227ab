"""Operations on positions, as comparisons of index vectors and selections or gathers by them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.data_movement.dense import Bucketize
from onert.ir.ops.data_movement.diagonal import MatrixBandPart, MatrixDiag, MatrixSetDiag
from onert.ir.ops.data_movement.element_indices import GatherElements
from onert.ir.ops.data_movement.gather import EmbeddingLookup, OneHot
from onert.ir.ops.data_movement.layout import ReverseSequence
from onert.ir.ops.data_movement.reshape import Rank, Reshape, ShapeOf
from onert.ir.ops.elementwise.binary import AddN, BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.convert import Dequantize, FakeQuant
from onert.ir.ops.elementwise.unary import UnaryKind, ZerosLike
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.shape import normalize_axis, static

from .decomposition import Decomposition, always, moves, only_float32
from .draft import Draft


def _why_no_rows(op: OneHot, types: CallTypes) -> str | None:
    if types.input(1).value is None:
        return "the depth is not known before the run"
    scales = types.output.quantization
    if all(types.input(i).value is not None for i in (2, 3)) and (scales is None or scales.per_tensor):
        return None
    return moves(op, CallTypes((types.input(2),), types.outputs))


def _one_hot(d: Draft, op: OneHot, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Equal(Reshape(indices), [0, 1 ..]), on, off)

    Constants are stored as they are whatever their scales, which TensorFlow's converter gives each its own.
    """
    indices, _, on, off = operands
    indices = d.index(indices)
    at = normalize_axis(op.axis, types.output.rank)
    shape, depth = d.shape(indices), static(types.output.shape)[at]
    numbers = d.numbers(depth, indices, (depth, *(1,) * (len(shape) - at)))
    equal = d.compared(ComparisonKind.EQUAL, d.reshaped(indices, *shape[:at], 1, *shape[at:]), numbers)
    return [d.chosen(equal, *(_stored(d, i, types.output) for i in (on, off)))]


def _stored(d: Draft, x: int, result: TensorType) -> int:
    """A single element as a scalar; a constant is stored with the scales of the result."""
    value = d.type(x).value
    if value is None or d.type(x).quantization == result.quantization:
        return d.reshaped(x)
    return d.constant(value.reshape(()), result.quantization, dtype=result.dtype)


def _reverse_sequence(d: Draft, op: ReverseSequence, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(x, Select(Less(time, length), length - 1 - time, time) + Minimum(length, 0)), batch by batch

    A length that is negative or exceeds the sequence leads to an invalid index.
    """
    x, lengths = operands
    shape = d.shape(x)
    sequence, batch = (normalize_axis(a, len(shape)) for a in (op.sequence_axis, op.batch_axis))
    lengths = d.reshaped(d.index(lengths), shape[batch], 1)
    time = d.numbers(shape[sequence], lengths, (1, shape[sequence]))
    mirrored = d.difference(d.difference(lengths, d.like(lengths, 1)), time)
    sources = d.chosen(d.compared(ComparisonKind.LESS, time, lengths), mirrored, time)
    sources = d.sum(sources, d.binary(BinaryKind.MINIMUM, lengths, d.like(lengths, 0)))
    order = [batch, sequence, *(axis for axis in range(len(shape)) if axis not in (batch, sequence))]
    found = d.gathered(d.transposed(x, order), sources, 1, 1)
    return [d.transposed(found, [order.index(axis) for axis in range(len(shape))])]


def _gather_elements(d: Draft, op: GatherElements, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(Transpose(Slice(x)), Transpose(indices)), line by line along the axis, transposed back"""
    x, indices = operands
    shape, index_shape = d.shape(x), d.shape(indices)
    at, rank = normalize_axis(op.axis, len(shape)), len(shape)
    x = d.part(x, [0] * rank, [n if axis == at else index_shape[axis] for axis, n in enumerate(shape)])
    order = [*(axis for axis in range(rank) if axis != at), at]
    found = d.gathered(d.transposed(x, order), d.transposed(d.index(indices), order), rank - 1, rank - 1)
    return [d.transposed(found, [order.index(axis) for axis in range(rank)])]


# ---- matrices


def _diagonal(d: Draft, rows: int, columns: int) -> int:
    """A mask of the diagonal of a matrix."""
    zero = d.number(0)
    return d.compared(ComparisonKind.EQUAL, d.numbers(rows, zero, (rows, 1)), d.numbers(columns, zero, (columns,)))


def _matrix_diag(d: Draft, op: MatrixDiag, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Equal(rows, columns), Reshape(diagonal), 0)"""
    (diagonal,) = operands
    *before, size = d.shape(diagonal)
    return [d.chosen(_diagonal(d, size, size), d.reshaped(diagonal, *before, 1, size), d.like(diagonal, 0))]


def _matrix_set_diag(d: Draft, op: MatrixSetDiag, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Equal(rows, columns), Reshape(diagonal), x)"""
    x, diagonal = operands
    *before, rows, columns = d.shape(x)
    wide = (*before, rows, 1) if rows < columns else (*before, 1, columns)
    found = d.chosen(_diagonal(d, rows, columns), d.reshaped(diagonal, *wide), x)
    return [found]


def _why_no_band(op: MatrixBandPart, types: CallTypes) -> str | None:
    return "its elements are quantised" if types.input(0).quantization is not None else moves(op, types)


def _matrix_band_part(d: Draft, op: MatrixBandPart, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(And(Or(above <= upper, upper < 0), Or(below <= lower, lower < 0)), x, 0)"""
    x, *bounds = operands
    *_, rows, columns = d.shape(x)
    lower, upper = (d.cast(d.reshaped(bound), DType.INT64) for bound in bounds)
    down, across = d.numbers(rows, lower, (rows, 1)), d.numbers(columns, upper, (columns,))
    sides = []
    for most, near, far in ((lower, across, down), (upper, down, across)):
        in_band = d.compared(ComparisonKind.LESS_EQUAL, d.difference(far, near), most)
        sides.append(d.binary(BinaryKind.LOGICAL_OR, in_band, d.compared(ComparisonKind.LESS, most, d.like(most, 0))))
    return [d.chosen(d.binary(BinaryKind.LOGICAL_AND, *sides), x, d.like(x, 0))]


# ---- results that types alone determine


def _zeros(d: Draft, op: ZerosLike, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo(0)"""
    out = types.output
    return [d.broadcast(d.reshaped(d.like(operands[0], 0), *(1,) * out.rank), static(out.shape))]


def _why_no_zeros(op: ZerosLike, types: CallTypes) -> str | None:
    quantized = types.input(0).quantization is not None or types.output.quantization is not None
    return "a real 0 is stored as another number" if quantized else None


def _shape_of(d: Draft, op: ShapeOf, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The known shape as a constant"""
    return [d.constant(np.array(d.shape(operands[0]), op.to.numpy))]


def _why_no_scalar(op: Reshape, types: CallTypes) -> str | None:
    return "its result is not a scalar" if types.output.rank or not types.input(0).rank else moves(op, types)


# ---- element by element


def _why_no_rows_of_bytes(op: EmbeddingLookup, types: CallTypes) -> str | None:
    table = types.input(1)
    if table.dtype is op.to or table.quantization is None:
        return "its rows are not dequantised"
    if any(t is not None and 0 in t.shape for t in types.inputs):
        return "a tensor has no elements"
    if table.quantization.per_tensor:
        return None
    if table.value is None or table.dtype.bits > 8:
        return "the table is quantised per axis, and is not a constant of bytes"
    if table.quantization.block_size is None:
        return None if table.quantization.axis == 0 else "the table is quantised along an axis within its rows"
    is_whole = table.quantization.axis == table.rank - 1 and not (table.shape[-1] or 0) % table.quantization.block_size
    return None if is_whole else "the table's blocks do not make up its rows"


def _rows_of_bytes(d: Draft, op: EmbeddingLookup, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Dequantize(EmbeddingLookup(ids, table)), or Mul(Cast(EmbeddingLookup(ids, bytes)), scales of the rows)"""
    ids, table = operands
    known = d.type(table)
    quantization = known.quantization
    assert quantization is not None
    if quantization.per_tensor:
        return [d.add(Dequantize(), d.add(EmbeddingLookup(known.dtype), ids, table, quantization=(quantization,)))]
    assert known.value is not None
    stored = DType.UINT8 if known.dtype is DType.UINT8 else DType.INT8
    elements = known.value.astype(stored.numpy, copy=False)
    rows = d.cast(d.add(EmbeddingLookup(stored), ids, d.constant(elements)), DType.FLOAT32)
    shape, block = d.shape(rows), quantization.block_size
    runs = (*shape[1:-1], shape[-1] // block) if block is not None else (1,) * (len(shape) - 1)
    whole = (shape[0], *runs, block) if block is not None else shape
    rows = d.reshaped(rows, *whole)

    def of_rows(numbers: Array) -> int:
        by_row = d.constant(numbers.reshape(len(elements), -1))
        found = d.add(EmbeddingLookup(DType.FLOAT32), ids, by_row)
        return d.reshaped(found, shape[0], *runs, *(() if block is None else (1,)))

    if any(quantization.zero_points):
        rows = d.difference(rows, of_rows(np.asarray(quantization.zero_points, np.float32)))
    rows = d.product(rows, of_rows(np.asarray(quantization.scales, np.float32)))
    return [d.reshaped(rows, *shape)]


def _fake_quant(d: Draft, op: FakeQuant, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Add(Mul(Floor(Add(Mul(Sub(Clamp(x), low), 1 / scale), 1 / 2)), scale), low)"""
    smallest, largest = np.float32(1 if op.narrow else 0), np.float32((1 << op.bits) - 1)
    low, high = np.float32(op.low), np.float32(op.high)
    with np.errstate(all="ignore"):
        scale = (high - low) / (largest - smallest)
        nudged = np.clip(np.floor(smallest - low / scale + np.float32(0.5)), smallest, largest)
        floor, ceiling = (smallest - nudged) * scale, (largest - nudged) * scale
        inverse = 1 / scale
    (x,) = operands
    inside = d.difference(d.clamped(x, floor, ceiling), d.real(float(floor)))
    stored = d.unary(UnaryKind.FLOOR, d.sum(d.product(inside, d.real(float(inverse))), d.real(0.5)))
    return [d.sum(d.product(stored, d.real(float(scale))), d.real(float(floor)))]


MOST_BUCKETS = 64
"""The most boundaries to compare every element with."""
_COMPARED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)


def _why_no_buckets(op: Bucketize, types: CallTypes) -> str | None:
    x = types.input(0)
    if x.dtype not in _COMPARED or x.quantization is not None:
        return f"elements of {x.dtype.text} are compared in float64"
    count = len(op.boundaries)
    return None if count <= MOST_BUCKETS else f"there are {count} boundaries, expected at most {MOST_BUCKETS}"


def _buckets(d: Draft, op: Bucketize, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Sum(Cast(Not(Less(Reshape(x), boundaries)))): NaN is below no boundary"""
    (x,) = operands
    shape = d.shape(x)
    if not op.boundaries:
        return [d.broadcast(d.constant(np.zeros((1,) * len(shape), np.int32)), shape)]
    if d.dtype(x) is DType.FLOAT32:
        edges = np.array([_not_below(edge) for edge in op.boundaries], np.float32)
    else:
        x = d.cast(x, DType.INT64)
        edges = np.array([math.ceil(min(max(edge, -(2.0**40)), 2.0**40)) for edge in op.boundaries])
    below = d.compared(ComparisonKind.LESS, d.reshaped(x, *shape, 1), d.constant(edges))
    reached = d.cast(d.unary(UnaryKind.LOGICAL_NOT, below), DType.INT32)
    return [d.reduced(Reduction.SUM, reached, (len(shape),))]


def _not_below(edge: float) -> np.float32:
    """The smallest float32 that is not below a number."""
    with np.errstate(over="ignore"):
        found = np.float32(edge)
    return np.nextafter(found, np.float32(np.inf)) if found < edge else found


MOST_SUMMANDS = 16
"""The most operands of one sum."""


def _why_not_add_n(op: AddN, types: CallTypes) -> str | None:
    return None if len(types.inputs) > MOST_SUMMANDS else f"it has at most {MOST_SUMMANDS} inputs"


def _add_n(d: Draft, op: AddN, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """AddN(AddN(first ..), others ..), in order"""
    total, rest = operands[0], list(operands[1:])
    while rest:
        total = d.add(AddN(), total, *rest[: MOST_SUMMANDS - 1])
        rest = rest[MOST_SUMMANDS - 1 :]
    return [total]


DECOMPOSITIONS = {
    OneHot: (Decomposition(_why_no_rows, _one_hot),),
    ReverseSequence: (Decomposition(moves, _reverse_sequence),),
    GatherElements: (Decomposition(moves, _gather_elements),),
    MatrixDiag: (Decomposition(moves, _matrix_diag),),
    MatrixSetDiag: (Decomposition(moves, _matrix_set_diag),),
    MatrixBandPart: (Decomposition(_why_no_band, _matrix_band_part),),
    ZerosLike: (Decomposition(_why_no_zeros, _zeros),),
    ShapeOf: (Decomposition(always, _shape_of),),
    Rank: (Decomposition(always, lambda d, op, types, operands: [d.number(len(d.shape(operands[0])))]),),
    Reshape: (Decomposition(_why_no_scalar, lambda d, op, types, operands: [d.reshaped(operands[0])]),),
    EmbeddingLookup: (Decomposition(_why_no_rows_of_bytes, _rows_of_bytes),),
    FakeQuant: (Decomposition(only_float32, _fake_quant),),
    Bucketize: (Decomposition(_why_no_buckets, _buckets),),
    AddN: (Decomposition(_why_not_add_n, _add_n),),
}
