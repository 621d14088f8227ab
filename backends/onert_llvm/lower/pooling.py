"""Pooling in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.pool import Pool2D, Pooling
from onert.ir.ops.window import Window
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.epilogue import ACC
from onert_llvm.kernels.expression import Expr
from onert_llvm.kernels.pool import Gathering, PoolF32, WindowPoolF32
from onert_llvm.kernels.reduce import Fold, ReduceColumns
from onert_llvm.schedule import strip

from .builder import Lowering
from .command import Slot
from .expressions import activated
from .plane import Plane

MOST_TAPS = 16
"""Elements of a window whose taps are written out."""

_GATHERINGS: Mapping[Pooling, Gathering] = {
    Pooling.AVERAGE: Gathering.MEAN,
    Pooling.MAX: Gathering.GREATEST,
    Pooling.L2: Gathering.ROOT_MEAN_SQUARE,
}


def why_not(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not pool so; None where it does."""
    if types.input(0).dtype is not DType.FLOAT32:
        return "only float32 is native"
    if 0 in (*types.input(0).shape, *types.output.shape):
        return "a tensor has no elements"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    rows, columns = _windows(op)
    _, h, w, _ = (d or 0 for d in types.input(0).shape)
    if min(_counts(rows, h).min(), _counts(columns, w).min()) < 1:
        return "a window lies outside of the picture"
    return None


def _windows(op: Pool2D) -> tuple[Window, Window]:
    return (
        Window(op.filter_height, op.stride_height, 1, op.padding),
        Window(op.filter_width, op.stride_width, 1, op.padding),
    )


def _counts(window: Window, inputs: int) -> Array:
    """How many inputs each window along an axis has."""
    starts = np.arange(window.outputs(inputs), dtype=np.int64) * window.stride - window.before(inputs)
    return np.minimum(starts + window.size, inputs) - np.maximum(starts, 0)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Pooling: of the whole picture a reduction, with a small window taps written out, else loops over taps."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Pool2D)
    (source,), (result,) = operation.used, operation.outputs
    n, h, w, c = lowering.shape(source)
    _, oh, ow, _ = lowering.shape(result)
    rows, columns = _windows(op)
    tree = activated(ACC, op.activation)
    assert tree is not None
    counts = _counts(rows, h)[:, None] * _counts(columns, w)
    whole = oh == ow == 1 and int(counts[0, 0]) == h * w
    if whole and tree == ACC and op.kind is not Pooling.L2:
        _of_all(lowering, at, op.kind)
        return
    window = (op.filter_height, op.filter_width)
    strides = (op.stride_height, op.stride_width)
    pads = (rows.before(h), columns.before(w))
    plane = Plane(n, (h, w), c, (oh, ow), window, strides, (1, 1), pads)
    slots: dict[str, Slot] = {
        **plane.slots,
        "input": lowering.operand(source),
        "zero": 0,
        "c": lowering.operand(result),
        "channels": c,
    }
    algorithm: Algorithm = WindowPoolF32(_GATHERINGS[op.kind], tree)
    if window[0] * window[1] <= MOST_TAPS and op.kind is not Pooling.L2:
        algorithm, more = _taps(lowering, op, plane, tree, counts)
        slots |= more
    lowering.emit(at, algorithm, slots, n * oh, (source,), (result,), plane.rows * c * window[0] * window[1])


def _taps(lowering: Lowering, op: Pool2D, plane: Plane, tree: Expr, counts: Array) -> tuple[Algorithm, dict[str, Slot]]:
    """A kernel with the window's taps written out, and the slots it has beside the plane's."""
    mean = op.kind is Pooling.AVERAGE
    cut = strip(plane.window, plane.stride[1], 1, plane.out[1], plane.channels, lowering.isa)
    cut = evolve(cut, near=plane.near)
    slots: dict[str, Slot] = {
        "zero": lowering.constant(np.full(plane.channels, 0.0 if mean else -np.inf, np.float32)),
        "ldc": plane.channels,
    }
    if mean:
        slots["scale"] = lowering.constant((1.0 / counts).astype(np.float32).reshape(-1))
    return PoolF32(cut, mean, tree), slots


def _of_all(lowering: Lowering, at: int, kind: Pooling) -> None:
    """One output for each channel: a reduction over the pixels."""
    operation = lowering.operation(at)
    (source,), (result,) = operation.used, operation.outputs
    n, h, w, c = lowering.shape(source)
    vectors = min(4, -(-c // lowering.isa.f32))
    chunks = -(-c // (vectors * lowering.isa.f32))
    slots: dict[str, Slot] = {
        "in": lowering.operand(source),
        "out": lowering.operand(result),
        "rows": h * w,
        "width": c,
        "chunks": chunks,
        "scale": 1.0 / (h * w) if kind is Pooling.AVERAGE else 1.0,
    }
    fold = Fold.SUM if kind is Pooling.AVERAGE else Fold.MAX
    lowering.emit(at, ReduceColumns(fold, vectors), slots, n * chunks, (source,), (result,), n * h * w * c)
