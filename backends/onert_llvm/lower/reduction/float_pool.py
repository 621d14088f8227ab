"""Pooling in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.shape import static
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Expr
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.reduction.pool import Gathering, PoolF32, WindowPoolF32
from onert_llvm.kernels.reduction.reduce import Fold, ReduceColumns
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane, counts, pooled_plane
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule.cost_model import strip

MOST_TAPS = 16
"""Elements of a window whose taps are written out."""

_GATHERINGS: Mapping[Pooling, Gathering] = {
    Pooling.AVERAGE: Gathering.MEAN,
    Pooling.MAX: Gathering.GREATEST,
    Pooling.L2: Gathering.ROOT_MEAN_SQUARE,
}


def why_not(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not pool so; None if it does."""
    if types.input(0).dtype is not DType.FLOAT32:
        return "only float32 is native"
    if 0 in (*types.input(0).shape, *types.output.shape):
        return "a tensor has no elements"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    _, height, width, _ = static(types.input(0).shape)
    if op.least_counted(height, width) < 1:
        return "a window lies outside of the picture"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Pooling: of the whole picture a reduction, with a small window taps written out, else loops over taps."""
    at, operation, op = lowering.single(operations, Pool2D)
    (source,), (result,) = operation.used, operation.outputs
    plane = pooled_plane(op, lowering.shape(source), lowering.shape(result))
    (h, w), c = plane.size, plane.channels
    tree = activated(ACC, op.activation)
    assert tree is not None
    whole = plane.out == (1, 1) and op.counted_first(h, w) == (h, w) and not (op.counts_margins and plane.padded)
    if whole and tree == ACC and op.kind is not Pooling.L2:
        _of_all(lowering, at, op.kind)
        return
    slots: dict[str, Slot] = {
        **plane.slots,
        "input": lowering.operand(source),
        "zero": 0,
        "c": lowering.operand(result),
        "channels": c,
    }
    algorithm: Algorithm = WindowPoolF32(_GATHERINGS[op.kind], tree, op.counts_margins)
    if plane.taps <= MOST_TAPS and op.kind is not Pooling.L2:
        algorithm, more = _taps(lowering, op, plane, tree)
        slots |= more
    tiles, flops = plane.images * plane.out[0], plane.rows * c * plane.taps
    lowering.emit(at, algorithm, slots, tiles, (source,), (result,), flops)


def _taps(lowering: Lowering, op: Pool2D, plane: Plane, tree: Expr) -> tuple[Algorithm, dict[str, Slot]]:
    """A kernel with the window's taps written out, and the slots it has beside the plane's."""
    mean = op.kind is Pooling.AVERAGE
    cut = strip(plane.window, plane.stride[1], 1, plane.out[1], plane.channels, lowering.isa)
    cut = evolve(cut, near=plane.near)
    slots: dict[str, Slot] = {
        "zero": lowering.constant(np.full(plane.channels, 0.0 if mean else -np.inf, np.float32)),
        "ldc": plane.channels,
    }
    if mean:
        slots["scale"] = lowering.computed(partial(_scales, op), *plane.size)
    return PoolF32(cut, mean, tree), slots


def _scales(op: Pool2D, height: int, width: int) -> Array:
    """What the sum of each window is multiplied by."""
    return (1.0 / counts(op, (1, height, width, 1))).astype(np.float32).reshape(-1)


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
