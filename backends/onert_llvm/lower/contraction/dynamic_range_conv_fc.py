"""Float layers with 8-bit filters, whose input is quantised on the fly (dynamic range)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, Shape
from onert.ir.ops.arithmetic.dynamic_range import filter_values
from onert.ir.ops.arithmetic.rescale import filter_scales
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.command.command import Slot, most_pieces
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic, moved_by
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.extremes import TILES
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS, step_terms
from onert_llvm.kernels.contraction.operands import Patches
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule import cost_model
from onert_llvm.schedule.depthwise import pairs_together
from onert_llvm.schedule.weight_packing import channel_order, pack_depthwise
from onert_llvm.schedule.winograd import MOST_PIECES
from onert_llvm.target.isa import multiplying

from .conv_geometry import MOST_PATCH_BYTES, Plane, plane, rows_of, windows_of
from .depthwise import repeat_bytes, sliding
from .direct import byte_groups
from .epilogue import EpilogueTask, epilogue_task
from .int8_gemm import byte_contraction, byte_product, widens
from .quantized_layer import MOST_GROUPS
from .quantized_rows import Quantized, StoredExtremes, advanced, by_groups, extremes_memory, quantize, quantize_once
from .winograd import byte_layers

_FILTERS = (DType.INT8, DType.UINT8, DType.INT4, DType.INT2)


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    x, weight, out = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    floats = [t for t in (x, bias, out) if t is not None]
    if weight.dtype not in _FILTERS or any(t.dtype is not DType.FLOAT32 for t in floats):
        return "only float32 with filters of 8 bits or less is native"
    if weight.value is None or weight.quantization is None or weight.quantization.block_size is not None:
        return "the filter is not constant, or is quantised in blocks"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    if 0 in (x.shape + weight.shape + out.shape):
        return "a tensor has no elements"
    if weight.value[0].size > MOST_TERMS:
        return "its sums do not fit in 32 bits"
    if isinstance(op, Conv2D) and not _has_single_channels(x.shape, weight.shape):
        groups = (x.shape[3] or 0) // (weight.shape[3] or 1)
        return f"it has more than {MOST_GROUPS} groups" if groups > MOST_GROUPS else None
    return None


def _has_single_channels(x: Shape, weight: Shape) -> bool:
    """Whether each group of a convolution has one input channel, as in Keras's ConvNeXt."""
    return weight[3] == 1 and x[3] != 1


def columns(lowering: Lowering, weights: Array, scales: Array) -> dict[str, Slot]:
    """The column sums of `weights[taps, k, n]` and their scales, padded to whole registers."""
    n = weights.shape[2]
    sums, factors = (np.zeros(lowering.isa.whole(n), t) for t in (np.int32, np.float32))
    sums[:n] = weights.astype(np.int64).sum((0, 1))
    factors[:n] = scales
    return {"sums": lowering.constant(sums), "filter_scales": lowering.constant(factors)}


def filter_shape(geometry: Plane, channels: int, n: int) -> tuple[int, int, int]:
    """The taps, terms per tap and columns of a filter for `multiply`; with few channels, taps are window rows."""
    height, width = geometry.window
    patched = geometry.patched(channels, MOST_PATCH_BYTES)
    return (height, width * channels, n) if patched else (height * width, channels, n)


def multiply(
    lowering: Lowering,
    at: int,
    source: Quantized,
    weights: Array,
    after: EpilogueTask,
    how: Dynamic,
    rows: tuple[int, int],
    geometry: Plane | None,
    images: int = 1,
    bits: int = 8,
) -> None:
    """The product of the quantised bytes and `weights[taps, k, n]`; `rows` is their number and the bytes of each.

    Weights of fewer than eight `bits`, for matrices only, stay that small in memory. Each of several images is an item
    with its own command; `rows` and `geometry` describe one. Weights with fewer channels than a pixel are a group's.
    """
    m, row_bytes = rows
    taps, depth, n = weights.shape
    isa = multiplying(lowering.isa, bits)
    pointwise, rest = geometry is None or geometry.pointwise, depth % step_terms(isa, bits)
    wide = widens(lowering, m, bits)
    shape = cost_model.Shape(m, n, taps * depth, integer=True, widened=wide)
    tile = lowering.tile((ByteTerms, pointwise, rest, how, bits, wide), shape, isa)
    used = (*source.accesses, *after.accesses)
    beside = (*used, *source.more)
    product = byte_product(lowering, m, weights, tile, row_bytes, isa, bits=bits, widened=wide, beside=beside)
    common: dict[str, Slot] = {**product.slots, **after.slots, **({TILES: product.tiles} if how.ranged else {})}
    width = common["ldc"]
    assert isinstance(width, int)
    for i in range(images):
        own = source if images == 1 else source.from_item(i)
        if geometry is None:
            operand, read = rows_of(own.values, depth)
        else:
            channels = taps * depth // geometry.taps
            operand, read = windows_of(geometry, channels, own.values, own.padding, Patches, most=MOST_PATCH_BYTES)
        algorithm = byte_contraction(
            isa, tile, operand, depth, how, ByteTerms(0, source.signed, bits, widened=wide), far=False
        )
        slots = common | own.slots | read | {"c": advanced(after.place, i * m * width * 4)}
        touched, flops = (*used, *product.rooms), 2 * m * taps * depth * n
        lowering.emit(at, algorithm, slots, product.tiles, after.reads, after.writes, flops, touched, isa=isa)


