"""Layers of bytes with constant filters whose sums become real numbers, and bytes again if a group ends with that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS, offset
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.kernels.contraction.scaled_results import Scaled
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction import int8_conv_fc
from onert_llvm.lower.contraction.conv_geometry import Plane, plane, rows_of, windows_of
from onert_llvm.lower.contraction.depthwise import repeated, sliding
from onert_llvm.lower.contraction.epilogue import EpilogueTask, epilogue_task, with_number_slots
from onert_llvm.lower.contraction.int8_conv_fc import MadeLayer, looked_up
from onert_llvm.lower.contraction.int8_gemm import byte_contraction, byte_product, widens
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.lower.elementwise import byte_chains
from onert_llvm.lower.elementwise.op_to_expression import as_byte
from onert_llvm.lower.rule import Lower
from onert_llvm.schedule.cost_model import Shape
from onert_llvm.schedule.depthwise import pairs_together
from onert_llvm.schedule.weight_packing import channel_order, pack_depthwise

from . import scaled_outputs


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    x, weight = types.input(0), types.input(1)
    if x.dtype not in BYTES or weight.dtype is not DType.INT8 or types.output.dtype is not DType.FLOAT32:
        return "only products of bytes that become float32 are native"
    if weight.value is None or weight.quantization is None or x.quantization is None:
        return "the filter is not constant, or a tensor has no scale"
    if 0 in (x.shape + weight.shape + types.output.shape):
        return "a tensor has no elements"
    if weight.value.size > MOST_TERMS * weight.value.shape[3 if isinstance(op, DepthwiseConv2D) else 0]:
        return "its sums do not fit in 32 bits"
    if isinstance(op, Conv2D) and weight.shape[3] != x.shape[3]:
        return "groups are not native"
    return None


def _with_bytes(real: Lower, layer: MadeLayer) -> Lower:
    """A layer with real sums, lowered as a layer of bytes if results are equal; byte functions may follow."""

    def lower(lowering: Lowering, operations: Sequence[int]) -> None:
        own = _own(lowering, operations)
        chain = operations[len(own) :]
        table = looked_up(lowering, chain)
        made = scaled_outputs.outputs(lowering, own, table)
        if made is None:
            real(lowering, operations)
        else:
            layer(lowering, operations, lambda *_: made)
        if chain and (made is None or table is None):
            byte_chains.follow(lowering, chain)

    return lower


def _own(lowering: Lowering, operations: Sequence[int]) -> Sequence[int]:
    """The operations of a group up to the one that converts floats to bytes; all if there is none."""
    made = (i for i, at in enumerate(operations, 1) if lowering.type(lowering.operation(at).outputs[0]).dtype in BYTES)
    return operations[: next(made, len(operations))]


def _fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer."""
    x, w = lowering.operation(operations[0]).used
    weights = np.ascontiguousarray(lowering.elements(w).T)[None]
    depth = weights.shape[1]
    m = math.prod(lowering.shape(x)) // depth
    after, how = results(lowering, operations, weights.shape[2])
    multiply(lowering, operations[0], weights, (m, depth), after, how)


def _convolution(lowering: Lowering, operations: Sequence[int]) -> None:
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


