"""Matrix products."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import binary, cast, ints, require_rank, reshape, times, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.contraction.block_codes import BlockFullyConnected, DequantizeBlocks
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction

_LINE = DType.INT32
_MOST_TERMS = (1 << 31) // (255 * 128)
"""The number of products of two bytes whose sum always fits 32 bits."""


def matmul(d: Draft, x: int, y: int) -> int:
    """NumPy's matmul: batches broadcast, a vector is a row on the left and a column on the right."""
    left, right = require_rank(d, x, 1), require_rank(d, y, 1)
    if left == 1:
        x = d.add(ExpandDims(), x, d.constant(0, _LINE))
    if right == 1:
        y = d.add(ExpandDims(), y, d.constant(1, _LINE))
    coded = _block_product(d, x, y, transposed=False)
    if coded is not None:
        out = coded
    elif d.type(y).rank == 2 and d.value(y) is not None and d.type(x).dtype.is_float:
        out = d.add(FullyConnected(keep_dims=True), x, transpose(d, y, (1, 0)))
    else:
        out = d.add(BatchMatMul(), x, y)
    gone = [d.type(out).rank - 2] * (left == 1) + [d.type(out).rank - 1] * (right == 1)
    return d.add(Squeeze(tuple(gone)), out) if gone else out


def _block_product(d: Draft, x: int, y: int, *, transposed: bool) -> int | None:
    """`x · y`, or `x · yᵀ` if `transposed`, from codes.

    None unless the right side is a transposed dequantised matrix.
    """
    if d.type(y).rank != 2 or d.type(x).dtype is not DType.FLOAT32 or d.value(y) is not None:
        return None
    made = d.definer(y)
    if made is not None and not transposed:
        made = d.definer(made.inputs[0] or 0) if isinstance(made.op, Transpose) else None
    if made is None or not isinstance(made.op, DequantizeBlocks):
        return None
    return d.add(BlockFullyConnected(made.op.bits), x, *made.inputs)


def _matmul(node: Node) -> int:
    return matmul(node.draft, node.input(0), node.input(1))


def _gemm(node: Node) -> int:
    """`alpha * A' · B' + beta * C`, where C broadcasts to the product. For integers, the result is truncated."""
    d, x, y, c = node.draft, node.input(0), node.input(1), node.optional(2)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    for operand in (x, y):
        if require_rank(d, operand) != 2:
            raise ModelError(f"has input {d.type(operand)}, expected a matrix")
    floats, loose = d.type(x).dtype.is_float, d.value(y) is None
    c = times(d, c, beta) if floats and c is not None else c
    if floats and loose and _block_product(d, x, y, transposed=node.flag("transB")) is None:
        out = d.add(BatchMatMul(adjoint_x=node.flag("transA"), adjoint_y=node.flag("transB")), x, y)
        out = times(d, out, alpha)
        return out if c is None else binary(d, BinaryKind.ADD, out, c)
    x = transpose(d, x, (1, 0)) if node.flag("transA") else x
    rows = y if node.flag("transB") else transpose(d, y, (1, 0)) if floats else y
    if not floats:
        out, dtype = d.add(BatchMatMul(adjoint_y=node.flag("transB")), x, rows), d.type(x).dtype
        whole = alpha >= 0 and beta >= 0 and alpha.is_integer() and beta.is_integer()
        wide = dtype if whole else DType.FLOAT64
        out = times(d, cast(d, out, wide), alpha)
        return cast(d, out if c is None else binary(d, BinaryKind.ADD, out, times(d, cast(d, c, wide), beta)), dtype)
    coded = _block_product(d, x, y, transposed=node.flag("transB"))
    if coded is not None:
        out = times(d, coded, alpha)
        return out if c is None else binary(d, BinaryKind.ADD, out, c)
    rows = times(d, rows, alpha)
    outputs = d.type(rows).shape[0]
    fits = c is not None and outputs is not None and d.type(c).shape in ((outputs,), (1, outputs))
    if fits and c is not None:
        return d.add(FullyConnected(), x, rows, reshape(d, c, (outputs,)))
    out = d.add(FullyConnected(), x, rows)
    return out if c is None else binary(d, BinaryKind.ADD, out, c)


