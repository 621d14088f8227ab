"""Copies of boxes of elements between two strided layouts, as commands.

Each side is a strided view of memory; both views of a box have the same shape.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from attrs import evolve, frozen

from onert.ir import BackendError
from onert.ir.symbolic.trace import hint, is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Area, Pointer, Slot, most_pieces
from onert_llvm.kernels.data_movement.strided_copy import ELEMENTS, Core, Move
from onert_llvm.schedule.cost_model import guard
from onert_llvm.target.isa import Isa
from onert_llvm.target.machines import machine

from .command_builder import Lowering
from .strided_view import StridedView

_LEAST_SQUARE = 4
"""The least size of both axes for which transposing in registers beats moving single elements."""

_MOST_SQUARE = 16
"""The largest square that fits in registers, in elements along a side."""

_MOST_UNIT = 8
"""The most bytes of an element that registers hold several of."""

_MOST_WAYS = 8
"""The most rows that are interleaved in registers."""

_FEW_ROWS = 64
"""The most rows for which writing a line of each in turn may be faster than writing some of them in sequence."""

_LINE, _SETS = 64, 64
"""The bytes of a cache line, and the sets of a first-level cache, which is indexed within a page."""

_PIECE = 1 << 14
"""The most bytes that a work tile moves, if a box can be divided like that."""


@frozen
class Side(Value):
    """A view of a tensor's memory, which has `nbytes` bytes, and a pointer to that memory."""

    pointer: Pointer
    view: StridedView
    nbytes: int

    def at(self, view: StridedView) -> Side:
        """Another view of the same memory."""
        return evolve(self, view=view)

    @property
    def offset(self) -> int:
        """The offset of the view's first element in the tensor, in bytes."""
        return self.view.offset

    @property
    def span(self) -> tuple[int, int]:
        """The range of bytes that the view spans in the tensor: first, and one past the last."""
        reaches = [stride * (size - 1) for size, stride in zip(self.view.shape, self.view.strides, strict=True)]
        low, high = (sum(r for r in reaches if (r < 0) is negative) for negative in (True, False))
        return self.offset + low, self.offset + high + self.view.itemsize


def side(pointer: Pointer, shape: Sequence[int], itemsize: int) -> Side:
    """A whole dense tensor at a pointer."""
    view = StridedView.dense(shape, itemsize)
    return Side(pointer, view, itemsize * math.prod(shape))


def operand(lowering: Lowering, index: int) -> Side:
    """A tensor of the model."""
    return side(lowering.operand(index), lowering.shape(index), lowering.type(index).dtype.itemsize)


@frozen
class Axis(Value):
    """An axis of a box: its size, and its strides in bytes on both sides."""

    size: int
    source: int
    target: int

    def follows(self, inner: Axis) -> bool:
        """Whether this axis merely continues the inner one."""
        return self.source == inner.source * inner.size and self.target == inner.target * inner.size


def axes_of(source: StridedView, target: StridedView) -> list[Axis]:
    """The axes of a box, outermost first, without those of size 1; axes that continue one another are merged."""
    found: list[Axis] = []
    for size, s, t in zip(target.shape, source.strides, target.strides, strict=True):
        if size == 1:
            continue
        axis = Axis(size, s, t)
        if found and found[-1].follows(axis):
            axis = Axis(found.pop().size * size, s, t)
        found.append(axis)
    return found


def move(lowering: Lowering, at: int, source: Side, target: Side, reads: Sequence[int] = ()) -> None:
    """Copy a box; `reads` has the source's operand if it is one. An empty box emits no command."""
    assert source.view.shape == target.view.shape
    if 0 in target.view.shape:
        return
    for each in (source, target):
        first, last = each.span
        if not 0 <= first < last <= each.nbytes:
            raise BackendError(f"a copy would touch bytes {first} to {last} of {each.nbytes}")
    itemsize = target.view.itemsize
    axes = axes_of(source.view, target.view)
    _emit(lowering, _Copy(at, (source, target), (source.offset, target.offset), axes, itemsize, reads))


@frozen(eq=False)
class _Copy:
    """A copy of a box for an operation: elements of `unit` bytes, from and to offsets in bytes."""

    at: int
    sides: tuple[Side, Side]
    offsets: tuple[int, int]
    axes: list[Axis]
    unit: int
    reads: Sequence[int]


