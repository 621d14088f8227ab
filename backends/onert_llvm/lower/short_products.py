"""Convolutions and fully connected layers of 16-bit activations with constant 8-bit filters, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.transpose_conv import TransposeConv2D
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.depthwise_int16 import DepthwiseInt16
from onert_llvm.kernels.gemm_int16 import ConvInt16, Depth, GemmInt16, PatchConvInt16
from onert_llvm.kernels.patch import Patch
from onert_llvm.kernels.short_scaling import ShortScaling
from onert_llvm.kernels.tile import Tile
from onert_llvm.packing import pack_int8, panels
from onert_llvm.schedule import Shape, row_work, strip
from onert_llvm.target import Dot, Isa

from . import short_filters as filters
from .boxes import move, operand, side
from .builder import Lowering
from .command import Access, Pointer, Slot
from .integer_filters import stored
from .integer_products import MOST_GROUPS
from .phases import phases, put
from .plane import Plane, plane

MOST_TAPS = 64
"""Elements of a depthwise window, whose code is written out."""

_BYTES = 2
"""Of an activation."""


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None where it does."""
    reason = filters.why_not(types) or filters.why_not_scaled(op, types)
    if reason is not None:
        return reason
    x, weight = types.input(0), types.input(1)
    if op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    if isinstance(op, Conv2D) and (x.shape[3] or 0) // (weight.shape[3] or 1) > MOST_GROUPS:
        return f"it has more than {MOST_GROUPS} groups"
    if isinstance(op, DepthwiseConv2D) and x.shape[3] != 1:
        values = stored(weight).values
        if values.shape[1] * values.shape[2] > MOST_TAPS:
            return "the window is too large to write out"
        if not filters.Parameters(types, op.activation, False).fits(values.reshape(-1, values.shape[3])):
            return "its sums need more than 32 bits"
    return None


@frozen(eq=False)
class _Layer:
    """A layer, or one group of a convolution: from `first` on in each pixel it reads, `part` of the outputs.

    `weights` are `[height, width, channels, n]`. The results go to `room`, scratch memory, where there is one.
    """

    operation: int
    source: int
    result: int
    parameters: filters.Parameters
    weights: Array
    part: filters.Part = slice(None)
    first: int = 0
    room: Access | None = None

    def target(self, lowering: Lowering) -> Pointer:
        """Where the first result goes."""
        if self.room is not None:
            return self.room.pointer
        return lowering.operand(self.result, (self.part.start or 0) * _BYTES if isinstance(self.part, slice) else 0)


def _layer(lowering: Lowering, at: int) -> _Layer:
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected)
    types = lowering.subgraph.types(operation)
    parameters = filters.Parameters(types, op.activation, isinstance(op, FullyConnected))
    source, kernel = operation.used[:2]
    return _Layer(at, source, operation.outputs[0], parameters, stored(lowering.type(kernel)).values)


@frozen(eq=False)
class _Cut:
    """How a product is cut into tiles and its terms are added, and the slots that say so."""

    tile: Tile
    depth: Depth
    scaling: ShortScaling
    slots: dict[str, Slot]
    tiles: int


def _in_pairs(isa: Isa) -> Isa:
    """The target as one that multiplies 16-bit numbers in pairs: so weights are packed, whatever it does for bytes."""
    return evolve(isa, dot=Dot.MADD)


def _cut(lowering: Lowering, layer: _Layer, m: int, taps: Array, row_bytes: int, pointwise: bool = True) -> _Cut:
    """A product of `m` rows, each of which reads `row_bytes` that no other does, with a filter `[taps, k, n]`."""
    isa = _in_pairs(lowering.isa)
    count, depth, n = taps.shape
    added, own = layer.parameters.depth(taps, layer.part)
    scaling, columns = layer.parameters.scaled(lowering, layer.part, n)
    tile = lowering.tile((GemmInt16, pointwise, added, scaling), Shape(m, n, count * depth, integer=True), isa)
    packed, panel_bytes = pack_int8(taps, tile.columns, isa)
    across = panels(n, tile.columns, isa)
    work = row_work(m, tile, across, row_bytes, lowering.threads)
    slots: dict[str, Slot] = {
        **own,
        **columns,
        "b": lowering.constant(packed),
        "c": layer.target(lowering),
        "m": m,
        "n": n,
        "mc": work.mc,
        "panels": across,
        "panel_bytes": panel_bytes,
        "ldc": n if layer.room else lowering.shape(layer.result)[-1],
    }
    return _Cut(tile, added, scaling, slots, work.tiles)


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution, group by group."""
    (at,) = operations
    op = lowering.operation(at).op
    assert isinstance(op, Conv2D)
    layer = _layer(lowering, at)
    n, _, _, inner = layer.weights.shape
    geometry = plane(op, lowering.shape(layer.source), layer.weights.shape, lowering.shape(layer.result))
    groups = geometry.channels // inner
    for g in range(groups):
        part = slice(g * n // groups, (g + 1) * n // groups)
        own = np.ascontiguousarray(layer.weights[part].transpose(1, 2, 3, 0))
        _convolve(lowering, evolve(layer, weights=own, part=part, first=g * inner), geometry)


def _convolve(lowering: Lowering, layer: _Layer, geometry: Plane) -> None:
    """A plain product, copied windows, or windows gathered tap by tap."""
    kh, kw, c, n = layer.weights.shape
    patched = geometry.patched(c)
    shape = (1, kh * kw * c, n) if patched else (kh * kw, c, n)
    own = geometry.channels * geometry.stride[0] * geometry.stride[1] * _BYTES
    cut = _cut(lowering, layer, geometry.rows, layer.weights.reshape(shape), own, geometry.pointwise)
    source = lowering.operand(layer.source, layer.first * _BYTES)
    slots: dict[str, Slot] = dict(cut.slots)
    algorithm: Algorithm
    if geometry.pointwise:
        algorithm = GemmInt16(cut.tile, cut.depth, cut.scaling)
        slots |= {"a": source, "k": c, "lda": geometry.channels}
    else:
        slots |= geometry.slots | {"input": source, "zero": lowering.constant(np.zeros(c, np.int16))}
        if patched:
            algorithm = PatchConvInt16(cut.tile, Patch(kh, kw * c), cut.depth, cut.scaling)
        else:
            algorithm = ConvInt16(cut.tile, cut.depth, cut.scaling)
            slots["k"] = c
    flops = 2 * geometry.rows * kh * kw * c * n
    writes, rooms = ((layer.result,), ()) if layer.room is None else ((), (layer.room,))
    lowering.emit(layer.operation, algorithm, slots, cut.tiles, (layer.source,), writes, flops, rooms)


def why_not_transposed(op: TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the transposed convolution; None where it does."""
    plain = _as_convolution(types)
    reason = filters.why_not(plain) or filters.why_not_scaled(op, plain)
    if reason is None and op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    return reason