def _sum_bytes(d: Draft, x: int, from_end: int) -> int:
    """The sums of bytes along an axis, counted from the end, as int32."""
    axis = ints(d, [d.type(x).rank - from_end], DType.INT32)
    return d.add(Reduce(Reduction.SUM, keep_dims=True), cast(d, x, DType.INT32), axis)


def _computed_matrix(node: Node) -> tuple[int, int | None, int] | None:
    """Like `_constant_matrix`, for a second operand computed at run time, with zero points of rank 0 or 1."""
    d = node.draft
    x, y = (d.type(node.input(at)) for at in (0, 1))
    zero = d.type(node.input(3)) if node.has(3) else None
    if not (x.ranked and y.ranked) or min(x.rank, y.rank) < 2 or any(t.dtype.bits != 8 for t in (x, y)):
        return None
    depth = x.shape[-1]
    if depth is None or depth > _MOST_TERMS or (zero is not None and (not zero.ranked or zero.rank > 1)):
        return None
    return node.input(1), cast(d, node.input(3), DType.INT32) if node.has(3) else None, depth


def _constant_matrix(node: Node) -> tuple[int, int | None, int] | None:
    """The constant second matrix of an integer product as int8, its zero points, and its depth.

    The zero points are None if they have been subtracted from the matrix, which is possible if int8 holds the result.
    None if there is no such matrix, or the first operand is a vector or of unknown rank.
    """
    d = node.draft
    x, y = d.type(node.input(0)), d.value(node.input(1))
    zero = d.value(node.input(3)) if node.has(3) else np.zeros((), np.int8)
    if y is None or zero is None or y.ndim != 2 or zero.ndim > 1 or not x.ranked or x.rank < 2 or not y.size:
        return None
    if zero.size not in (1, y.shape[1]) or y.dtype.itemsize != 1:
        return None
    offset = 128 if y.dtype == np.uint8 else 0
    stored, points = y.astype(np.int32) - offset, zero.reshape(-1).astype(np.int32) - offset
    found = stored - points
    if found.min() >= -128 and found.max() <= 127:
        return d.constant(found.astype(np.int8), DType.INT8), None, len(y)
    return d.constant(stored.astype(np.int8), DType.INT8), d.constant(points, DType.INT32), len(y)


def _integers(node: Node) -> int:
    """int32 sums of products of 8-bit integers minus their zero points."""
    d = node.draft
    found, zero = _constant_matrix(node) or _computed_matrix(node), None
    if node.has(2):
        zero = cast(d, node.input(2), DType.INT32)
        if d.type(zero).rank == 1 and d.type(zero).shape[0] not in (1, None):
            zero = reshape(d, zero, (d.type(zero).shape[0], 1))
    if found is not None:
        matrix, points, depth = found
        sums = d.add(BatchMatMul(output=DType.INT32), node.input(0), matrix)
        if points is not None:
            sums = binary(d, BinaryKind.SUB, sums, binary(d, BinaryKind.MUL, _sum_bytes(d, node.input(0), 1), points))
        if zero is None:
            return sums
        columns = _sum_bytes(d, matrix, 2)
        if points is not None:
            columns = binary(d, BinaryKind.SUB, columns, times(d, points, depth))
        return binary(d, BinaryKind.SUB, sums, binary(d, BinaryKind.MUL, zero, columns))
    x, y = (cast(d, node.input(i), DType.INT32) for i in (0, 1))
    if zero is not None:
        x = binary(d, BinaryKind.SUB, x, zero)
    if node.has(3):
        y = binary(d, BinaryKind.SUB, y, cast(d, node.input(3), DType.INT32))
    return matmul(d, x, y)


TABLE: dict[str, Importer] = {"Gemm": _gemm, "MatMul": _matmul, "MatMulInteger": _integers}