def _emit(lowering: Lowering, copy: _Copy) -> None:
    sides, axes, unit = copy.sides, copy.axes, copy.unit
    if axes and axes[-1].source == axes[-1].target == unit:
        run = axes[-1].size * unit
        whole_runs = is_symbolic(run) and lowering.threads == 1  # only threads need pieces, and their number would vary
        if not whole_runs and hint(run) > _PIECE and run >= _PIECE:
            _cut(lowering, copy)
            return
        whole = run in ELEMENTS and all(a.source % run == 0 and a.target % run == 0 for a in axes[:-1])
        if whole and len(axes) > 1:
            unit, axes = run, axes[:-1]  # a short run becomes one element
            copy = evolve(copy, unit=unit, axes=axes)
    core, axes = _arranged(axes, unit, lowering.isa)
    *outer, rows, width = axes
    square = ways = 0
    if core is Core.ACROSS:
        most = min(lowering.isa.lanes(8 * unit), _MOST_SQUARE)
        square = _square(most, rows.size, width.size)
        if lowering.threads > 1 and not any(is_symbolic(axis.size) for axis in axes):
            long, other = sorted((rows, width), key=lambda axis: -axis.size)
            own = math.prod([a.size for a in outer]) * long.size // most_pieces(lowering.threads)
            count = max(_PIECE // (unit * other.size), own)
            if long.size >= 2 * count:  # few pieces: more would slow down a single thread
                _cut_long(lowering, copy, outer, long, other, _even(long.size, count, square))
                return
    elif core in (Core.WEAVE, Core.UNWEAVE):
        square, ways = _square(lowering.isa.lanes(8 * unit), rows.size), width.size
        count = _PIECE // (unit * ways) // square * square
        if not is_symbolic(rows.size) and rows.size >= 2 * count:
            _cut_long(lowering, copy, outer, rows, width, count)
            return
    elif hint(rows.size * width.size) * unit > _PIECE:
        outer, rows = [*outer, rows], Axis(1, 0, 0)
    slots: dict[str, Slot] = {}
    for name, pointer_side, offset in zip(("source", "target"), sides, copy.offsets, strict=True):
        slots[name] = evolve(pointer_side.pointer, offset=pointer_side.pointer.offset + offset)
    for name, axis in (("rows", rows), ("width", width)):
        slots |= {name: axis.size, f"{name}_source": axis.source, f"{name}_target": axis.target}
    for i, axis in enumerate(outer):
        slots |= {f"size{i}": axis.size, f"source{i}": axis.source, f"target{i}": axis.target}
    tiles = math.prod([a.size for a in outer])
    touched = [Access(sides[1].pointer, sides[1].span[1], True)]
    if sides[0].pointer.area is Area.SCRATCH:
        touched.append(Access(sides[0].pointer, sides[0].span[1]))
    by_width = False
    if core is Core.ACROSS:
        square, by_width = _order(rows, width, unit, square, lowering.isa)
    lowering.emit(
        copy.at, Move(core, unit, len(outer), square, ways, by_width), slots, tiles, copy.reads, (), accesses=touched
    )


def _order(rows: Axis, width: Axis, unit: int, square: int, isa: Isa) -> tuple[int, bool]:
    """The side of the squares to transpose, and whether one follows another along the width.

    The lines of all rows of a target stay in the first-level cache until they are complete, if they do not crowd one
    set of it. Otherwise only those of a square's rows do, and if it is too large for that, one half as large. If only
    the lines of a source are crowded, each is read to its end at once.
    """
    if _crowds(rows.target, hint(rows.size), isa):
        while square > _LEAST_SQUARE and _crowds(rows.target, square, isa) and not _crowds(width.source, square, isa):
            square //= 2
        return square, True
    along = _is_by_width(hint(rows.size), hint(width.size) * unit, isa)
    return square, along and not _crowds(width.source, hint(width.size), isa)


def _crowds(stride: int, count: int, isa: Isa) -> bool:
    """Whether so many lines, or the first of them, do not fit in a set of the first-level cache."""
    places = Counter(at * hint(stride) // _LINE % _SETS for at in range(min(count, _SETS)))
    return max(places.values()) > machine(isa).first_cache // (_LINE * _SETS)


def _is_by_width(rows: int, width: int, isa: Isa) -> bool:
    """Whether to transpose `rows` of `width` bytes along the width: not the few rows of a box that stays in the
    second-level cache, where reading in sequence is faster."""
    return rows > _FEW_ROWS or 2 * rows * width > 2 * machine(isa).second_cache


def _cut(lowering: Lowering, copy: _Copy) -> None:
    """Split a box whose runs are too long for one work tile: whole pieces, then the rest of each run."""
    unit = copy.unit
    count = _PIECE // unit
    *outer, last = copy.axes
    pieces, rest = divmod(last.size, count)
    step = count * unit
    _emit(lowering, evolve(copy, axes=[*outer, Axis(pieces, step, step), Axis(count, unit, unit)]))
    if rest:
        after = (copy.offsets[0] + pieces * step, copy.offsets[1] + pieces * step)
        _emit(lowering, evolve(copy, offsets=after, axes=[*outer, Axis(rest, unit, unit)]))


def _cut_long(lowering: Lowering, copy: _Copy, outer: Sequence[Axis], long: Axis, other: Axis, count: int) -> None:
    """Split the long one of two axes for work tiles: whole pieces of `count`, then the rest."""
    whole = long.size - long.size % count
    piece = Axis(whole // count, count * long.source, count * long.target)
    _emit(lowering, evolve(copy, axes=[*outer, piece, *_by_target(Axis(count, long.source, long.target), other)]))
    if whole < long.size:
        after = copy.offsets[0] + whole * long.source, copy.offsets[1] + whole * long.target
        rest = Axis(long.size - whole, long.source, long.target)
        _emit(lowering, evolve(copy, offsets=after, axes=[*outer, *_by_target(rest, other)]))


def _even(size: int, count: int, square: int) -> int:
    """The length of pieces: about `count`, at least `square`, without a remainder of `size` if possible."""
    least = max(count // square * square, square)
    return next((each for each in range(least, 2 * least) if size % each == 0), least)


def _by_target(*axes: Axis) -> list[Axis]:
    """The axes in their order on the target side."""
    return sorted(axes, key=lambda axis: -axis.target)


def _square(most: int, *sizes: int) -> int:
    """The side of the squares to transpose: the greatest power of two up to `most` and the least of `sizes`.

    For symbolic sizes the only condition is that none is less than the side: the copied bytes are always the same.
    """
    least, found = min(map(hint, sizes)), 1
    while 2 * found <= min(most, least):
        found *= 2
    guard(all(size >= found for size in sizes))
    return found


def _arranged(axes: list[Axis], unit: int, isa: Isa) -> tuple[Core, list[Axis]]:
    """The core that fits a box, and its axes with the two that the core covers at the end."""
    one = Axis(1, 0, 0)
    axes = [one] * (2 - len(axes)) + axes
    last = axes[-1]
    if last.target == unit or last.size == 1:
        if last.source == unit or last.size == 1:
            return Core.RUN, axes
        turns = _turns(axes, unit) if isa.f32 > 1 and unit <= _MOST_UNIT else None
        if turns is not None:
            return turns
        if last.source == 0 and unit <= _MOST_UNIT:
            return Core.SPREAD, axes
        if isa.f32 == 1 or unit > _MOST_UNIT:
            return Core.EACH, axes
        for i, axis in enumerate(axes[:-1]):
            if axis.source == unit and axis.size >= _LEAST_SQUARE and last.size >= _LEAST_SQUARE:
                return Core.ACROSS, [*axes[:i], *axes[i + 1 : -1], axis, last]
    return Core.EACH, axes


def _turns(axes: list[Axis], unit: int) -> tuple[Core, list[Axis]] | None:
    """A box that interleaves the elements of a few rows on one side, with the axis of these rows last; else None."""
    last = axes[-1]
    for i, axis in enumerate(axes[:-1]):
        if axis.source != unit:
            continue
        others = [*axes[:i], *axes[i + 1 : -1]]
        if _is_few(last) and axis.size >= _LEAST_SQUARE and axis.target == last.size * unit:
            return Core.WEAVE, [*others, axis, last]
        if _is_few(axis) and last.size >= _LEAST_SQUARE and last.source == axis.size * unit:
            return Core.UNWEAVE, [*others, last, axis]
    return None


def _is_few(axis: Axis) -> bool:
    """Whether the number of rows is known, and small enough to interleave them in registers."""
    return not is_symbolic(axis.size) and 2 <= axis.size <= _MOST_WAYS
