"""Convolutions and fully connected layers in float32, with constant weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.window import Window
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.depthwise_f32 import DepthwiseF32
from onert_llvm.kernels.epilogue import ACC
from onert_llvm.kernels.gemm_f32 import ConvF32, GemmF32, PatchConvF32
from onert_llvm.kernels.patch import Patch
from onert_llvm.kernels.tile import Tile
from onert_llvm.packing import pack_f32, panels
from onert_llvm.schedule import Work, product_tile, row_work, strip

from .builder import Lowering
from .command import Slot
from .epilogues import Tail, tail
from .expressions import activated

MOST_PATCH_CHANNELS = 4
MOST_PATCH_DEPTH = 512
"""Windows of few channels are copied together first: up to so many channels, and elements of a window."""


def why_not(op: Conv2D | DepthwiseConv2D | FullyConnected, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None where it does."""
    x, weight = types.input(0), types.input(1)
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    present = [t for t in (x, weight, bias, types.output) if t is not None]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None:
        return "the weights are not constant"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    if 0 in (x.shape + weight.shape + types.output.shape):
        return "a tensor has no elements"
    if isinstance(op, Conv2D) and weight.shape[3] != x.shape[3]:
        return "grouped convolutions are not native"
    if isinstance(op, DepthwiseConv2D) and weight.shape[3] != x.shape[3]:
        return "depthwise convolutions with a multiplier are not native"
    return None


@frozen
class Plane:
    """The geometry of a window over a picture, as the slots of window kernels name it."""

    images: int
    size: tuple[int, int]
    channels: int
    out: tuple[int, int]
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int]

    @property
    def rows(self) -> int:
        return self.images * self.out[0] * self.out[1]

    @property
    def pointwise(self) -> bool:
        """Whether windows are single pixels, one after the other: a plain product of matrices."""
        return self.window == (1, 1) and self.stride == (1, 1) and self.size == self.out

    @property
    def slots(self) -> dict[str, Slot]:
        (h, w), c = self.size, self.channels
        pairs = {
            "in": self.size,
            "out": self.out,
            "kernel": self.window,
            "stride": self.stride,
            "dilation": self.dilation,
            "pad": self.pads,
        }
        both: dict[str, Slot] = {
            f"{name}_{axis}": pair[i] for name, pair in pairs.items() for i, axis in enumerate("hw")
        }
        return both | {"pixel": c, "row": w * c, "image": h * w * c}


