"""Pooling in float32, and of 8-bit and 16-bit integers whose quantisation does not change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import is_symbolic, largest
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Fn
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.reduction.elements import Elements, Plain
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.plane_pool import PlanePool
from onert_llvm.kernels.reduction.pool import Pool, WindowPool, found_apart
from onert_llvm.kernels.reduction.quantized_elements import Quantized
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane, counts, pooled_plane
from onert_llvm.lower.dtype_sets import KINDS, QUANTIZED
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.schedule.depthwise import pool_strip, strip
from onert_llvm.target.isa import Isa

from .block import Block, reduction

MOST_TAPS = 16
"""The most elements of a window whose taps are unrolled."""

_APART = 5
"""From this many rows and columns on, maxima and float sums are computed separably: rows first, then columns."""

_FEW_ACROSS = 2
"""The most outputs of a float strip in which NaNs are detected separately."""

MOST_STRIDE = 2
"""The most columns between neighbouring outputs of a plane: with more, most of what is read belongs to no output."""

_MOST_COUNTED = 1 << 15
"""The most elements of an average: sums of bytes and half the count stay below 2**24, those of int16 below 2**31."""


def why_not(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not run the pooling; None if it does."""
    x, out = types.input(0), types.output
    if 0 in x.shape:
        return "a tensor has no elements"
    if x.dtype is DType.FLOAT32:
        if activated(ACC, op.activation) is None:
            return f"activation {op.activation.name} has no native form"
    elif x.dtype not in QUANTIZED or op.kind is Pooling.L2:
        return "only float32, and average and max pooling of bytes and int16, are native"
    elif op.activation is not Activation.NONE and not _clamped(op.activation, out):
        return "its quantisation or activation has no integer form"
    elif (area := op.filter_height * op.filter_width) > _MOST_COUNTED:
        return f"its window has {area} elements, expected at most {_MOST_COUNTED}"
    _, height, width, _ = static(x.shape)
    return "a window is entirely padding" if op.least_counted(height, width) < 1 else None


def _clamped(activation: Activation, out: TensorType) -> bool:
    """Whether an activation is a clamp of stored integers."""
    return out.quantization is not None and out.quantization.per_tensor and activation.value.function is None


