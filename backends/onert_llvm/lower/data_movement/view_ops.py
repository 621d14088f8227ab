"""Operations whose result is a view of their operand, with the layout of that view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from onert.ir import CallTypes, Op
from onert.ir.ops.data_movement.layout import DepthToSpace, Reverse, SpaceToDepth, Transpose
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice, StridedSlice, Tile
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor
from onert.ir.shape import normalize_axes, static
from onert_llvm.lower.strided_view import StridedView

View = Callable[[Any, CallTypes, StridedView], StridedView | None]


def _integers(types: CallTypes, position: int) -> tuple[int, ...]:
    value = types.input(position).value
    assert value is not None
    return tuple(value.reshape(-1).tolist())  # symbolic numbers stay symbolic


def _slice(op: Slice, types: CallTypes, x: StridedView) -> StridedView:
    shape = static(types.output.shape)
    parts = tuple(slice(b, b + n) for b, n in zip(_integers(types, 1), shape, strict=True))
    return x[parts] if x.ndim else x  # slicing a scalar would make a copy


def _strided_slice(op: StridedSlice, types: CallTypes, x: StridedView) -> StridedView:
    seen: Any = op.view(cast(Any, x), *(_integers(types, i) for i in (1, 2, 3)))
    return cast(StridedView, seen)


def _space_to_depth(op: SpaceToDepth, types: CallTypes, x: StridedView) -> StridedView:
    n, h, w, c = x.shape
    b = op.block_size
    return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)


def _depth_to_space(op: DepthToSpace, types: CallTypes, x: StridedView) -> StridedView:
    n, h, w, c = x.shape
    b = op.block_size
    return x.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5)


def _tile(op: Tile, types: CallTypes, x: StridedView) -> StridedView:
    times = _integers(types, 1)
    both = [d for pair in zip(times, x.shape, strict=True) for d in pair]
    each = x.reshape([d for size in x.shape for d in (1, size)])
    return each.broadcast_to(both)


def _nearest(op: ResizeNearestNeighbor, types: CallTypes, x: StridedView) -> StridedView | None:
    """A view if the new size is a multiple of the old one and pixels are repeated evenly; else None."""
    n, h, w, c = x.shape
    _, height, width, _ = static(types.output.shape)
    down, across = op.repeats(height, h), op.repeats(width, w)
    if down is None or across is None:
        return None
    return x.reshape(n, h, 1, w, 1, c).broadcast_to((n, h, down, w, across, c))


VIEWS: Mapping[type[Op], tuple[View, tuple[int, ...]]] = {
    Transpose: (lambda op, types, x: x.transpose(_integers(types, 1)), (1,)),
    Slice: (_slice, (1, 2)),
    StridedSlice: (_strided_slice, (1, 2, 3)),
    Reverse: (lambda op, types, x: x.flip(normalize_axes(_integers(types, 1), x.ndim)) if x.ndim else x, (1,)),
    SpaceToDepth: (_space_to_depth, ()),
    DepthToSpace: (_depth_to_space, ()),
    Tile: (_tile, (1,)),
    BroadcastTo: (lambda op, types, x: x.broadcast_to(static(types.output.shape)), (1,)),
    ResizeNearestNeighbor: (_nearest, (1,)),
}
"""For each kind, a function that returns the operand's view with the result's elements in order (axes may be split), or
None if there is none; and the operands that must be constant.
"""
