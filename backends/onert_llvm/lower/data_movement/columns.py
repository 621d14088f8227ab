"""Pictures assembled from overlapping blocks, which are added row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.data_movement.columns import FromColumns
from onert.ir.symbolic.trace import hint, is_symbolic
from onert_llvm.kernels.data_movement.columns import OverlappingColumns
from onert_llvm.lower.command_builder import Lowering

_SHORTEST = 12
"""Shorter rows take longer than rows of as many channels."""

_MOST = 4
"""The most registers of a row that are summed at a time."""


def why_not(op: FromColumns, types: CallTypes) -> str | None:
    """Why this backend does not add rows of the blocks; None if it does."""
    x, sizes, block = types.inputs
    if x is None or sizes is None or block is None or sizes.value is None or block.value is None:
        return "the sizes are not known before the run"
    if x.dtype is not DType.FLOAT32 or x.quantization is not None or 0 in (*x.shape, *types.output.shape):
        return "it has no elements of float32"
    image, kernel = sv.values(sizes.value), sv.values(block.value)
    strides, *_ = op.each(len(kernel))
    if len(kernel) not in (1, 2) or strides[-1] != 1:
        return "rows of blocks are not rows of the picture"
    if math.prod(kernel) == 1:
        return "its blocks do not overlap"
    row = hint(op.counts(image, kernel)[-1])  # both ways add in the same order
    return f"its rows are shorter than {_SHORTEST}" if row < _SHORTEST else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Overlapping blocks of one or two axes."""
    at, operation, op = lowering.single(operations, FromColumns)
    (x, sizes, block), (result,) = operation.used, operation.outputs
    image, kernel = (sv.values(lowering.elements(i)) for i in (sizes, block))
    strides, dilations, pads = op.each(len(kernel))
    counts = op.counts(image, kernel)
    if len(kernel) == 1:
        image, kernel, counts = (1, *image), (1, *kernel), [1, *counts]
        strides, dilations, pads = (1, *strides), (1, *dilations), (0, *pads)
    slots = {
        **dict(zip(("height", "width"), image, strict=True)),
        **dict(zip(("rows", "columns"), counts, strict=True)),
        **dict(zip(("down", "across"), kernel, strict=True)),
        **dict(zip(("tap_size", "step_size"), dilations, strict=True)),
        **dict(zip(("above", "left"), pads[:2], strict=True)),
        "stride": strides[0],
    }
    shape = lowering.shape(result)
    tiles = math.prod(shape[:2]) * image[0]
    together = _MOST if is_symbolic(image[1]) else int(min(_MOST, -(-image[1] // lowering.isa.f32)))
    lowering.run(
        at, OverlappingColumns(together), tiles, {"x": x}, {"out": result}, slots, math.prod(lowering.shape(x))
    )
