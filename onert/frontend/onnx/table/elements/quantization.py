"""Quantisation and dequantisation with scales as operands; ties round to even."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import binary, cast, convert, ints, like, require_rank, reshape, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError, TensorType
from onert.ir.dtype import packed_codes
from onert.ir.ops.contraction.block_codes import DequantizeBlocks
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.shape import normalize_axis

from .movement import padded

ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV


def _along(node: Node, operand: int) -> int:
    """A scale or zero point shaped to broadcast with the first input: per tensor, per axis, or per block."""
    d, x = node.draft, node.input(0)
    rank, type_ = require_rank(d, x), d.type(operand)
    if type_.rank == 0:
        return operand
    block = node.integer("block_size")
    axis = normalize_axis(node.integer("axis", 1), rank) if rank and (type_.rank > 1 or type_.shape[0] != 1) else 0
    if block:
        return _blocks(d, operand, axis, block, d.type(x).shape)
    if type_.rank == 1 and type_.shape[0] != 1:
        return reshape(d, operand, (type_.shape[0], *(1,) * (rank - axis - 1)))
    return reshape(d, operand, ()) if type_.rank == 1 else operand


def _blocks(d: Draft, operand: int, axis: int, block: int, shape: tuple[int | None, ...]) -> int:
    """Repeat each entry along the axis by the block size."""
    found = d.type(operand).shape
    if None in found or len(found) != len(shape) or block < 1:
        raise ModelError(f"blocks of {block} with scales {d.type(operand)} do not fit the shape {list(shape)}")
    sizes = [s or 0 for s in found]
    wide = d.add(ExpandDims(), operand, d.constant(axis + 1, DType.INT32))
    times = [*sizes[: axis + 1], block, *sizes[axis + 1 :]]
    many = d.add(BroadcastTo(), wide, d.constant(times, DType.INT64))
    sizes[axis] *= block
    whole = d.add(Reshape(tuple(sizes)), many)
    if shape[axis] is not None and shape[axis] != sizes[axis]:
        whole = padded(d, whole, [(0, (shape[axis] or 0) - sizes[axis] if a == axis else 0) for a in range(len(sizes))])
    return whole


def _quantize(node: Node) -> int:
    """`saturate(round(x / scale) + zero)`.

    From opset 23 on, the quotient is rounded to the type `precision`, by default the scale's.
    """
    d = node.draft
    to = node.type(2).dtype if node.has(2) else node.element_type("output_dtype", DType.UINT8)
    x, scale = node.input(0), _along(node, node.input(1))
    dtype = node.element_type("precision") if node.integer("precision") else d.type(scale).dtype
    exact = DType.FLOAT32 if dtype.bits < 32 else dtype
    ratio = binary(d, DIV, cast(d, x, exact), cast(d, scale, exact))
    if node.version >= 23:
        ratio = cast(d, ratio, dtype)
    if not to.is_integer:  # 8-bit floats have the zero point 0
        return convert(d, ratio, to, saturate=node.flag("saturate", default=True))
    rounded = d.add(Unary(UnaryKind.ROUND), ratio)
    wide = cast(d, rounded, exact)
    if node.has(2):
        wide = binary(d, ADD, wide, cast(d, _along(node, node.input(2)), d.type(wide).dtype))
    return saturate(d, wide, to)


def saturate(d: Draft, x: int, to: DType) -> int:
    """Convert integral floats to integers, clamped to the type's range."""
    low, high = to.limits
    x = binary(d, BinaryKind.MAXIMUM, x, like(d, x, low))
    return cast(d, binary(d, BinaryKind.MINIMUM, x, like(d, x, high)), to)


def _dequantize(node: Node) -> int:
    """`(x - zero) * scale`."""
    d, x = node.draft, node.input(0)
    coded = _coded(node) if node.integer("block_size") else None
    if coded is not None:
        return coded
    scale = _along(node, node.input(1))
    dtype = (
        node.element_type("output_dtype", d.type(scale).dtype) if node.integer("output_dtype") else d.type(scale).dtype
    )
    wide = DType.FLOAT64 if d.type(x).dtype in (DType.INT32, DType.UINT32) else DType.FLOAT32
    real = cast(d, x, DType.INT32 if wide is DType.FLOAT32 and d.type(x).dtype.is_integer else wide)
    if node.has(2):
        real = binary(d, SUB, real, cast(d, _along(node, node.input(2)), d.type(real).dtype))
    found = binary(d, MUL, cast(d, real, DType.FLOAT32), cast(d, scale, DType.FLOAT32))
    return cast(d, found, dtype)


def _coded(node: Node) -> int | None:
    """A constant matrix as packed codes for matrix products; None unless it has whole blocks and float32 scales."""
    d, block = node.draft, node.integer("block_size")
    values, scales, zeros = (node.value(at) if node.has(at) else None for at in range(3))
    type_, axis = node.type(0), normalize_axis(node.integer("axis", 1), node.type(0).rank)
    if values is None or scales is None or values.ndim != 2 or scales.dtype != np.float32 or type_.dtype.bits > 8:
        return None
    if (node.has(2) and zeros is None) or node.integer("output_dtype") or not type_.dtype.is_integer:
        return None
    if block % 16 or block < 1 or values.shape[axis] % block:
        return None
    bits, added = type_.dtype.bits, -type_.dtype.limits[0]
    values, scales = (each.T if axis == 0 else each for each in (values, scales))
    blocks = (len(values), values.shape[1] // block)
    if scales.shape != blocks or (zeros is not None and zeros.shape != node.type(1).shape):
        return None
    lifted = values.astype(np.int16) + added
    codes = packed_codes(lifted.reshape(*blocks, block), bits)
    zero = np.full(blocks, added) if zeros is None else (zeros.T if axis == 0 else zeros).astype(np.int16) + added
    operands = [d.constant(codes, DType.UINT8), d.constant(np.ascontiguousarray(scales))]
    operands += [] if (zero == 1 << bits - 1).all() else [d.constant(zero.astype(np.uint8), DType.UINT8)]
    (found,) = d.emit(DequantizeBlocks(bits), operands, (TensorType(DType.FLOAT32, values.shape),))
    return transpose(d, found, (1, 0)) if axis == 0 else found


def _dynamic(node: Node) -> tuple[int, ...]:
    """Quantise to uint8 by a scale and zero point computed from the range of the elements, which includes 0."""
    d, x = node.draft, node.input(0)
    axes = ints(d, range(require_rank(d, x)), DType.INT32)
    zero = like(d, x, 0)
    high = binary(d, BinaryKind.MAXIMUM, d.add(Reduce(Reduction.MAX), x, axes), zero)
    low = binary(d, BinaryKind.MINIMUM, d.add(Reduce(Reduction.MIN), x, axes), zero)
    scale = binary(d, DIV, binary(d, SUB, high, low), like(d, x, 255))
    at = binary(d, SUB, zero, binary(d, DIV, low, scale))
    rounded = d.add(Unary(UnaryKind.ROUND), saturated_real(d, at))
    ratio = d.add(Unary(UnaryKind.ROUND), binary(d, DIV, x, scale))
    return saturate(d, binary(d, ADD, ratio, rounded), DType.UINT8), scale, cast(d, rounded, DType.UINT8)


def saturated_real(d: Draft, x: int) -> int:
    x = binary(d, BinaryKind.MAXIMUM, x, like(d, x, 0))
    return binary(d, BinaryKind.MINIMUM, x, like(d, x, 255))


TABLE: dict[str, Importer] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "QuantizeLinear": _quantize,
}
