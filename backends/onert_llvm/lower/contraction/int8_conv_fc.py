"""Convolutions and fully connected layers of 8-bit integers with constant filters, bit-exact with TFLite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize
from onert_llvm.kernels.contraction.byte_terms import Bytes, ByteTerms
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS, step_terms
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise import byte_chains
from onert_llvm.lower.rule import Lower
from onert_llvm.schedule.byte_outliers import split, with_row_again
from onert_llvm.schedule.cost_model import Shape
from onert_llvm.schedule.depthwise import registers_together
from onert_llvm.schedule.weight_packing import channel_order, pack_depthwise
from onert_llvm.target.isa import Lookup, multiplying

from . import int8_filters, quantized_layer
from .conv_geometry import MOST_PATCH_BYTES, Plane, rows_of, windows_of
from .depthwise import repeat_bytes, sliding
from .direct import byte_groups
from .int8_filters import Filter, Outputs
from .int8_gemm import ByteProduct, byte_contraction, byte_product, outlier_slots, widens
from .quantized_layer import Layer, MakeOutputs, emit_sliding, groups, layer_of, why_no_form
from .small import layers
from .winograd import byte_layers

_ABREAST = 0.7
"""The largest ratio of the joint window's width to those of its parts at which outputs are computed side by side."""

