"""Convolutions and fully connected layers of bytes for processors with word-sized registers."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.ops.arithmetic.rescale import filter_multipliers, filter_ratios
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.contraction.small.depthwise import TOGETHER, SmallDepthwise
from onert_llvm.kernels.contraction.small.product import ACROSS, Rows, SmallProduct
from onert_llvm.kernels.contraction.small.requantize import OneByOne
from onert_llvm.kernels.contraction.small.steps import ROUND, UNIT
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.int8_filters import Outputs
from onert_llvm.lower.contraction.quantized_layer import Layer
from onert_llvm.schedule.weight_packing import folded_bias, scaling, sum_bounds
from onert_llvm.target.isa import Products

from .packing import fixed_fields, pack, pack_taps, real_fields

_WORD = 4
_LARGEST = 1 << 30
"""Sums from here on cannot be scaled by `Scaling.NARROW`, which doubles them."""


def fits(lowering: Lowering, layer: Layer[Outputs]) -> bool:
    """Whether a layer has this form: no filter zero point, and activations that the products support."""
    products = lowering.isa.products
    signed = layer.outputs.signed or products is not Products.HELIUM
    return products is not None and layer.filter.zero == 0 and signed


def _columns(lowering: Lowering, layer: Layer[Outputs], weights: Array) -> tuple[OneByOne, dict[str, Slot]]:
    """How the sums of filters `[n, k]` become bytes, and the slots for that."""
    outputs, part = layer.outputs, layer.part
    x, weight, result = outputs.types.input(0), outputs.types.input(1), outputs.types.output
    bias, turned = outputs.bias(part), weights.T
    low, high = outputs.activation.bounds(result)
    start = folded_bias(turned, bias, x.zero_point, 0, lowering.isa, outputs.signed)
    slots: dict[str, Slot] = {"low": low, "high": high, "zero_point": result.zero_point}
    rectified = False
    if outputs.real:
        how, reals = Scaling.EXACT, filter_ratios(x, weight, result)
        fields = real_fields(start, reals[part] if len(reals) > 1 else reals)
    else:
        every = filter_multipliers(x, weight, result)
        pair = every if len(every[0]) == 1 else (every[0][part], every[1][part])
        bounds = sum_bounds(turned, bias, x.zero_point, 0, outputs.signed)
        how = scaling(bounds, pair, result.zero_point)
        if how is Scaling.NARROW and bounds.max(initial=0) >= _LARGEST:
            how = Scaling.WIDE
        rectified = how is Scaling.NARROW and low >= result.zero_point
        fields = fixed_fields(how, start, pair, result.zero_point)
    kind = OneByOne(how, (low, high) != result.dtype.limits, rectified, outputs.signed)
    slots["columns"] = lowering.constant(fields)
    return kind, {name: slots[name] for name in kind.slots}


@frozen(eq=False)
class _Source:
    """The source of `m` rows of `depth` bytes, with its slots."""

    m: int
    depth: int
    rows: Rows
    words: bool
    slots: dict[str, Slot]


def convolve(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> None:
    """A convolution with a filter `[height, width, channels, n]`."""
    kh, kw, c, n = layer.filter.values.shape
    words = c % _WORD == 0 and geometry.channels % _WORD == 0 and layer.first % _WORD == 0
    if geometry.pointwise:
        source = _matrix(lowering, layer, geometry.rows, c, geometry.channels, words)
    else:
        slots = geometry.slots | {"input": layer.input(lowering), "zero": layer.padding(lowering, c), "channels": c}
        source = _Source(geometry.rows, kh * kw * c, Rows.WINDOWS, words, slots)
    weights = np.ascontiguousarray(layer.filter.values.reshape(-1, n).T)
    _multiply(lowering, layer, source, weights)


def fully_connected(lowering: Lowering, layer: Layer[Outputs], m: int) -> None:
    """A fully connected layer of `m` rows with a filter `[n, k]`."""
    depth = layer.filter.values.shape[1]
    _multiply(lowering, layer, _matrix(lowering, layer, m, depth, depth, depth % _WORD == 0), layer.filter.values)


def _matrix(lowering: Lowering, layer: Layer[Outputs], m: int, depth: int, lda: int, words: bool) -> _Source:
    products = lowering.isa.products
    assert products is not None
    straight = depth % UNIT[products] == 0 and (words or products is not Products.SMLAD)
    slots: dict[str, Slot] = {"a": layer.input(lowering), "lda": lda}
    return _Source(m, depth, Rows.STRAIGHT if straight else Rows.COPIED, words, slots)


def _multiply(lowering: Lowering, layer: Layer[Outputs], source: _Source, weights: Array) -> None:
    products = lowering.isa.products
    assert products is not None
    n, depth = weights.shape
    unit, rows = UNIT[products], min(2, source.m)
    how, columns = _columns(lowering, layer, weights)
    rounds, rest = divmod(-(-depth // unit), ROUND[products])
    width = -(-depth // unit) * unit
    algorithm = SmallProduct(rows, rounds > 0, rest, n >= ACROSS, n % ACROSS > 0, source.rows, source.words, how)
    (room,) = lowering.scratch(0 if source.rows is Rows.STRAIGHT else width * rows)
    slots: dict[str, Slot] = {
        "m": source.m,
        "n": n,
        "k": depth,
        "b": lowering.deferred_constant(lambda: pack(weights, unit)),
        "rounds": rounds,
        "room": room.pointer,
        "room_row": width,
        "ldc": n,
        **source.slots,
        **columns,
        **layer.target(lowering),
    }
    own: dict[str, Slot] = {name: slots[name] for name in algorithm.slots}
    tiles = -(-source.m // rows)
    layer.emit(lowering, algorithm, own, tiles, 2 * source.m * depth * n, _used(room))


def _used(room: Access) -> tuple[Access, ...]:
    return (room,) if room.nbytes else ()


def depthwise(lowering: Lowering, layer: Layer[Outputs], geometry: Plane, multiplier: int) -> None:
    """A depthwise convolution with a filter `[1, height, width, n]` over an image with `geometry.channels`."""
    _, kh, kw, n = layer.filter.values.shape
    weights = layer.filter.values.reshape(kh * kw, n)
    how, columns = _columns(lowering, layer, np.ascontiguousarray(weights.T))
    together = multiplier == 1
    words = together and geometry.channels % _WORD == 0
    groups, rest = (n >= TOGETHER, n % TOGETHER) if together else (False, 0)
    algorithm = SmallDepthwise(kh * kw, groups, rest, words, multiplier, how)
    (room,) = lowering.scratch(lowering.isa.pointer_bytes * kh * kw)
    slots: dict[str, Slot] = {
        **geometry.slots,
        **columns,
        "w": lowering.deferred_constant(lambda: pack_taps(weights, together)),
        "input": layer.input(lowering),
        "zero": layer.padding(lowering, geometry.channels),
        "channels": n,
        "room": room.pointer,
        **layer.target(lowering),
    }
    layer.emit(lowering, algorithm, slots, geometry.rows, 2 * geometry.rows * kh * kw * n, (room,))
