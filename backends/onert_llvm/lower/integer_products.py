"""Convolutions and fully connected layers of 8-bit integers with constant filters, in TFLite's exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.depthwise_int8 import DepthwiseInt8
from onert_llvm.kernels.dot import GROUP
from onert_llvm.kernels.gemm_int8 import ConvInt8, GemmInt8, PatchConvInt8
from onert_llvm.kernels.patch import Patch
from onert_llvm.kernels.repeat import RepeatBytes
from onert_llvm.kernels.requantize import Requantize
from onert_llvm.kernels.tile import Tile
from onert_llvm.packing import channel_order, pack_depthwise_int8, pack_int8, panels
from onert_llvm.schedule import Shape, byte_strip, row_work

from . import integer_filters as filters
from .builder import Lowering
from .command import Access, Pointer, Slot
from .integer_filters import Filter, Outputs
from .plane import Plane, plane

MOST_GROUPS = 256
"""Groups of a convolution: each is a kernel's call."""


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the integer layer; None where it does."""
    x, weight = types.input(0), types.input(1)
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    reason = filters.why_not(x, weight, bias, types.output)
    if reason is not None:
        return reason
    if op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    if isinstance(op, Conv2D) and (x.shape[3] or 0) // (weight.shape[3] or 1) > MOST_GROUPS:
        return f"it has more than {MOST_GROUPS} groups"
    return None


@frozen(eq=False)
class Layer:
    """A layer of bytes, or one group of a convolution: from `first` on in each pixel it reads, `part` of the outputs.

    `filter` is `[height, width, channels, n]`. The results go to `room`, scratch memory, where there is one.
    """

    operation: int
    source: int
    result: int
    outputs: Outputs
    filter: Filter
    part: slice | Array = slice(None)
    first: int = 0
    room: Access | None = None

    @property
    def signed(self) -> bool:
        return self.outputs.types.input(0).dtype is DType.INT8

    def target(self, lowering: Lowering) -> Pointer:
        """Where the first result goes."""
        if self.room is not None:
            return self.room.pointer
        return lowering.operand(self.result, self.part.start or 0 if isinstance(self.part, slice) else 0)

    def padding(self, channels: int) -> Array:
        """A pixel outside of the picture."""
        x = self.outputs.types.input(0)
        return np.full(channels, x.zero_point, x.dtype.numpy)


def _layer(lowering: Lowering, at: int, real: bool = False) -> Layer:
    """A layer as the model has it, but for the filter's order."""
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected)
    outputs = Outputs(lowering.subgraph.types(operation), op.activation, real)
    source, kernel = operation.used[:2]
    return Layer(at, source, operation.outputs[0], outputs, filters.stored(lowering.type(kernel)))


@frozen(eq=False)
class Cut:
    """How a product is cut into tiles, and the slots that say so."""

    tile: Tile
    how: Requantize
    slots: dict[str, Slot]
    tiles: int