_LEAST_APART = 4
"""The fewest channels of a group that are copied apart: copying fewer takes longer than it saves."""


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the integer layer; None if it does."""
    return int8_filters.why_not(types) or why_no_form(op, types)


MadeLayer = Callable[[Lowering, Sequence[int], MakeOutputs[Outputs]], None]
"""Emits the commands of a layer, whose results are those of the last operation."""


def _with_chain(layer: MadeLayer) -> Lower:
    """A layer, followed by the byte functions in its group if its kernel does not apply them itself."""

    def both(lowering: Lowering, operations: Sequence[int]) -> None:
        chain = operations[1:]
        table = looked_up(lowering, chain)
        layer(lowering, operations, partial(Outputs, table=table))
        if chain and table is None:
            byte_chains.follow(lowering, chain)

    return both


def looked_up(lowering: Lowering, chain: Sequence[int]) -> Array | None:
    """The table of the byte functions after a layer, if the layer looks results up as it stores them, which it does
    where a lookup is a few instructions per register."""
    return byte_chains.table(lowering.subgraph, chain) if chain and lowering.isa.lookup is Lookup.PERMUTE else None


def _cut(
    lowering: Lowering,
    layer: Layer[Outputs],
    m: int,
    taps: Filter,
    row_bytes: int,
    pointwise: bool = True,
    straight: bool = True,
    alone: bool = True,
) -> tuple[ByteProduct, Requantize, bool]:
    """A product of `m` rows and a filter `[taps, k, n]` with its target, its requantisation, and whether it
    has outliers; there are none unless taps are `straight`, that is contiguous. Rows are widened only if the layer is
    `alone`: groups that write shared memory could not be merged into one command.
    """
    (count, depth, n), bits = taps.values.shape, taps.bits
    isa = multiplying(lowering.isa, bits)
    outliers = split(taps.values, taps.zero, lowering.isa.group) if straight and bits == 8 else None
    columns, how = layer.outputs.scaled(lowering, taps if outliers is None else Filter(outliers.whole, 0), layer.part)
    packed = taps.values if outliers is None else outliers.bytes
    signed, apart = layer.outputs.signed, outliers is not None and len(outliers.beyond) > 0
    wide = alone and not how.weight_zero_point and widens(lowering, m, bits)
    code = (ByteTerms, pointwise, depth % step_terms(isa, bits), signed, how, bits, apart, wide)
    tile = lowering.tile(code, Shape(m, n, count * depth, integer=True, widened=wide), isa)
    product = byte_product(lowering, m, packed, tile, row_bytes, isa, bits=bits, widened=wide, beside=layer.rooms)
    more = outlier_slots(lowering, product, outliers) if outliers is not None and apart else {}
    return evolve(product, slots=product.slots | columns | more | layer.target(lowering)), how, apart


def convolution(lowering: Lowering, operations: Sequence[int], make: MakeOutputs[Outputs]) -> None:
    """A convolution; all groups run at once if they share a kernel."""
    each = [*groups(lowering, operations, make)]
    if len(each) > 1 and _separately(lowering, layer_of(lowering, operations, make), each):
        return
    with lowering.merged():
        for layer, geometry in each:
            convolve(lowering, layer, geometry)


def _separately(lowering: Lowering, layer: Layer[Outputs], each: Sequence[tuple[Layer[Outputs], Plane]]) -> bool:
    """Emit a convolution whose groups are copied apart; returns False if the kernels of `each` group are better."""
    geometry, images = each[0][1], each[0][1].images
    if is_symbolic(images) or layer.filter.zero or geometry.pointwise:
        return False
    if any(byte_layers.suits(lowering, seen, own.filter.values) for own, seen in each):
        return False
    what = byte_groups.separated(lowering, evolve(geometry, images=1), layer.filter.values)
    if what is None or what.channels < _LEAST_APART:
        return False
    n, signed = what.weights.shape[2], layer.outputs.signed
    slots, how = layer.outputs.scaled(lowering, layer.filter.ordered(what.weights))
    slots |= {"zero": layer.padding(lowering, geometry.channels), "ldc": n}
    places: list[dict[str, Slot]] = [
        slots
        | {
            "input": lowering.operand(layer.source, i * math.prod(geometry.size) * geometry.channels),
            "c": lowering.operand(layer.result, i * what.geometry.rows * n),
        }
        for i in range(images)
    ]
    (room,) = lowering.scratch(what.room)
    used = (layer.source,), (layer.result,), room
    byte_groups.multiply(lowering, layer.operation, what, Bytes(how, signed), signed, places, *used)
    return True


def convolve(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> None:
    """Emit a plain product, gathered patches, or windows gathered tap by tap."""
    if layers.fits(lowering, layer):
        layers.convolve(lowering, layer, geometry)
        return
    if byte_layers.lowered(lowering, layer, geometry):
        return
    flops = 2 * geometry.rows * layer.filter.values.size
    layer, geometry = _abreast(lowering, layer, geometry)
    kh, kw, c, n = layer.filter.values.shape
    patched = geometry.patched(c, MOST_PATCH_BYTES)
    shape = (kh, kw * c, n) if patched else (kh * kw, c, n)
    own = geometry.channels * geometry.stride[0] * geometry.stride[1]
    taps = layer.filter.ordered(layer.filter.values.reshape(shape))
    straight = patched or geometry.pointwise
    alone = geometry.channels == c
    cut, how, outliers = _cut(lowering, layer, geometry.rows, taps, own, geometry.pointwise, straight, alone)
    padding = partial(layer.padding, lowering, c)
    rows, slots = windows_of(geometry, c, layer.input(lowering), padding, Patches, most=MOST_PATCH_BYTES)
    signed = layer.outputs.signed
    ending, wide = Bytes(how, signed), bool(cut.rooms)
    terms = ByteTerms(0, signed, outliers=outliers, widened=wide)
    algorithm = byte_contraction(lowering.isa, cut.tile, rows, c, ending, terms)
    layer.emit(lowering, algorithm, cut.slots | slots, cut.tiles, flops, cut.rooms)


def _abreast(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> tuple[Layer[Outputs], Plane]:
    """A convolution with few filters as one of adjacent outputs side by side, if that fills registers better.

    Their joint window is wider, with zero weights elsewhere, and its stride is larger accordingly.
    """
    (kh, kw, c, n), (high, wide), (down, step) = layer.filter.values.shape, geometry.out, geometry.stride
    if is_symbolic(wide) or lowering.shape(layer.result)[-1] != n or layer.filter.zero or geometry.dilation[1] > 1:
        return layer, geometry
    counts = (count for count in range(1, max(1, lowering.isa.f32 // n) + 1) if wide % count == 0)
    spans = [(count, (count - 1) * step + kw) for count in counts]
    count, span = min(spans, key=lambda found: found[1] / found[0])
    if layer.room is not None or span > _ABREAST * count * kw:
        return layer, geometry
    taps = np.zeros((kh, span, c, count, n), np.int8)
    for i in range(count):
        taps[:, i * step : i * step + kw, :, i] = layer.filter.values
    own = layer.filter.ordered(taps.reshape(kh, span, c, count * n))
    together = evolve(layer, filter=own, part=np.tile(np.arange(n), count), abreast=count)
    return together, evolve(geometry, out=(high, wide // count), window=(kh, span), stride=(down, count * step))


def fully_connected(lowering: Lowering, operations: Sequence[int], make: MakeOutputs[Outputs]) -> None:
    """A fully connected layer; as in TFLite, its sums are scaled by a real number."""
    layer = layer_of(lowering, operations, make)
    n, depth = layer.filter.values.shape
    m = math.prod(lowering.shape(layer.source)) // depth
    if layers.fits(lowering, layer):
        layers.fully_connected(lowering, layer, m)
        return
    stored = layer.outputs.types.input(1).dtype.bits
    bits = stored if layer.filter.zero == 0 and depth <= MOST_TERMS else 8
    taps = evolve(layer.filter.ordered(layer.filter.values.T[None]), bits=bits)
    cut, how, outliers = _cut(lowering, layer, m, taps, depth)
    rows, slots = rows_of(layer.input(lowering), depth)
    signed = layer.outputs.signed
    ending = Bytes(how, signed)
    wide = bool(cut.rooms)
    terms = ByteTerms(0, signed, bits, outliers, wide)
    isa = multiplying(lowering.isa, bits)
    algorithm = byte_contraction(isa, cut.tile, rows, depth, ending, terms)
    layer.emit(lowering, algorithm, cut.slots | slots, cut.tiles, 2 * m * depth * n, cut.rooms, isa)


def depthwise(lowering: Lowering, operations: Sequence[int], make: MakeOutputs[Outputs]) -> None:
    """A depthwise convolution."""
    quantized_layer.depthwise(lowering, operations, make, convolve, _slide)


def _slide(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> None:
    (kh, kw), n, c = geometry.window, geometry.channels, lowering.shape(layer.source)[-1]
    if layers.fits(lowering, layer):
        layers.depthwise(lowering, layer, evolve(geometry, channels=c), n // c)
        return
    path, picture = sliding(geometry, lowering.isa)
    wide = registers_together(lowering.isa, lowering.compact)
    places = channel_order(n, wide, lowering.isa)
    weights, zero = layer.filter.values.reshape(kh, kw, n), layer.filter.zero
    again = with_row_again(weights, zero, lowering.isa.group)
    if again is not None:
        path, picture = evolve(path, window=(kh + 1, kw), again=True), picture | {"again": again.number}
    taps = Filter(weights, zero) if again is None else Filter(again.whole, 0)
    columns, how = layer.outputs.scaled(lowering, taps.ordered(taps.values.reshape(-1, 1, n)), slice(None), places)
    packed = weights if again is None else again.bytes
    slots = {
        **picture,
        **columns,
        "w": lowering.deferred_constant(lambda: pack_depthwise(packed, places, lowering.isa, lowering.isa.group, wide)),
    }
    algorithm = DepthwiseIntegers(path, wide, layer.outputs.signed, how)
    emit_sliding(lowering, layer, geometry, algorithm, slots, _repeated(lowering, layer, n // c))


lower_convolution, lower_fully_connected, lower_depthwise = map(_with_chain, (convolution, fully_connected, depthwise))


def _repeated(
    lowering: Lowering, layer: Layer[Outputs], times: int
) -> tuple[Pointer, tuple[int, ...], tuple[Access, ...]]:
    """The input with each channel repeated: its pointer, and the operands and scratch memory that it reads."""
    if times == 1:
        return lowering.operand(layer.source), (layer.source,), ()
    shape = lowering.shape(layer.source)
    (room,) = lowering.scratch(math.prod(shape) * times)
    found = repeat_bytes(lowering, layer.operation, layer.source, room, shape, times)
    return found.pointer, (), (found,)
