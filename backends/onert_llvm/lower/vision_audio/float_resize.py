"""Resizing of float tensors with interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import hint, is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.irbuilder import F32, Type
from onert_llvm.kernels.vision_audio import resize
from onert_llvm.kernels.vision_audio.pixels import Pixels, is_few
from onert_llvm.kernels.vision_audio.resize_pixels import ResizePixels
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.data_movement import movement
from onert_llvm.target.isa import Isa

_PIECE = 1 << 10
"""The number of elements in a work tile."""

_PICKED = 16
"""The lanes of registers for which one instruction selects from two registers (AVX-512)."""


def why_not(op: ResizeBilinear, types: CallTypes) -> str | None:
    """Why this backend does not run the resize; None if it does."""
    if types.output.dtype is not DType.FLOAT32:
        return "only float32 is native"
    if types.input(1).value is None or 0 in types.input(0).shape:
        return "the new size is not known before the run, or the tensor is empty"
    return None


def why_not_interpolated(op: Interpolate, types: CallTypes) -> str | None:
    """Why this backend does not run the interpolation; None if it does."""
    if types.output.dtype is not DType.FLOAT32:
        return "only float32 is native"
    if op.interpolation is Interpolation.NEAREST or op.antialias or op.coordinates is Coordinates.CROP:
        return "nearest-neighbour, antialiased and cropping forms are not interpolated natively"
    if any(t is not None and t.value is None for t in types.inputs[1:]) or 0 in types.output.shape:
        return "the new size is not known before the run, or the tensor is empty"
    return None


_Table = Callable[[ResizeBilinear | Interpolate, int, int, int], Array]
"""A table for an axis: from the operation, the axis's index among its axes, and its sizes before and after."""


@frozen
class Axis(Value):
    """A resized axis of a tensor: its number, its index among the operation's axes, and its sizes."""

    op: ResizeBilinear | Interpolate
    axis: int
    at: int
    before: int
    after: int

    def table(self, lowering: Lowering, function: _Table) -> Slot:
        return lowering.computed(partial(function, self.op, self.at), self.before, self.after)


