"""Convolutions of 8-bit integers with constant weights, in TFLite's exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, RuleError, TensorType
from onert.ir.ops.activation import Activation
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.rescale import filter_multipliers
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.depthwise_int8 import DepthwiseInt8
from onert_llvm.kernels.dot import GROUP
from onert_llvm.kernels.gemm_int8 import ConvInt8, GemmInt8, PatchConvInt8
from onert_llvm.kernels.patch import Patch
from onert_llvm.kernels.requantize import Requantize
from onert_llvm.packing import folded_bias, pack_columns, pack_depthwise_int8, pack_int8, panels
from onert_llvm.schedule import product_tile, row_work, strip

from .builder import Lowering
from .command import Slot
from .products import MOST_PATCH_CHANNELS, MOST_PATCH_DEPTH, plane

_BYTES = (DType.INT8, DType.UINT8)


def why_not(op: Conv2D | DepthwiseConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the integer convolution; None where it does."""
    x, weight, output = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    if x.dtype not in _BYTES or weight.dtype is not x.dtype or output.dtype is not x.dtype:
        return "only 8-bit activations with 8-bit weights are native"
    if weight.value is None or (bias is not None and (bias.value is None or bias.dtype is not DType.INT32)):
        return "weights and bias are not constants of 8 and 32 bits"
    if any(t.quantization is None for t in (x, weight, output)):
        return "a tensor has no quantisation"
    if op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    if 0 in (x.shape + weight.shape + output.shape):
        return "a tensor has no elements"
    if weight.shape[3] != x.shape[3]:
        return "grouped convolutions and depthwise ones with a multiplier are not native"
    try:
        centred(weight)
    except RuleError as error:
        return str(error)
    return None


def centred(weight: TensorType) -> Array:
    """The weights less their zero point as signed bytes; RuleError where these do not hold them."""
    assert weight.quantization is not None
    assert weight.value is not None
    zero = weight.quantization.zero_points[0]
    difference = weight.value.astype(np.int16) - zero
    if difference.min() < -128 or difference.max() > 127:
        raise RuleError("weights less their zero point do not fit 8 bits")
    return difference.astype(np.int8)


def _columns(
    lowering: Lowering, operation: int, weights: Array, activation: Activation
) -> tuple[dict[str, Slot], Requantize]:
    """The slots of requantisation for `weights[taps, k, n]`, and its kind."""
    types = lowering.subgraph.types(lowering.operation(operation))
    x, weight, output = types.input(0), types.input(1), types.output
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    mantissas, shifts = filter_multipliers(x, weight, output)
    signed = x.dtype is DType.INT8
    folded = folded_bias(weights, None if bias is None else bias.value, x.zero_point, 0, lowering.isa, signed)
    low, high = activation.bounds(output)
    slots: dict[str, Slot] = {
        "columns": lowering.constant(pack_columns(folded, mantissas, shifts, lowering.isa)),
        "zero_point": output.zero_point,
        "low": low,
        "high": high,
    }
    return slots, Requantize(left=bool(np.any(shifts > 0)))


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution: a plain product, copied windows, or windows gathered tap by tap."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Conv2D)
    source, kernel, result = operation.used[0], operation.used[1], operation.outputs[0]
    w = centred(lowering.type(kernel))
    n, kh, kw, c = w.shape
    geometry = plane(op, lowering.shape(source), w.shape, lowering.shape(result))
    taps = w.transpose(1, 2, 3, 0).reshape(kh * kw, c, n)
    patched = c <= MOST_PATCH_CHANNELS and kw > 1 and op.dilation_width == 1 and kh * kw * c <= MOST_PATCH_DEPTH
    weights = np.ascontiguousarray(taps.reshape(1, -1, n) if patched else taps)
    isa = lowering.isa
    terms = kh * kw * c
    tile = product_tile(geometry.rows, n, terms, isa, integer=True)
    packed, panel_bytes = pack_int8(weights, tile.columns, isa)
    count = panels(n, tile.columns, isa)
    work = row_work(geometry.rows, tile, count, terms, lowering.threads)
    columns, how = _columns(lowering, at, weights, op.activation)
    x = lowering.type(source)
    signed = x.dtype is DType.INT8
    slots: dict[str, Slot] = {
        **columns,
        "b": lowering.constant(packed),
        "c": lowering.operand(result),
        "m": geometry.rows,
        "n": n,
        "mc": work.mc,
        "panels": count,
        "panel_bytes": panel_bytes,
        "ldc": n,
    }
    algorithm: Algorithm
    if geometry.pointwise:
        algorithm = GemmInt8(tile, c % GROUP[isa.dot], signed, how)
        slots |= {"a": lowering.operand(source), "k": c, "lda": c}
    else:
        zero = lowering.constant(np.full(c, x.zero_point, x.dtype.numpy))
        slots |= geometry.slots | {"input": lowering.operand(source), "zero": zero}
        if patched:
            algorithm = PatchConvInt8(tile, Patch(kh, kw * c), signed, how)
        else:
            algorithm = ConvInt8(tile, c % GROUP[isa.dot], signed, how)
            slots["k"] = c
    lowering.emit(at, algorithm, slots, work.tiles, (source,), (result,), 2 * geometry.rows * terms * n)


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, DepthwiseConv2D)
    source, kernel, result = operation.used[0], operation.used[1], operation.outputs[0]
    w = centred(lowering.type(kernel))
    _, kh, kw, c = w.shape
    geometry = plane(op, lowering.shape(source), w.shape, lowering.shape(result))
    columns, how = _columns(lowering, at, w.reshape(kh * kw, 1, c), op.activation)
    cut = strip((kh, kw), op.stride_width, op.dilation_width, geometry.out[1], c, lowering.isa)
    x = lowering.type(source)
    slots: dict[str, Slot] = {
        **geometry.slots,
        **columns,
        "w": lowering.constant(pack_depthwise_int8(w.reshape(kh, kw, c), lowering.isa)),
        "c": lowering.operand(result),
        "channels": c,
        "ldc": c,
        "input": lowering.operand(source),
        "zero": lowering.constant(np.full(c, x.zero_point, x.dtype.numpy)),
    }
    algorithm = DepthwiseInt8(cut, x.dtype is DType.INT8, how)
    tiles = geometry.images * geometry.out[0]
    lowering.emit(at, algorithm, slots, tiles, (source,), (result,), 2 * geometry.rows * kh * kw * c)