def _depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution: a plain one for a single channel; a depth multiplier repeats input channels."""
    at, operation, op = lowering.first(operations, DepthwiseConv2D)
    x, w = operation.used
    weights, source, isa = lowering.elements(w), lowering.type(x), lowering.isa
    _, kh, kw, n = weights.shape
    geometry = plane(op, lowering.shape(x), weights.shape, lowering.shape(operation.outputs[0]))
    after, how = results(lowering, operations, n)
    if geometry.channels == 1:
        ordered = weights.reshape((kh, kw, n) if geometry.patched(1) else (kh * kw, 1, n))
        multiply(lowering, at, ordered, (geometry.rows, op.stride_height * op.stride_width), after, how, geometry)
        return
    pixels, reads, touched = repeated(lowering, at, x, n // geometry.channels)
    path, picture = sliding(evolve(geometry, channels=n), isa)
    wide = pairs_together(isa, lowering.compact)
    places = channel_order(n, wide, isa)
    taps = weights.reshape(kh, kw, n)
    slots: dict[str, Slot] = {
        **picture,
        **after.slots,
        **columns(lowering, x, w, weights.reshape(kh * kw, 1, n)),
        "w": lowering.deferred_constant(lambda: pack_depthwise(taps, places, isa, isa.group, wide)),
        "c": after.place,
        "channels": n,
        "ldc": n,
        "input": pixels,
        "zero": lowering.constant(np.full(n, _zero(source), source.dtype.numpy)),
    }
    algorithm = DepthwiseIntegers(path, wide, source.dtype is DType.INT8, how)
    tiles, flops = geometry.images * geometry.out[0], 2 * geometry.rows * kh * kw * n
    lowering.emit(at, algorithm, slots, tiles, (*reads, *after.reads), after.writes, flops, touched)


lower_fully_connected = _with_bytes(_fully_connected, int8_conv_fc.fully_connected)
lower_convolution = _with_bytes(_convolution, int8_conv_fc.convolution)
lower_depthwise = _with_bytes(_depthwise, int8_conv_fc.depthwise)


def results(lowering: Lowering, operations: Sequence[int], width: int) -> tuple[EpilogueTask, Scaled]:
    """The epilogue of a group, and how results are stored: as bytes if the group ends with a cast to these."""
    last = lowering.operation(operations[-1]).outputs[0]
    own = _own(lowering, operations)
    dtype = lowering.type(lowering.operation(own[-1]).outputs[0]).dtype
    chain = own[:-1] if dtype in BYTES else own
    after = epilogue_task(lowering, chain, Activation.NONE, None, width)
    if chain is not own:
        after = evolve(after, epilogue=evolve(after.epilogue, tree=as_byte(after.epilogue.tree, dtype)))
    after = evolve(with_number_slots(after), place=lowering.operand(last), writes=(last,))
    return after, Scaled(after.epilogue, dtype.text if dtype in BYTES else "")


def columns(lowering: Lowering, x: int, w: int, weights: Array) -> dict[str, Slot]:
    """The initial accumulators and the factors of the columns of `weights[taps, k, n]`, in whole registers."""
    n, source = weights.shape[2], lowering.type(x)
    start, factors = (np.zeros(lowering.isa.whole(n), t) for t in (np.int32, np.float32))
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
    after: EpilogueTask,
    how: Scaled,
    geometry: Plane | None = None,
) -> None:
    """The product with `weights[taps, k, n]`; `rows` is their number, and the bytes that only one row reads."""
    x, w = lowering.operation(at).used
    (m, row_bytes), (taps, depth, n) = rows, weights.shape
    pointwise, rest = geometry is None or geometry.pointwise, depth % lowering.isa.group
    source = lowering.type(x)
    signed = source.dtype is DType.INT8
    wide = widens(lowering, m)
    shape = Shape(m, n, taps * depth, integer=True, widened=wide)
    tile = lowering.tile((ByteTerms, pointwise, rest, signed, how, wide), shape)
    product = byte_product(lowering, m, weights, tile, row_bytes, widened=wide)
    slots: dict[str, Slot] = {**product.slots, **after.slots, **columns(lowering, x, w, weights), "c": after.place}
    if geometry is None:
        operand, own = rows_of(lowering.operand(x), depth)
    else:
        pixel = np.full(geometry.channels, _zero(source), source.dtype.numpy)
        padding = partial(lowering.constant, pixel)
        operand, own = windows_of(geometry, geometry.channels, lowering.operand(x), padding, Patches)
    algorithm = byte_contraction(lowering.isa, tile, operand, depth, how, ByteTerms(0, signed, widened=wide))
    reads, flops = (x, *after.reads), 2 * m * taps * depth * n
    lowering.emit(at, algorithm, slots | own, product.tiles, reads, after.writes, flops, product.rooms)
