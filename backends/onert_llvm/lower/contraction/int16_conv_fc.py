"""Convolutions and fully connected layers with 16-bit activations and constant 8-bit filters, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.operands import Copies
from onert_llvm.kernels.contraction.short_terms import Shorts, ShortTerms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.schedule.cost_model import Shape
from onert_llvm.schedule.weight_packing import channel_order, pack_depthwise
from onert_llvm.target.isa import Dot, Isa

from . import int16_filters
from .conv_geometry import Plane, rows_of, windows_of
from .depthwise import repeated, sliding
from .int8_filters import stored
from .int8_gemm import ByteProduct, byte_product
from .int16_filters import Parameters
from .quantized_layer import Layer, depthwise, emit_sliding, groups, layer_of, why_no_form

MOST_TAPS = 64
"""The most elements of a depthwise window; its code is unrolled."""

_BYTES = 2
"""The size of an activation in bytes."""

_PAIR = 2
"""Rows of a depthwise window whose products are added at once."""


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    reason = int16_filters.why_not(types) or int16_filters.why_not_scaled(op, types) or why_no_form(op, types)
    if reason is not None:
        return reason
    if isinstance(op, DepthwiseConv2D) and types.input(0).shape[3] != 1:
        values = stored(types.input(1)).values
        if values.shape[1] * values.shape[2] > MOST_TAPS:
            return "the window is too large to unroll"
        if not Parameters(types, op.activation, False).fits(values.reshape(-1, values.shape[3])):
            return "its sums need more than 32 bits"
    return None


def _in_pairs(isa: Isa) -> Isa:
    """The target, but multiplying 16-bit numbers in pairs, which determines how weights are packed."""
    return evolve(isa, dot=Dot.MADD)


def _cut(
    lowering: Lowering, layer: Layer[Parameters], m: int, taps: Array, row_bytes: int, pointwise: bool = True
) -> tuple[ByteProduct, ShortTerms, ShortScaling]:
    """A product of `m` rows and a filter `[taps, k, n]`, with its target, and how terms are added and scaled."""
    isa = _in_pairs(lowering.isa)
    count, depth, n = taps.shape
    added, own = layer.outputs.depth(taps, layer.part)
    scaling, columns = layer.outputs.scaled(lowering, layer.part, n)
    tile = lowering.tile((ShortTerms, pointwise, added, scaling), Shape(m, n, count * depth, integer=True), isa)
    product = byte_product(lowering, m, taps, tile, row_bytes, isa)
    return evolve(product, slots=product.slots | own | columns | layer.target(lowering)), added, scaling


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution; all groups run at once if they share a kernel."""
    with lowering.merged():
        for layer, geometry in groups(lowering, operations, Parameters):
            convolve(lowering, layer, geometry)


def convolve(lowering: Lowering, layer: Layer[Parameters], geometry: Plane) -> None:
    """Emit a plain product, gathered patches, or windows gathered tap by tap."""
    kh, kw, c, n = layer.filter.values.shape
    patched = geometry.patched(c)
    shape = (1, kh * kw * c, n) if patched else (kh * kw, c, n)
    own = geometry.channels * geometry.stride[0] * geometry.stride[1] * _BYTES
    taps = layer.filter.values.reshape(shape)
    cut, terms, scaling = _cut(lowering, layer, geometry.rows, taps, own, geometry.pointwise)
    padding = partial(layer.padding, lowering, c)
    rows, slots = windows_of(geometry, c, layer.input(lowering), padding, Copies)
    algorithm = Contraction(cut.tile, rows, terms, Shorts(scaling))
    layer.emit(lowering, algorithm, cut.slots | slots, cut.tiles, 2 * geometry.rows * kh * kw * c * n)


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer; as in TFLite, its sums are scaled by a real number."""
    layer = layer_of(lowering, operations, Parameters)
    weights = layer.filter.values
    n, depth = weights.shape
    m = math.prod(lowering.shape(layer.source)) // depth
    cut, terms, scaling = _cut(lowering, layer, m, np.ascontiguousarray(weights.T)[None], depth * _BYTES)
    rows, slots = rows_of(layer.input(lowering), depth)
    algorithm = Contraction(cut.tile, rows, terms, Shorts(scaling))
    layer.emit(lowering, algorithm, cut.slots | slots, cut.tiles, 2 * m * depth * n)


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution."""
    depthwise(lowering, operations, Parameters, convolve, _slide)


def _slide(lowering: Lowering, layer: Layer[Parameters], geometry: Plane) -> None:
    n = geometry.channels
    path, picture = sliding(geometry, lowering.isa)
    places = channel_order(n, 0, lowering.isa)
    own = places[places < n]
    scaling, columns = layer.outputs.scaled(lowering, own, len(own))
    weights = layer.filter.values.reshape(*geometry.window, n)
    packed = lowering.constant(pack_depthwise(weights, places, lowering.isa, _PAIR))
    source = repeated(lowering, layer.operation, layer.source, n // lowering.shape(layer.source)[-1])
    algorithm = DepthwiseIntegers(path, requantize=scaling)
    emit_sliding(lowering, layer, geometry, algorithm, {**picture, **columns, "w": packed}, source)
