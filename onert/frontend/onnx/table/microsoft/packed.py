"""Weights of a few bits: products with them, and lookups in quantised tables."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.layers.products import matmul
from onert.ir import Array, DType, ModelError
from onert.ir.dtype import codes_of, packed_codes
from onert.ir.ops.contraction.block_codes import BlockFullyConnected
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.shape import normalize_axis

_BYTES = 4
"""The accuracy level that allows products of bytes."""
_BYTES_WITH_TWO_BITS = (32, 64, 128)
"""Blocks of 2-bit weights for which ONNX Runtime has products of bytes; it multiplies floats in the others."""


def _product(node: Node) -> int:
    """The product of x with a matrix quantised to a few bits in blocks along each column. Inputs: x, b, scales, zero
    points, the block of each row of the matrix, bias.

    `b` is [N, blocks, bytes], its first element in the lowest bits; the default zero point is the middle of the range.
    """
    d = node.draft
    k, n, bits, block = node.integer("K"), node.integer("N"), node.integer("bits", 4), node.integer("block_size", 32)
    if bits not in (2, 4, 8) or block < 1 or block * bits % 8 or n < 1 or k < 1:
        raise ModelError(f"has {bits} bits in blocks of {block} for {k} x {n}, which is not supported")
    blocks = -(-k // block)
    packed = node.constant(1, "the weights", "bytes", n * blocks * block * bits // 8).reshape(n, blocks, -1)
    scales = node.constant(2, "the scales", count=n * blocks).reshape(n, blocks).astype(np.float32)
    floats = node.has(3) and node.type(3).dtype.is_float
    zeros = None
    if floats:
        zeros = node.constant(3, "the zero points", count=n * blocks).reshape(n, blocks).astype(np.float32)
    elif node.has(3):
        given = node.constant(3, "the zero points", "bytes", n * -(-blocks * bits // 8))
        zeros = np.ascontiguousarray(codes_of(given.reshape(n, -1), bits)[:, :blocks])
    places = None
    if node.has(4):
        if bits != 4 or (node.has(3) and not floats):
            raise ModelError(
                "has blocks of rows (input 4), which is supported only for 4 bits without integer zero points"
            )
        places = node.constant(4, "the blocks of rows", "integers").reshape(-1)
        if places.size not in (k, blocks * block):
            raise ModelError(f"has the blocks of {places.size} rows, expected {k} or {blocks * block}")
        places = places[:k]
        if not ((places >= 0) & (places < blocks)).all():
            raise ModelError(f"rows are in blocks {places.min()} to {places.max()}, expected 0 to {blocks - 1}")
    x, level = operand(node, 0), node.integer("accuracy_level")
    even = places is None or (np.bincount(places, minlength=blocks) == block).all()
    if floats or not even:
        d.memory.spend(n * blocks * block * 4, "unpacking weights")
        places = np.arange(k) // block if places is None else places
        weights = _dequantize(codes_of(packed, bits).reshape(n, -1)[:, :k], scales, zeros, places, bits)
        matrix = d.constant(np.ascontiguousarray(weights.T).astype(x.dtype.numpy), x.dtype)
        y = x.of(matmul(d, x.operand, matrix))
    else:
        if places is not None and (np.diff(places) < 0).any():
            order = np.argsort(places, kind="stable")
            packed = packed_codes(codes_of(packed, bits).reshape(n, k)[:, order], bits).reshape(n, blocks, -1)
            x = x.take(order.tolist(), x.rank - 1)
        if rest := -k % block:
            x = _filled(x, rest)
        of_bytes = level == _BYTES and (bits != 2 or block in _BYTES_WITH_TWO_BITS)
        y = _of_codes(x, packed, scales, zeros, BlockFullyConnected(bits, of_bytes))
    return (y + operand(node, 5) if node.has(5) else y).operand


def _filled(x: Expression, count: int) -> Expression:
    """x with `count` zeros after each row: they fill its last block, and change neither products nor its scale."""
    margins = x.draft.constant(np.array([[0, 0]] * (x.rank - 1) + [[0, count]], np.int32), DType.INT32)
    return x.of(x.draft.add(Pad(), x.operand, margins, x.like(0).operand))


def _dequantize(codes: Array, scales: Array, zeros: Array | None, places: Array, bits: int) -> Array:
    """Weights `[n, k]` in float32; `places` is the block of each of the k."""
    zero = 1 << (bits - 1) if zeros is None else zeros.astype(np.float32)[:, places]
    out: Array = (codes.astype(np.float32) - zero) * scales[:, places]
    return out


def _of_codes(x: Expression, packed: Array, scales: Array, zeros: Array | None, op: BlockFullyConnected) -> Expression:
    """The product in float32, cast to x's type; vectors as in NumPy."""
    d = x.draft
    given = [d.constant(packed, DType.UINT8), d.constant(scales, DType.FLOAT32)]
    given += [] if zeros is None else [d.constant(zeros, DType.UINT8)]
    return x.of(d.add(op, x.cast(DType.FLOAT32).operand, *given)).cast(x.dtype)