def _layer(lowering: Lowering, operations: Sequence[int]) -> tuple[int, Array, Array, EpilogueTask]:
    """A layer's input, its filter as signed bytes, the scale of each output or of all, and its epilogue."""
    operation = lowering.operation(operations[0])
    op = operation.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected)
    x, kernel, bias = lowering.layer(operations[0])
    after = epilogue_task(lowering, operations, op.activation, bias, lowering.shape(operation.outputs[0])[-1])
    return x, filter_values(lowering.elements(kernel)), filter_scales(lowering.type(kernel)), after


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution, group by group unless groups are single channels; as in TFLite, asymmetric if filters have
    different scales or come in groups."""
    at, operation, op = lowering.first(operations, Conv2D)
    x, w, scales, after = _layer(lowering, operations)
    n, *_, c = w.shape
    images = lowering.shape(x)[0]
    if _has_single_channels(lowering.shape(x), w.shape):
        layer = x, np.ascontiguousarray(w.transpose(3, 1, 2, 0)), scales, after
        _depthwise(lowering, operations, op, layer, filter_first=True)
        return
    geometry = evolve(plane(op, lowering.shape(x), w.shape, lowering.shape(operation.outputs[0])), images=1)
    groups, size = geometry.channels // c, math.prod(geometry.size) * geometry.channels
    asymmetric = groups > 1 or bool((scales != scales[0]).any())
    seen = evolve(geometry, channels=c)
    apart = groups > 1 and seen.patched(c, MOST_PATCH_BYTES)
    seen = seen if apart else geometry
    filters = np.split(w.transpose(1, 2, 3, 0), groups, axis=3)
    suits = all(byte_layers.suits(lowering, seen, each) for each in filters)
    whole = None if suits or groups == 1 else byte_groups.separated(lowering, geometry, w)
    parts = most_pieces(lowering.threads, *((MOST_PIECES,) if suits else ()))
    extremes, after = _with_extremes(lowering, at, after, parts, groups if whole is None else 1)
    how = Dynamic(after.epilogue, asymmetric, filter_first=asymmetric, alike=True, ranged=extremes is not None)
    plans = [byte_layers.planned(lowering, seen, each, how, not moved_by(lowering.isa)) for each in filters if suits]
    more = [whole.room] if whole is not None else [*([images * size] if apart else ()), *(p.room for p in plans[:1])]
    source, step = quantize_once(lowering, at, x, images, geometry.channels, asymmetric, *more), c
    if whole is not None:
        _separately(lowering, at, source, whole, scales, after, how, images)
        return
    if apart:
        source, step = by_groups(lowering, at, source, images, groups, source.more[0]), size // groups
    rows = geometry.rows, geometry.channels * op.stride_height * op.stride_width
    for group, each in enumerate(filters):
        first = group * n // groups
        ordered = np.ascontiguousarray(each.reshape(filter_shape(seen, c, n // groups)))
        factors = scales[first : first + n // groups] if scales.size > 1 else scales
        own = after.from_column(first)
        own = evolve(own, slots=own.slots | columns(lowering, ordered, factors) | {"ldc": n})
        if extremes is not None:
            own = evolve(own, slots=own.slots | extremes.slots(group))
        bytes_ = source.from_byte(group * step)
        if plans:
            _filter(lowering, at, plans[group], bytes_, own, images, geometry.rows * n)
        else:
            multiply(lowering, at, bytes_, ordered, own, how, rows, seen, images)


def _separately(
    lowering: Lowering,
    at: int,
    source: Quantized,
    what: byte_groups.Separated,
    scales: Array,
    after: EpilogueTask,
    how: Dynamic,
    images: int,
) -> None:
    """A convolution whose groups are copied apart, image by image."""
    n, rows = what.weights.shape[2], what.geometry.rows
    common = {**after.slots, **columns(lowering, what.weights, scales), "ldc": n}
    (room,) = source.more
    each: list[dict[str, Slot]] = []
    for i in range(images):
        own = source.from_item(i)
        place = {"c": advanced(after.place, 4 * i * rows * n), "input": own.values, "zero": own.padding()}
        each.append({**common, **own.slots, **place})
    touched = (*source.accesses, *after.accesses)
    byte_groups.multiply(lowering, at, what, how, source.signed, each, after.reads, after.writes, room, touched)


def _with_extremes(
    lowering: Lowering, at: int, after: EpilogueTask, parts: int, commands: int = 1
) -> tuple[StoredExtremes | None, EpilogueTask]:
    """As `extremes_memory`, together with the epilogue that records the extremes."""
    found = extremes_memory(lowering, at, after.result, parts, commands)
    if found is None:
        return None, after
    return found, evolve(after, slots=after.slots | found.slots(), accesses=(*after.accesses, found.access))


def _filter(
    lowering: Lowering, at: int, plan: byte_layers.Plan, source: Quantized, after: EpilogueTask, images: int, size: int
) -> None:
    """A Winograd convolution, image by image; `size` is the number of results per image."""
    *_, rooms = source.more
    for i in range(images):
        own = source.from_item(i)
        slots = {**after.slots, **own.slots, "input": own.values, "zero": own.padding()}
        slots |= {"c": advanced(after.place, 4 * i * size), TILES: plan.work}
        plan.emit(lowering, at, slots, after.reads, after.writes, rooms, (*source.accesses, *after.accesses))


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer, with each row quantised separately."""
    at, _, op = lowering.first(operations, FullyConnected)
    x, w, scales, after = _layer(lowering, operations)
    depth = w.shape[1]
    m = math.prod(lowering.shape(x)) // depth
    bits = lowering.type(lowering.layer(at)[1]).dtype.bits
    source = quantize_once(lowering, at, x, m, 0, op.asymmetric_inputs, bits=bits)
    ordered = w.T[None]
    after = evolve(after, slots=after.slots | columns(lowering, ordered, scales))
    how = Dynamic(after.epilogue, op.asymmetric_inputs)
    multiply(lowering, at, source, ordered, after, how, (m, depth), None, bits=bits)


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution, always asymmetric."""
    _, _, op = lowering.first(operations, DepthwiseConv2D)
    _depthwise(lowering, operations, op, _layer(lowering, operations))


def _depthwise(
    lowering: Lowering,
    operations: Sequence[int],
    op: Conv2D | DepthwiseConv2D,
    layer: tuple[int, Array, Array, EpilogueTask],
    *,
    filter_first: bool = False,
) -> None:
    """A convolution with a filter [1, height, width, outputs] that has one input channel for each output. If there is a
    single one, it is a plain convolution; with a depth multiplier, the input channels are repeated.
    """
    at, operation = operations[0], lowering.operation(operations[0])
    x, w, scales, after = layer
    _, kh, kw, n = w.shape
    images, *_, c = lowering.shape(x)
    seen = evolve(plane(op, lowering.shape(x), w.shape, lowering.shape(operation.outputs[0])), images=1)
    extremes, after = _with_extremes(lowering, at, after, most_pieces(lowering.threads))
    how = Dynamic(after.epilogue, asymmetric=True, filter_first=filter_first, alike=True, ranged=extremes is not None)
    taps = w.reshape(kh * kw, 1, n)
    after = evolve(after, slots=after.slots | columns(lowering, taps, scales))
    if c == 1:
        source = quantize(lowering, at, x, images, c, asymmetric=True)
        ordered = w.reshape(filter_shape(seen, c, n))
        multiply(lowering, at, source, ordered, after, how, (seen.rows, 1), seen, images)
        return
    geometry = evolve(seen, channels=n)
    source = _repeated(lowering, at, x, images, n // c)
    path, picture = sliding(geometry, lowering.isa)
    wide = pairs_together(lowering.isa, lowering.compact)
    places = channel_order(n, wide, lowering.isa)
    slots: dict[str, Slot] = {
        **picture,
        **after.slots,
        "w": lowering.constant(pack_depthwise(w.reshape(kh, kw, n), places, lowering.isa, lowering.isa.group, wide)),
        "channels": n,
        "ldc": n,
    }
    algorithm = DepthwiseIntegers(path, wide, source.signed, how)
    tiles, flops = geometry.out[0], 2 * geometry.rows * kh * kw * n
    if how.ranged:
        slots[TILES] = tiles
    touched = (*source.accesses, *after.accesses)
    for i in range(images):
        own = source.from_item(i)
        place = advanced(after.place, i * geometry.rows * n * 4)
        slots |= {**own.slots, "c": place, "input": own.values, "zero": own.padding()}
        lowering.emit(at, algorithm, dict(slots), tiles, after.reads, after.writes, flops, touched)


def _repeated(lowering: Lowering, at: int, x: int, images: int, times: int) -> Quantized:
    """The images as bytes, with each channel repeated."""
    shape = lowering.shape(x)
    if times == 1:
        return quantize(lowering, at, x, images, shape[3], asymmetric=True)
    found = quantize(lowering, at, x, images, shape[3] * times, True, math.prod(shape) * times)
    (room,), (values, *_) = found.more, found.accesses
    return found.with_values(repeat_bytes(lowering, at, values, room, shape, times), found.size * times)