def plane(op: Conv2D | DepthwiseConv2D, x: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> Plane:
    """The geometry of a convolution on NHWC; weights are `[n, height, width, channels]`."""
    rows = Window(weight[1], op.stride_height, op.dilation_height, op.padding)
    columns = Window(weight[2], op.stride_width, op.dilation_width, op.padding)
    return Plane(
        x[0],
        (x[1], x[2]),
        x[3],
        (out[1], out[2]),
        (weight[1], weight[2]),
        (op.stride_height, op.stride_width),
        (op.dilation_height, op.dilation_width),
        (rows.before(x[1]), columns.before(x[2])),
    )


@frozen
class Product:
    """How a product of `m` rows and `n` columns over `k` terms is cut, and its slots."""

    tile: Tile
    work: Work
    slots: dict[str, Slot]


def product(lowering: Lowering, m: int, weights: Array) -> Product:
    """The schedule for `weights[taps, k, n]` and their packed form."""
    taps, depth, n = weights.shape
    tile = product_tile(m, n, taps * depth, lowering.isa)
    packed, panel_bytes = pack_f32(weights, tile.columns, lowering.isa)
    count = panels(n, tile.columns, lowering.isa)
    work = row_work(m, tile, count, taps * depth * 4, lowering.threads)
    slots: dict[str, Slot] = {
        "b": lowering.constant(packed),
        "m": m,
        "n": n,
        "mc": work.mc,
        "panels": count,
        "panel_bytes": panel_bytes,
        "ldc": n,
    }
    return Product(tile, work, slots)


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution and its epilogue: a plain product, copied windows, or windows gathered tap by tap."""
    operation = lowering.operation(operations[0])
    op = operation.op
    assert isinstance(op, Conv2D)
    x, weight, bias = (*operation.inputs, None)[:3]
    assert x is not None
    assert weight is not None
    w = lowering.elements(weight)
    n, kh, kw, c = w.shape
    geometry = plane(op, lowering.shape(x), w.shape, lowering.shape(operation.outputs[0]))
    after = tail(lowering, operations, op.activation, bias, n)
    taps = w.transpose(1, 2, 3, 0).reshape(kh * kw, c, n)
    patched = c <= MOST_PATCH_CHANNELS and kw > 1 and op.dilation_width == 1 and kh * kw * c <= MOST_PATCH_DEPTH
    found = product(lowering, geometry.rows, taps.reshape(1, -1, n) if patched else taps)
    slots = {**found.slots, **after.slots, "c": lowering.operand(after.result)}
    algorithm: Algorithm
    if geometry.pointwise:
        algorithm = GemmF32(found.tile, after.epilogue)
        slots |= {"a": lowering.operand(x), "k": c, "lda": c}
    else:
        slots |= geometry.slots | {"input": lowering.operand(x), "zero": lowering.constant(np.zeros(c, np.float32))}
        if patched:
            algorithm = PatchConvF32(found.tile, Patch(kh, kw * c), after.epilogue)
        else:
            algorithm = ConvF32(found.tile, after.epilogue)
            slots["k"] = c
    _emit(lowering, operations[0], algorithm, slots, found.work.tiles, x, after, 2 * geometry.rows * kh * kw * c * n)


def lower_fully_connected(lowering: Lowering, operations: Sequence[int]) -> None:
    """A fully connected layer and its epilogue."""
    operation = lowering.operation(operations[0])
    op = operation.op
    assert isinstance(op, FullyConnected)
    x, weight, bias = (*operation.inputs, None)[:3]
    assert x is not None
    assert weight is not None
    w = lowering.elements(weight)
    n, depth = w.shape
    m = int(np.prod(lowering.shape(x), dtype=np.int64)) // depth
    after = tail(lowering, operations, op.activation, bias, n)
    found = product(lowering, m, np.ascontiguousarray(w.T)[None])
    slots = {**found.slots, **after.slots, "c": lowering.operand(after.result)}
    slots |= {"a": lowering.operand(x), "k": depth, "lda": depth}
    _emit(
        lowering,
        operations[0],
        GemmF32(found.tile, after.epilogue),
        slots,
        found.work.tiles,
        x,
        after,
        2 * m * n * depth,
    )


def lower_depthwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution and its epilogue."""
    operation = lowering.operation(operations[0])
    op = operation.op
    assert isinstance(op, DepthwiseConv2D)
    x, weight, bias = (*operation.inputs, None)[:3]
    assert x is not None
    assert weight is not None
    w = lowering.elements(weight)
    _, kh, kw, c = w.shape
    geometry = plane(op, lowering.shape(x), w.shape, lowering.shape(operation.outputs[0]))
    after = tail(lowering, operations, op.activation, bias, c)
    cut = strip((kh, kw), op.stride_width, op.dilation_width, geometry.out[1], c, lowering.isa)
    slots = {
        **geometry.slots,
        **after.slots,
        "w": lowering.constant(w.reshape(kh * kw, c)),
        "c": lowering.operand(after.result),
        "channels": c,
        "ldc": c,
        "input": lowering.operand(x),
        "zero": lowering.constant(np.zeros(c, np.float32)),
    }
    tiles = geometry.images * geometry.out[0]
    _emit(
        lowering,
        operations[0],
        DepthwiseF32(cut, after.epilogue),
        slots,
        tiles,
        x,
        after,
        2 * geometry.rows * kh * kw * c,
    )


def _emit(
    lowering: Lowering,
    at: int,
    algorithm: Algorithm,
    slots: dict[str, Slot],
    tiles: int,
    x: int,
    after: Tail,
    flops: int,
) -> None:
    lowering.emit(at, algorithm, slots, tiles, (x, *after.reads), (after.result,), flops)
