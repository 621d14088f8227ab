"""Products of matrices."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.frontend.onnx.building import binary, cast, ints, require_rank, reshape, times, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.contraction.block_codes import BlockFullyConnected, DequantizeBlocks
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction

_LINE = DType.INT32


def multiplied(d: Draft, x: int, y: int) -> int:
    """NumPy's matmul: batches broadcast, a vector is a row on the left and a column on the right."""
    left, right = require_rank(d, x, 1), require_rank(d, y, 1)
    if left == 1:
        x = d.add(ExpandDims(), x, d.constant(0, _LINE))
    if right == 1:
        y = d.add(ExpandDims(), y, d.constant(1, _LINE))
    coded = _coded(d, y) if d.type(y).rank == 2 and d.type(x).dtype is DType.FLOAT32 else None
    if coded is not None:
        out = d.add(BlockFullyConnected(coded.bits), x, *coded.operands)
    elif d.type(y).rank == 2 and d.value(y) is not None and d.type(x).dtype.is_float:
        out = d.add(FullyConnected(keep_dims=True), x, transpose(d, y, (1, 0)))
    else:
        out = d.add(BatchMatMul(), x, y)
    gone = [d.type(out).rank - 2] * (left == 1) + [d.type(out).rank - 1] * (right == 1)
    return d.add(Squeeze(tuple(gone)), out) if gone else out


@frozen
class _Coded:
    """A matrix of blocks of codes: their bits, and the operands of `DequantizeBlocks`."""

    bits: int
    operands: tuple[int | None, ...]


def _coded(d: Draft, y: int) -> _Coded | None:
    """What the matrix is made of if it is the transpose of one of codes."""
    turned = None if d.value(y) is not None else d.definer(y)
    made = d.definer(turned.inputs[0] or 0) if turned is not None and isinstance(turned.op, Transpose) else None
    return _Coded(made.op.bits, made.inputs) if made is not None and isinstance(made.op, DequantizeBlocks) else None


def _matmul(node: Node) -> int:
    return multiplied(node.draft, node.input(0), node.input(1))


def _gemm(node: Node) -> int:
    """`alpha * A' · B' + beta * C`, where C broadcasts to the product; integers times fractions are cut."""
    d, x, y, c = node.draft, node.input(0), node.input(1), node.optional(2)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    for operand in (x, y):
        if require_rank(d, operand) != 2:
            raise ModelError(f"is given {d.type(operand)}, expected a matrix")
    x = transpose(d, x, (1, 0)) if node.flag("transA") else x
    floats = d.type(x).dtype.is_float
    rows = y if node.flag("transB") else transpose(d, y, (1, 0)) if floats else y
    if not floats:
        out, dtype = d.add(BatchMatMul(adjoint_y=node.flag("transB")), x, rows), d.type(x).dtype
        whole = alpha >= 0 and beta >= 0 and alpha.is_integer() and beta.is_integer()
        wide = dtype if whole else DType.FLOAT64
        out = times(d, cast(d, out, wide), alpha)
        return cast(d, out if c is None else binary(d, BinaryKind.ADD, out, times(d, cast(d, c, wide), beta)), dtype)
    rows = times(d, rows, alpha)
    c = None if c is None else times(d, c, beta)
    outputs = d.type(rows).shape[0]
    fits = c is not None and outputs is not None and d.type(c).shape in ((outputs,), (1, outputs))
    if fits and c is not None:
        return d.add(FullyConnected(), x, rows, reshape(d, c, (outputs,)))
    out = d.add(FullyConnected(), x, rows)
    return out if c is None else binary(d, BinaryKind.ADD, out, c)


def _signed(node: Node) -> tuple[Array, Array] | None:
    """The second matrix of a product of integers as constant signed bytes, and its zero points: none where signed bytes
    hold what is less these.

    None where there is no such matrix, or the first operand is a vector or of unknown rank.
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
        return found.astype(np.int8), np.zeros(0, np.int32)
    return stored.astype(np.int8), points


def _integers(node: Node) -> int:
    """Sums of products of 8-bit integers less their zero points, as int32."""
    d = node.draft
    known = _signed(node)
    zero = None
    if node.has(2):
        zero = cast(d, node.input(2), DType.INT32)
        if d.type(zero).rank == 1 and d.type(zero).shape[0] not in (1, None):
            zero = reshape(d, zero, (d.type(zero).shape[0], 1))
    if known is not None:
        matrix, points = known
        sums = d.add(BatchMatMul(output=DType.INT32), node.input(0), d.constant(matrix, DType.INT8))
        columns = matrix.sum(axis=0, dtype=np.int32)
        if points.size:
            last = ints(d, [d.type(node.input(0)).rank - 1], DType.INT32)
            rows = d.add(Reduce(Reduction.SUM, keep_dims=True), cast(d, node.input(0), DType.INT32), last)
            much = binary(d, BinaryKind.MUL, rows, d.constant(points, DType.INT32))
            sums, columns = binary(d, BinaryKind.SUB, sums, much), columns - len(matrix) * points
        if zero is None:
            return sums
        less = binary(d, BinaryKind.MUL, zero, d.constant(columns, DType.INT32))
        return binary(d, BinaryKind.SUB, sums, less)
    x, y = (cast(d, node.input(i), DType.INT32) for i in (0, 1))
    if zero is not None:
        x = binary(d, BinaryKind.SUB, x, zero)
    if node.has(3):
        y = binary(d, BinaryKind.SUB, y, cast(d, node.input(3), DType.INT32))
    return multiplied(d, x, y)


_IMPORTERS: dict[str, Importer] = {"Gemm": _gemm, "MatMul": _matmul, "MatMulInteger": _integers}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