def _bounds(op: Pool2D, out: TensorType) -> tuple[int, int]:
    """The bounds of stored results."""
    return out.dtype.limits if op.activation is Activation.NONE else op.activation.bounds(out)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Pooling: a reduction if a window covers the whole image, unrolled for small windows, else loops over taps."""
    at, operation, op = lowering.single(operations, Pool2D)
    (source,), (result,) = operation.used, operation.outputs
    plane = pooled_plane(op, lowering.shape(source), lowering.shape(result))
    (h, w), c = plane.size, plane.channels
    elements = _elements(op, lowering.type(result))
    low, high = _bounds(op, lowering.type(result)) if isinstance(elements, Quantized) else (0, 0)
    slots: dict[str, Slot] = {"low": low, "high": high} if elements.slots else {}
    whole = plane.out == (1, 1) and op.counted_first(h, w) == (h, w) and not (op.counts_margins and plane.padded)
    if whole:
        if elements.mean:
            slots["divisor"] = 1.0 / (h * w) if isinstance(elements, Plain) else h * w
        reduction(lowering, at, Block(plane.images, h * w, c), elements, slots)
        return
    here, there = lowering.operand(source), lowering.operand(result)
    summed = op.kind is Pooling.AVERAGE and isinstance(elements, Plain) and max(plane.window) <= MOST_TAPS
    if not (op.kind is Pooling.MAX or summed) or min(plane.window) < _APART or _is_flat(plane, elements, lowering.isa):
        _pool(lowering, at, op, plane, elements, {**slots, "input": here, "c": there}, ((source,), (result,)))
        return
    rows = evolve(plane, out=(h, plane.out[1]), window=(1, plane.window[1]), stride=(1, plane.stride[1]))
    rows = evolve(rows, pads=(0, plane.pads[1]))
    columns = evolve(plane, size=rows.out, window=(plane.window[0], 1), stride=(plane.stride[0], 1))
    columns = evolve(columns, pads=(plane.pads[0], 0))
    (room,) = lowering.scratch(rows.rows * c * lowering.type(source).dtype.itemsize)
    plain = evolve(elements, tree=ACC, mean=False) if isinstance(elements, Plain) else elements
    middle = room.pointer
    _pool(lowering, at, op, rows, plain, {**slots, "input": here, "c": middle}, ((source,), ()), (room,))
    left = (evolve(room, write=False),)
    _pool(lowering, at, op, columns, elements, {**slots, "input": middle, "c": there}, ((), (result,)), left)


def _pool(
    lowering: Lowering,
    at: int,
    op: Pool2D,
    plane: Plane,
    elements: Elements,
    slots: dict[str, Slot],
    touched: tuple[Sequence[int], Sequence[int]],
    accesses: Sequence[Access] = (),
) -> None:
    """Emit pooling from slot `input` to slot `c`; `touched` are the operands that it reads and writes."""
    dtype, c = lowering.type(lowering.operation(at).outputs[0]).dtype, plane.channels
    slots = {**slots, **plane.slots, "channels": c, "zero": 0}
    algorithm: Pool | WindowPool | PlanePool = WindowPool(elements, op.counts_margins)
    flat = _is_flat(plane, elements, lowering.isa)
    if flat or (plane.taps <= MOST_TAPS and op.kind is not Pooling.L2):
        window, across, isa = plane.window, (plane.stride[1], plane.out[1]), lowering.isa
        cut = strip(window, across[0], 1, across[1], c, isa, _FEW_ACROSS)
        if not (elements.tracks_nan and found_apart(cut, isa.registers)):
            cut = pool_strip(window, *across, c * dtype.itemsize, c, isa)
        algorithm = Pool(elements, evolve(cut, near=plane.near))
        if flat:
            algorithm = PlanePool(elements, window, plane.stride[1], plane.pads[1])
        around = 0 if elements.mean else elements.fold.start(elements.kind)
        slots |= {"zero": lowering.constant(np.full(largest(c), around, dtype.numpy)), "ldc": c}
        if elements.mean:
            sizes = lowering.shape(lowering.operation(at).used[0])[1:3]
            slots["divisors"] = lowering.computed(partial(_divisors, op, isinstance(elements, Plain)), *sizes)
    flops = plane.rows * c * plane.taps
    used = {name: slots[name] for name in algorithm.slots}
    lowering.emit(at, algorithm, used, plane.images * plane.out[0], *touched, flops, accesses)


def _is_flat(plane: Plane, elements: Elements, isa: Isa) -> bool:
    """Whether pictures have one channel, and windows only reach columns of neighbouring registers."""
    if not isinstance(elements, Plain) or elements.squared or max(plane.window) > MOST_TAPS:
        return False
    before = plane.pads[1]
    if is_symbolic(plane.channels) or is_symbolic(before) or plane.channels != 1 or plane.stride[1] > MOST_STRIDE:
        return False
    return 0 <= before <= isa.f32 and plane.window[1] - before <= isa.f32


def _elements(op: Pool2D, out: TensorType) -> Elements:
    """How the pixels of a window are combined."""
    fold, kind, mean = Fold.MAX if op.kind is Pooling.MAX else Fold.SUM, KINDS[out.dtype], op.kind is not Pooling.MAX
    if out.dtype is not DType.FLOAT32:
        return Quantized(fold, kind, mean, clamped=_bounds(op, out) != out.dtype.limits)
    squared = op.kind is Pooling.L2
    root: Expr = Apply(Fn.SQRT, (ACC,)) if squared else ACC
    tree = activated(root, op.activation)
    assert tree is not None
    return Plain(fold, kind, mean, squared, tree)


@of_lengths
def _divisors(op: Pool2D, reciprocal: bool, height: int, width: int) -> Array:
    """The divisor of each window's sum; its reciprocal for floats."""
    found = counts(op, (1, height, width, 1)).reshape(-1)
    return (1.0 / found).astype(np.float32) if reciprocal else found.astype(np.int32)