def _cut(lowering: Lowering, layer: Layer, m: int, taps: Filter, row_bytes: int, pointwise: bool = True) -> Cut:
    """A product of `m` rows, each of which reads `row_bytes` that no other does, with a filter `[taps, k, n]`."""
    isa = lowering.isa
    count, depth, n = taps.values.shape
    columns, how = layer.outputs.scaled(lowering, taps, layer.part)
    code = (GemmInt8, pointwise, depth % GROUP[isa.dot], layer.signed, how)
    tile = lowering.tile(code, Shape(m, n, count * depth, integer=True))
    packed, panel_bytes = pack_int8(taps.values, tile.columns, isa)
    across = panels(n, tile.columns, isa)
    work = row_work(m, tile, across, row_bytes, lowering.threads)
    slots: dict[str, Slot] = {
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
    return Cut(tile, how, slots, work.tiles)


def _emit(
    lowering: Lowering, layer: Layer, algorithm: Algorithm, slots: dict[str, Slot], tiles: int, flops: int
) -> None:
    writes, rooms = ((layer.result,), ()) if layer.room is None else ((), (layer.room,))
    lowering.emit(layer.operation, algorithm, slots, tiles, (layer.source,), writes, flops, rooms)


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution, group by group."""
    (at,) = operations
    op = lowering.operation(at).op
    assert isinstance(op, Conv2D)
    layer = _layer(lowering, at)
    weights = layer.filter.values
    geometry = plane(op, lowering.shape(layer.source), weights.shape, lowering.shape(layer.result))
    n, inner = weights.shape[0], weights.shape[3]
    groups = geometry.channels // inner
    for g in range(groups):
        part = slice(g * n // groups, (g + 1) * n // groups) if groups > 1 else slice(None)
        own = layer.filter.ordered(weights[part].transpose(1, 2, 3, 0))
        convolve(lowering, evolve(layer, filter=own, part=part, first=g * inner), geometry)


def convolve(lowering: Lowering, layer: Layer, geometry: Plane) -> None:
    """A plain product, copied windows, or windows gathered tap by tap."""
    kh, kw, c, n = layer.filter.values.shape
    patched = geometry.patched(c)
    shape = (1, kh * kw * c, n) if patched else (kh * kw, c, n)
    own = geometry.channels * geometry.stride[0] * geometry.stride[1]
    taps = layer.filter.ordered(layer.filter.values.reshape(shape))
    cut = _cut(lowering, layer, geometry.rows, taps, own, geometry.pointwise)
    source, rest = lowering.operand(layer.source, layer.first), c % GROUP[lowering.isa.dot]
    slots: dict[str, Slot] = dict(cut.slots)
    algorithm: Algorithm
    if geometry.pointwise:
        algorithm = GemmInt8(cut.tile, rest, layer.signed, cut.how)
        slots |= {"a": source, "k": c, "lda": geometry.channels}
    else:
        slots |= geometry.slots | {"input": source, "zero": lowering.constant(layer.padding(c))}
        if patched:
            algorithm = PatchConvInt8(cut.tile, Patch(kh, kw * c), layer.signed, cut.how)
        else:
            algorithm = ConvInt8(cut.tile, rest, layer.signed, cut.how)
            slots["k"] = c
    _emit(lowering, layer, algorithm, slots, cut.tiles, 2 * geometry.rows * kh * kw * c * n)


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer, whose sums TFLite scales by a real number."""
    (at,) = operations
    layer = _layer(lowering, at, real=True)
    n, depth = layer.filter.values.shape
    m = int(np.prod(lowering.shape(layer.source), dtype=np.int64)) // depth
    cut = _cut(lowering, layer, m, layer.filter.ordered(layer.filter.values.T[None]), depth)
    slots = cut.slots | {"a": lowering.operand(layer.source), "k": depth, "lda": depth}
    algorithm = GemmInt8(cut.tile, depth % GROUP[lowering.isa.dot], layer.signed, cut.how)
    _emit(lowering, layer, algorithm, slots, cut.tiles, 2 * m * depth * n)


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution; that of a single channel is a plain one, one with a multiplier repeats its channels."""
    (at,) = operations
    op = lowering.operation(at).op
    assert isinstance(op, DepthwiseConv2D)
    layer = _layer(lowering, at)
    (*image, c), result = lowering.shape(layer.source), lowering.shape(layer.result)
    _, kh, kw, n = layer.filter.values.shape
    if c == 1:
        single = layer.filter.ordered(layer.filter.values.reshape(kh, kw, 1, n))
        convolve(lowering, evolve(layer, filter=single), plane(op, (*image, 1), (n, kh, kw, 1), result))
        return
    geometry = plane(op, (*image, n), (1, kh, kw, n), result)
    cut = byte_strip((kh, kw), op.stride_width, op.dilation_width, geometry.out[1], n, lowering.isa)
    cut = evolve(cut, near=geometry.near)
    places = channel_order(n, cut.wide, lowering.isa)
    taps = layer.filter.ordered(layer.filter.values.reshape(kh * kw, 1, n))
    columns, how = layer.outputs.scaled(lowering, taps, slice(None), places)
    weights = layer.filter.values.reshape(kh, kw, n)
    repeated = _repeated(lowering, layer, n // c) if n > c else None
    slots: dict[str, Slot] = {
        **geometry.slots,
        **columns,
        "w": lowering.constant(pack_depthwise_int8(weights, places, lowering.isa)),
        "c": lowering.operand(layer.result),
        "channels": n,
        "ldc": n,
        "input": lowering.operand(layer.source) if repeated is None else repeated.pointer,
        "zero": lowering.constant(layer.padding(n)),
    }
    lowering.emit(
        at,
        DepthwiseInt8(cut, layer.signed, how),
        slots,
        geometry.images * geometry.out[0],
        (layer.source,),
        (layer.result,),
        2 * geometry.rows * kh * kw * n,
        () if repeated is None else (repeated,),
    )


def _repeated(lowering: Lowering, layer: Layer, times: int) -> Access:
    """The input with each channel as often as it has filters, as memory to be read."""
    shape = lowering.shape(layer.source)
    rows, width = shape[0] * shape[1], shape[2] * shape[3]
    (access,) = lowering.scratch(rows * width * times)
    slots: dict[str, Slot] = {
        "x": lowering.operand(layer.source),
        "out": access.pointer,
        "width": width,
        "times": times,
    }
    lowering.emit(layer.operation, RepeatBytes(), slots, rows, (layer.source,), (), accesses=(access,))
    return evolve(access, write=False)