def _rows(node: Node) -> int:
    """Gather rows of a table quantised in blocks along the last axis, then dequantise them.

    Inputs: the table, indices, scales, zero points.
    """
    table, indices, scales = (operand(node, at) for at in range(3))
    rank, block = table.rank, node.integer("block_size", 128)
    gathered = normalize_axis(node.integer("gather_axis"), rank)
    along = normalize_axis(node.integer("quantize_axis", 1), rank)
    if gathered == rank - 1 or along != rank - 1 or block < 1:
        raise ModelError(f"gathers along axis {gathered} in blocks of {block} along axis {along} of {table.type}")
    octets = table.dtype is DType.UINT8
    bits = node.integer("bits", 4) if octets else table.dtype.bits
    if bits not in (2, 4, 8) or not table.dtype.is_integer:
        raise ModelError(f"the table is {table.type} of {bits} bits, which is not supported")
    size = table.shape[gathered]
    indices = indices.cast(DType.INT64)
    if size is not None:
        indices = (indices < 0).select(indices + size, indices)
    zero: Expression | float = float(1 << (bits - 1)) if octets else 0.0
    values = _taken(node, 0, bits, indices, gathered).cast(scales.dtype)
    if node.has(3):
        zero = _taken(node, 3, bits, indices, gathered).cast(scales.dtype)
    scale = scales.take(indices, gathered)
    width, blocks = values.known_size(values.rank - 1, "the table"), scale.known_size(scale.rank - 1, "the scales")
    if blocks != -(-width // block):
        raise ModelError(f"there are {blocks} scales for rows of {width} in blocks of {block}")
    node.draft.memory.spend(8 * width, "indices of scales")
    places = [at // block for at in range(width)]
    if isinstance(zero, Expression):
        zero = zero.take(places, zero.rank - 1)
    return ((values - zero) * scale.take(places, scale.rank - 1)).operand


def _taken(node: Node, index: int, bits: int, indices: Expression, axis: int) -> Expression:
    """Slices of an operand of integers of a few bits. Elements of type uint8 hold as many integers as fit.

    A constant of narrower elements is stored in bytes, which native code reads: as many elements as fit, if they fill
    the rows.
    """
    x, found = operand(node, index), node.value(index)
    if x.dtype is DType.UINT8 or x.dtype.bits >= 8 or found is None:
        return _unpack(x.take(indices, axis), bits if x.dtype is DType.UINT8 else 8)
    narrow, low = x.dtype.bits, x.dtype.limits[0]
    codes = (found.view(np.uint8) & np.uint8((1 << narrow) - 1)) ^ np.uint8(-low)
    fill = codes.shape[-1] % (8 // narrow) == 0
    stored = x.draft.constant(packed_codes(codes, narrow) if fill else codes, DType.UINT8)
    numbers = _unpack(x.of(stored).take(indices, axis), narrow if fill else 8)
    return numbers.cast(DType.INT8) + low if low else numbers


def _unpack(x: Expression, bits: int) -> Expression:
    """Unpack bytes to elements of a few bits, the first in the lowest bits."""
    if bits == 8:
        return x
    count = 8 // bits
    shifts = x.of(x.draft.constant(np.arange(0, 8, bits, dtype=np.uint8), DType.UINT8))
    parts = x.unsqueeze(x.rank).binary(BinaryKind.SHIFT_RIGHT, shifts)
    parts = parts.binary(BinaryKind.BITWISE_AND, float((1 << bits) - 1))
    sizes: list[int | Expression] = [x.size(axis) for axis in range(x.rank - 1)]
    return parts.reshape_by(*sizes, count * x.known_size(x.rank - 1, "the table"))


_NORMAL = (
    *(-1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0.0),
    *(0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0),
)
"""The values of NF4 codes. Source: Dettmers et al.: QLoRA, 2023, appendix E."""
_FLOATS = (0.0, 0.005208333, 0.6666667, 1.0, 0.33333334, 0.5, 0.16666667, 0.25)
"""The values of FP4 codes in bitsandbytes; the negatives of these numbers follow."""


def _by_table(node: Node) -> int:
    """The product of x with a matrix of 4-bit codes that index a table, the first in the high bits, scaled by the
    largest magnitude of each block. Inputs: x, codes of the transposed matrix, magnitudes."""
    d, k, n, block = node.draft, node.integer("K"), node.integer("N"), node.integer("block_size")
    if min(k, n, block) < 1:
        raise ModelError(f"has {k} x {n} weights in blocks of {block}, expected positive numbers")
    packed = node.constant(1, "the weights", "bytes", -(-k * n // 2)).reshape(-1)
    largest = node.constant(2, "the magnitudes", count=-(-k * n // block)).reshape(-1).astype(np.float32)
    d.memory.spend(k * n * 4, "unpacking weights")
    numbers = _NORMAL if node.integer("quant_type", 1) else (*_FLOATS, *(-each for each in _FLOATS))
    table = np.array(numbers, np.float32)
    pairs = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[: k * n]
    flat: Array = table[pairs] * np.repeat(largest, min(block, k * n))[: k * n]
    weights = flat.reshape(n, k).T if node.flag("transB", default=True) else flat.reshape(k, n)
    x = operand(node, 0)
    matrix = d.constant(np.ascontiguousarray(weights).astype(x.dtype.numpy), x.dtype)
    return matmul(d, x.operand, matrix)


MICROSOFT: dict[str, Importer] = {
    "GatherBlockQuantized": _rows,
    "MatMulBnb4": _by_table,
    "MatMulNBits": _product,
}