@lru_cache(maxsize=4)
def _taps(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> tuple[Array, Array]:
    """`op.taps`, of which several tables of an axis are made one after another."""
    return op.taps(at, before, after)


@of_lengths
def _places(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> Array:
    return _taps(op, at, before, after)[0].astype(np.int32)


@of_lengths
def _shares(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> Array:
    return _taps(op, at, before, after)[1].astype(np.float32)


@of_lengths
def _runs(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> Array:
    """The number of runs, then the runs: adjacent outputs between the same two inputs, [after + 1, 4]."""
    low, high = _taps(op, at, before, after)[0].T
    changes = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
    first = np.concatenate([[0], changes])
    found = np.zeros((after + 1, 4), np.int32)
    found[0, 0] = len(first)
    found[1 : len(first) + 1] = np.stack([low[first], high[first], first, np.append(changes, after)], axis=1)
    return found


@of_lengths
def _sides(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> Array:
    return _places(op, at, before, after).T.copy()


@of_lengths
def _shares_of_sides(op: ResizeBilinear | Interpolate, at: int, before: int, after: int) -> Array:
    return _shares(op, at, before, after).T.copy()


@of_lengths
def _offsets(op: ResizeBilinear | Interpolate, at: int, channels: int, before: int, after: int) -> Array:
    return _sides(op, at, before, after) * np.int32(channels)


@of_lengths
def _shares_of_lanes(op: ResizeBilinear | Interpolate, at: int, span: int, before: int, after: int) -> Array:
    return _shares_of_sides(op, at, before, after).repeat(span, axis=1)


def in_few_channels(lowering: Lowering, channels: int, outputs: int) -> bool:
    """Whether rows of `outputs` are resized several pixels at a time."""
    return not lowering.isa.small and not is_symbolic(channels) and is_few(channels, outputs)


def in_pixels(lowering: Lowering, at: int, axes: tuple[Axis, Axis], slots: Mapping[str, Slot], element: Type) -> None:
    """Resize two adjacent axes of an operand with few channels; `slots` has both ends, sizes and tables of rows."""
    operation, (first, last) = lowering.operation(at), axes
    before, after = (lowering.shape(i) for i in (operation.used[0], operation.outputs[0]))
    pixels, sizes = Pixels(math.prod(before[last.axis + 1 :])), (last.before, last.after)
    images = math.prod(before[: first.axis])
    own: dict[str, Slot] = {
        "rows": images * first.before,
        "x_offsets": lowering.computed(partial(_offsets, last.op, last.at, pixels.channels), *sizes),
        "x_shares": lowering.computed(partial(_shares_of_lanes, last.op, last.at, pixels.span), *sizes),
    }
    kernel, flops = ResizePixels(pixels, element), 7 * math.prod(after)
    lowering.emit(at, kernel, {**slots, **own}, images * first.after, operation.used[:1], operation.outputs, flops)


def row_tables(lowering: Lowering, axis: Axis) -> dict[str, Slot]:
    """The inputs and weights of the rows."""
    return {"y_places": axis.table(lowering, _places), "y_shares": axis.table(lowering, _shares)}


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Bilinear resizing with tables of rows, and of columns in runs."""
    at, operation, op = lowering.single(operations, ResizeBilinear)
    before, after = lowering.shape(operation.used[0]), lowering.shape(operation.outputs[0])
    _resized(lowering, at, [Axis(op, axis, 0, before[axis], after[axis]) for axis in (1, 2)], 2)


def lower_interpolated(lowering: Lowering, operations: Sequence[int]) -> None:
    """Interpolation with a table for each axis that changes."""
    at, operation, op = lowering.single(operations, Interpolate)
    factors = (*lowering.subgraph.types(operation).inputs, None, None)[2]
    op = op.scaled(factors)
    before, after = lowering.shape(operation.used[0]), lowering.shape(operation.outputs[0])
    axes = [Axis(op, axis, i, before[axis], after[axis]) for i, axis in enumerate(op.axes)]
    axes = [a for a in axes if not op.stays(a.at, a.before, a.after)]
    if axes:
        _resized(lowering, at, axes, 2 if op.interpolation is Interpolation.LINEAR else 4)
    else:
        movement.copy(lowering, at)


def _near(axis: Axis, isa: Isa) -> bool:
    """Whether each AVX-512 register of outputs interpolates between columns that fit in two registers."""
    lanes = isa.f32
    if not (isa.rounds and lanes == _PICKED) or axis.after < lanes:
        return False
    if is_symbolic(axis.before) or is_symbolic(axis.after):
        return _grows(axis)
    places = _places(axis.op, axis.at, axis.before, axis.after)
    starts = np.minimum(np.arange(0, axis.after, lanes), axis.after - lanes)
    reach = places[starts[:, None] + np.arange(lanes)] - places[starts, :1, None]
    return bool((reach >= 0).all() and (reach < 2 * lanes).all())


def _grows(axis: Axis) -> bool:
    """Whether adjacent outputs are at most one input apart, for all lengths for which this holds."""
    scales = axis.op.scales if isinstance(axis.op, Interpolate) else None
    return axis.after >= axis.before and (scales is None or scales[axis.at] >= 1)


def _resized(lowering: Lowering, at: int, axes: Sequence[Axis], taps: int) -> None:
    """Resize two adjacent axes together if two taps each suffice; otherwise one axis after another, first to last."""
    operation = lowering.operation(at)
    source, result = operation.used[0], operation.outputs[0]
    shape, flops = list(lowering.shape(source)), 7 * math.prod(lowering.shape(result))
    first, last = axes[0], axes[-1]
    channels = math.prod(shape[last.axis + 1 :])
    if taps == 2 and len(axes) == 2 and last.axis == first.axis + 1:
        slots: dict[str, Slot] = {"in": lowering.operand(source), "out": lowering.operand(result)}
        slots |= {"in_h": first.before, "in_w": last.before, "out_h": first.after, "out_w": last.after}
        slots |= row_tables(lowering, first)
        count = math.prod(shape[: first.axis]) * first.after
        if not is_symbolic(channels) and channels == 1:
            room = resize.planes_room(last.before, lowering.isa.f32)
            (own,) = lowering.scratch(room * lowering.callers)
            slots |= {"x_places": last.table(lowering, _sides), "x_shares": last.table(lowering, _shares_of_sides)}
            slots |= {"rooms": own.pointer, "room": room}
            planes = resize.ResizePlanes(_near(last, lowering.isa))
            lowering.emit(at, planes, slots, count, (source,), (result,), flops, accesses=(own,))
            return
        if in_few_channels(lowering, channels, last.after):
            in_pixels(lowering, at, (first, last), slots, F32)
            return
        slots |= {"runs": last.table(lowering, _runs), "x_shares": last.table(lowering, _shares)}
        lowering.emit(at, resize.ResizeBilinear(), slots | {"channels": channels}, count, (source,), (result,), flops)
        return
    sizes = []
    for a in axes[:-1]:
        shape[a.axis] = a.after
        sizes.append(math.prod(shape) * 4)
    rooms = lowering.scratch(*sizes)
    shape = list(lowering.shape(source))
    read: Pointer = lowering.operand(source)
    seen: tuple[Access, ...] = ()
    for i, a in enumerate(axes):
        is_last = i == len(axes) - 1
        written = lowering.operand(result) if is_last else rooms[i].pointer
        outer, width = math.prod(shape[: a.axis]), math.prod(shape[a.axis + 1 :])
        piece = max(1, _PIECE // hint(width))
        pieces = -(-a.after // piece)
        slots = {"in": read, "out": written, "inputs": a.before, "outputs": a.after, "width": width}
        slots |= {"piece": piece, "pieces": pieces}
        slots |= {"places": a.table(lowering, _places), "shares": a.table(lowering, _shares)}
        lowering.emit(
            at,
            resize.Blend(taps, width >= lowering.isa.f32),
            slots,
            outer * pieces,
            () if i else (source,),
            (result,) if is_last else (),
            flops if is_last else 0,
            accesses=(*seen, *(() if is_last else (rooms[i],))),
        )
        if not is_last:
            shape[a.axis] = a.after
            read, seen = written, (evolve(rooms[i], write=False),)