def _as_convolution(types: CallTypes) -> CallTypes:
    """The types in a convolution's order: input, filter and bias."""
    bias = types.inputs[3] if len(types.inputs) > 3 else None
    return CallTypes((types.input(2), types.input(1), bias), types.outputs)


def lower_transposed(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution: that of all phases, put into their places where the strides are more than one."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, TransposeConv2D)
    types = _as_convolution(lowering.subgraph.types(operation))
    source, result = operation.used[2], operation.outputs[0]
    weights = stored(types.input(1)).values
    found = phases(op, lowering.shape(source), weights.shape, lowering.shape(result))
    ordered = np.ascontiguousarray(found.filters(weights).transpose(1, 2, 3, 0))
    columns = np.tile(np.arange(found.channels), found.count)
    room = None if found.count == 1 else lowering.scratch(found.results * _BYTES)[0]
    parameters = filters.Parameters(types, op.activation, False)
    layer = _Layer(at, source, result, parameters, ordered, columns, room=room)
    _convolve(lowering, layer, found.plane(ordered.shape[2]))
    if room is not None:
        put(lowering, at, found, room.pointer)


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer, whose sums TFLite scales by a real number."""
    (at,) = operations
    layer = _layer(lowering, at)
    n, depth = layer.weights.shape
    m = int(np.prod(lowering.shape(layer.source), dtype=np.int64)) // depth
    cut = _cut(lowering, layer, m, np.ascontiguousarray(layer.weights.T)[None], depth * _BYTES)
    slots = cut.slots | {"a": lowering.operand(layer.source), "k": depth, "lda": depth}
    algorithm = GemmInt16(cut.tile, cut.depth, cut.scaling)
    lowering.emit(at, algorithm, slots, cut.tiles, (layer.source,), (layer.result,), 2 * m * depth * n)


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution; that of a single channel is a plain one, one with a multiplier repeats its channels."""
    (at,) = operations
    op = lowering.operation(at).op
    assert isinstance(op, DepthwiseConv2D)
    layer = _layer(lowering, at)
    (*image, c), result = lowering.shape(layer.source), lowering.shape(layer.result)
    _, kh, kw, n = layer.weights.shape
    if c == 1:
        single = layer.weights.reshape(kh, kw, 1, n)
        _convolve(lowering, evolve(layer, weights=single), plane(op, (*image, 1), (n, kh, kw, 1), result))
        return
    geometry = plane(op, (*image, n), (1, kh, kw, n), result)
    cut = strip((kh, kw), op.stride_width, op.dilation_width, geometry.out[1], n, lowering.isa)
    scaling, columns = layer.parameters.scaled(lowering, slice(None), n)
    padded = -(-n // lowering.isa.f32) * lowering.isa.f32
    packed = np.zeros((kh * kw, padded), np.int32)
    packed[:, :n] = layer.weights.reshape(kh * kw, n).astype(np.int16).view(np.uint16)
    source, repeated = _repeated(lowering, layer, n // c) if n > c else (lowering.operand(layer.source), ())
    slots: dict[str, Slot] = {
        **geometry.slots,
        **columns,
        "w": lowering.constant(packed),
        "padded": padded,
        "c": lowering.operand(layer.result),
        "channels": n,
        "ldc": n,
        "input": source,
        "zero": lowering.constant(np.zeros(n, np.int16)),
    }
    tiles, flops = geometry.images * geometry.out[0], 2 * geometry.rows * kh * kw * n
    reads = () if repeated else (layer.source,)
    lowering.emit(at, DepthwiseInt16(cut, scaling), slots, tiles, reads, (layer.result,), flops, repeated)


def _repeated(lowering: Lowering, layer: _Layer, times: int) -> tuple[Pointer, tuple[Access, ...]]:
    """The input with each channel as often as it has filters, in scratch memory."""
    own = operand(lowering, layer.source)
    shape = (*own.view.shape, times)
    (room,) = lowering.scratch(int(np.prod(shape, dtype=np.int64)) * _BYTES)
    spread = own.at(np.broadcast_to(own.view[..., None], shape))
    move(lowering, layer.operation, spread, side(room.pointer, shape, _BYTES), (layer.source,))
    return room.pointer, (evolve(room, write=False),)
