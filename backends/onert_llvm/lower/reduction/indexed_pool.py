"""Max pooling that also returns the places of the maxima, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.reduction.unpool import IndexedPool, MaxPoolWithArgmax2D, MaxPoolWithIndices, MaxUnpool2D
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.indexed_pool import IndexedMaxPool, MaxUnpool, Place
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side


def why_not(op: IndexedPool, types: CallTypes) -> str | None:
    """Why this backend does not run the pooling; None if it does."""
    if any(t is None or t.dtype is not DType.FLOAT32 for t in (*types.inputs, types.outputs[0])):
        return "only float32 is native"
    if any(t is not None and 0 in t.shape for t in (*types.inputs, *types.outputs)):
        return "a tensor has no elements"
    if not isinstance(op, MaxUnpool2D) and op.activation.value.function is not None:
        return f"activation {op.activation.name} has no native form"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The maximum of each window and its place."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, MaxPoolWithArgmax2D | MaxPoolWithIndices)
    (x,), (out, places) = operation.used, operation.outputs
    n, h, w, c = lowering.shape(x)
    _, height, width, _ = lowering.shape(out)
    bounds = op.activation.value
    place = Place.WINDOW
    if isinstance(op, MaxPoolWithIndices):
        place = Place.WIDE if op.index is DType.INT64 else Place.NARROW
    slots: dict[str, Slot] = {
        "item": h * w * c if isinstance(op, MaxPoolWithIndices) and op.batched else 0,
        "low": -np.inf if bounds.low is None else float(bounds.low),
        "high": np.inf if bounds.high is None else float(bounds.high),
        **_window(op, (h, w, c), (height, width)),
    }
    rows, columns = op.windows()
    slots |= {"top": rows.before(h), "left": columns.before(w)}
    flops = n * height * width * c * op.filter_height * op.filter_width
    lowering.run(at, IndexedMaxPool(place), n * height, {"x": x}, {"out": out, "places": places}, slots, flops)


def lower_inverse(lowering: Lowering, operations: Sequence[int]) -> None:
    """Zeros, then each element at its place."""
    at, operation, op = lowering.single(operations, MaxUnpool2D)
    (x, places), (out,) = operation.used, operation.outputs
    n, h, w, c = lowering.shape(x)
    _, height, width, _ = lowering.shape(out)
    whole = operand(lowering, out)
    zero = side(lowering.constant(np.zeros(16, np.float32)), (1,), 4)
    move(lowering, at, zero.at(zero.view.broadcast_to(whole.view.shape)), whole)
    down, across = (
        max((size - 1) * stride + reach - total, 0) // 2
        for size, stride, reach, total in (
            (h, op.stride_height, op.filter_height, height),
            (w, op.stride_width, op.filter_width, width),
        )
    )
    slots = {"top": down, "left": across, **_window(op, (h, w, c), (height, width))}
    lowering.run(at, MaxUnpool(), n, {"x": x, "places": places}, {"out": out}, slots)


def _window(op: IndexedPool, picture: tuple[int, int, int], out: tuple[int, int]) -> dict[str, Slot]:
    """The slots for the sizes of images and windows, and for the strides."""
    named = ("filter_height", "filter_width", "stride_height", "stride_width")
    sizes = zip(("height", "width", "channels", "out_height", "out_width"), (*picture, *out), strict=True)
    return dict(sizes) | {name: getattr(op, name) for name in named}
