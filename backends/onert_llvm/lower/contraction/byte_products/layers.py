"""Layers of bytes with constant filters whose sums become real numbers, and bytes again where these come last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS, offset
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.kernels.contraction.scaled_results import Scaled
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane, plane, rows_of, windows_of
from onert_llvm.lower.contraction.epilogue import Tail, numbered, tail
from onert_llvm.lower.contraction.int8_gemm import byte_contraction, byte_product
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.schedule.cost_model import Shape


def why_not(op: Conv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    x, weight = types.input(0), types.input(1)
    if x.dtype not in BYTES or weight.dtype is not DType.INT8 or types.output.dtype is not DType.FLOAT32:
        return "only products of bytes that become float32 are native"
    if weight.value is None or weight.quantization is None or x.quantization is None:
        return "the filter is not constant, or a tensor has no scale"
    if 0 in (x.shape + weight.shape + types.output.shape):
        return "a tensor has no elements"
    if weight.value[0].size > MOST_TERMS:
        return "its sums do not fit 32 bits"
    if isinstance(op, Conv2D) and weight.shape[3] != x.shape[3]:
        return "groups are not native"
    return None


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer."""
    x, w = lowering.operation(operations[0]).used
    weights = np.ascontiguousarray(lowering.elements(w).T)[None]
    depth = weights.shape[1]
    m = math.prod(lowering.shape(x)) // depth
    after, how = results(lowering, operations, weights.shape[2])
    multiply(lowering, operations[0], weights, (m, depth), after, how)


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution."""
    _, operation, op = lowering.first(operations, Conv2D)
    x, w = operation.used
    weights = lowering.elements(w)
    n, kh, kw, c = weights.shape
    geometry = plane(op, lowering.shape(x), weights.shape, lowering.shape(operation.outputs[0]))
    shape = (kh, kw * c, n) if geometry.patched(c) else (kh * kw, c, n)
    ordered = np.ascontiguousarray(weights.transpose(1, 2, 3, 0).reshape(shape))
    rows = geometry.rows, c * op.stride_height * op.stride_width
    after, how = results(lowering, operations, n)
    multiply(lowering, operations[0], ordered, rows, after, how, geometry)


def results(lowering: Lowering, operations: Sequence[int], width: int) -> tuple[Tail, Scaled]:
    """What follows the sums of a group, and how they are stored: as bytes where a cast to these comes last."""
    last = lowering.operation(operations[-1]).outputs[0]
    dtype = lowering.type(last).dtype
    chain = operations[:-1] if dtype in BYTES else operations
    after = numbered(tail(lowering, chain, Activation.NONE, None, width))
    after = evolve(after, place=lowering.operand(last), writes=(last,))
    return after, Scaled(after.epilogue, dtype.text if dtype in BYTES else "")


def columns(lowering: Lowering, x: int, w: int, weights: Array) -> dict[str, Slot]:
    """Where the accumulators of the columns of `weights[taps, k, n]` begin, and their factors, in whole registers."""
    n, lanes, source = weights.shape[2], lowering.isa.f32, lowering.type(x)
    start, factors = (np.zeros(-(-n // lanes) * lanes, t) for t in (np.int32, np.float32))
    moved = _zero(source) + offset(lowering.isa, source.dtype is DType.INT8)
    start[:n] = -moved * weights.astype(np.int64).sum((0, 1))
    scales = lowering.type(w).quantization
    if source.quantization is not None and scales is not None:
        factors[:n] = np.float32(source.scale) * np.asarray(scales.scales, np.float32)
    return {"start": lowering.constant(start), "factors": lowering.constant(factors)}


def _zero(type_: TensorType) -> int:
    return 0 if type_.quantization is None else type_.zero_point


def multiply(
    lowering: Lowering,
    at: int,
    weights: Array,
    rows: tuple[int, int],
    after: Tail,
    how: Scaled,
    geometry: Plane | None = None,
) -> None:
    """The product with `weights[taps, k, n]`; `rows`: how many, and the bytes of each that no other reads."""
    x, w = lowering.operation(at).used
    (m, row_bytes), (taps, depth, n) = rows, weights.shape
    pointwise, rest = geometry is None or geometry.pointwise, depth % lowering.isa.group
    source = lowering.type(x)
    signed = source.dtype is DType.INT8
    tile = lowering.tile((ByteTerms, pointwise, rest, signed, how), Shape(m, n, taps * depth, integer=True))
    product = byte_product(lowering, m, weights, tile, row_bytes)
    slots: dict[str, Slot] = {**product.slots, **after.slots, **columns(lowering, x, w, weights), "c": after.place}
    if geometry is None:
        operand, own = rows_of(lowering.operand(x), depth)
    else:
        pixel = np.full(geometry.channels, _zero(source), source.dtype.numpy)
        padding = partial(lowering.constant, pixel)
        operand, own = windows_of(geometry, geometry.channels, lowering.operand(x), padding, Patches)
    algorithm = byte_contraction(lowering.isa, tile, operand, depth, how, signed)
    reads, flops = (x, *after.reads), 2 * m * taps * depth * n
    lowering.emit(at, algorithm, slots | own, product.tiles, reads, after.writes, flops)
