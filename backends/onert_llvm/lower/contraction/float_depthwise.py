"""Depthwise convolutions in float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.shape import static
from onert_llvm.kernels.contraction.direct.depthwise_f32 import DepthwiseF32
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule.depthwise import MOST_ACROSS, chunk, pixels_together, strip

from .conv_geometry import plane
from .depthwise import repeated
from .direct import grouped
from .epilogue import Windows, epilogue_task
from .float_conv_fc import all_finite, convolve_constant

MOST_ACROSS_WINDOW = 64
"""The most columns of a window; its code is unrolled."""


def why_not(op: DepthwiseConv2D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    present = [t for t in (*types.inputs, types.output) if t is not None]
    weight = types.input(1)
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None:
        return "the weights are not constant"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    if any(0 in t.shape for t in present):
        return "a tensor has no elements"
    if types.input(0).shape[3] != 1 and static(weight.shape)[2] > MOST_ACROSS_WINDOW:
        return "the window is too large to unroll"
    if not all_finite(weight.value):
        return "the weights are not all finite, and padding is multiplied by them"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A depthwise convolution and its epilogue.

    With a single channel it is a plain convolution; with several filters per channel, the input channels are repeated.
    """
    _, operation, op = lowering.first(operations, DepthwiseConv2D)
    x, weight, bias = lowering.layer(operations[0])
    w = lowering.elements(weight)
    _, kh, kw, n = w.shape
    geometry = plane(op, lowering.shape(x), w.shape, lowering.shape(operation.outputs[0]))
    after = epilogue_task(lowering, operations, op.activation, bias, n)
    if geometry.channels == 1:
        filters = w.transpose(3, 1, 2, 0)
        convolve_constant(lowering, operations[0], geometry, filters, after, n, lowering.operand(x), (x,))
        return
    windows = Windows(operations[0], geometry, lowering.operand(x), (x,), after)
    if n > geometry.channels and grouped.lowered(lowering, windows, w.transpose(3, 1, 2, 0), n):
        return
    source, reads, touched = repeated(lowering, operations[0], x, n // geometry.channels)
    geometry = evolve(geometry, channels=n)
    taps, out_w = w.reshape(kh * kw, n), geometry.out[1]
    together = pixels_together(n, op.stride_width, out_w, lowering.isa) if after.repeatable(lowering) else 1
    if together > 1:
        after, taps, n = after.side_by_side(lowering, together), np.tile(taps, together), n * together
    width = out_w // together
    cut = strip((kh, kw), op.stride_width * together, op.dilation_width, width, n, lowering.isa, MOST_ACROSS)
    some = chunk((kh, kw), geometry.size, n, lowering.isa)
    lines, chunks = geometry.images * geometry.out[0], -(-n // some)
    block = -(-lines // lowering.threads)  # a thread's share, with all channels of its rows
    slots = {
        **geometry.slots,
        **after.slots,
        "out_w": width,
        "w": lowering.constant(taps),
        "c": after.place,
        "channels": n,
        "ldc": n,
        "lines": lines,
        "chunk": some,
        "block": block,
        "block_tiles": block * chunks,
        "input": source,
        "zero": lowering.constant(np.zeros(n, np.float32)),
    }
    tiles = lines * chunks
    flops = 2 * geometry.rows * kh * kw * geometry.channels
    every = (*reads, *after.reads)
    cut = evolve(cut, chunked=True, near=geometry.near, together=together)
    algorithm = DepthwiseF32(cut, after.epilogue, apart=not lowering.compact)
    lowering.emit(operations[0], algorithm, slots, tiles, every, after.writes, flops, accesses=touched)
