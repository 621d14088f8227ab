"""Data movement without computation: reshape, join, split, slice, transpose, repeat, pad."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from onert.ir import CallTypes, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.fill import Fill, PerLength
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import BatchToSpaceND, SpaceToBatchND
from onert.ir.ops.data_movement.slicing import Mirror, MirrorPad, Pad
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.trace import Computed, hint, is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.data_movement.join_rows import JoinRows
from onert_llvm.kernels.data_movement.row_copy import CopyRows
from onert_llvm.kernels.data_movement.strided_copy import ELEMENTS
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import Side, move, operand, side
from onert_llvm.lower.strided_view import StridedView

from .view_ops import VIEWS, View

_PIECE = 1 << 14
"""The bytes of a work tile when a whole tensor is copied."""
_AT_ONCE = 4 * _PIECE
"""The bytes that one thread copies whole if their number depends on lengths, so that the number of pieces does not."""

_MOST_JOINED, _WIDEST_JOINED = 8, 1 << 12
"""The most tensors that are joined row by row, and the most bytes in a row of each."""
_REGISTERS = (16, 32, 64)
"""Bytes that are copied at once: the smallest that fits, because stores across a cache line cost two."""

MOST_BOXES = 1024
"""The most copies that one operation may become."""

_KNOWN: Mapping[type[Op], tuple[int, ...]] = {
    Split: (0,),
    SplitV: (1, 2),
    Pad: (1,),
    MirrorPad: (1,),
    SpaceToBatchND: (1, 2),
    BatchToSpaceND: (1, 2),
    Fill: (0,),
}
"""The operands that must be constant."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not move the elements; None if it does."""
    known = VIEWS[type(op)][1] if type(op) in VIEWS else _KNOWN.get(type(op), ())
    if any(t is not None and t.dtype.is_handle for t in (*types.inputs, *types.outputs)):
        return "a tensor holds no plain elements"
    if any(t.dtype.itemsize not in ELEMENTS for t in types.outputs):
        return "elements of this size have no native form"
    if any(types.input(i).value is None for i in known):
        return "an operand that determines the layout is not known before the run"
    if isinstance(op, Concat):
        same = all(t is not None and t.quantization == types.output.quantization for t in types.inputs)
        return None if same and op.activation is Activation.NONE else "it requantises operands or applies an activation"
    if type(op) in VIEWS and _view(op, types) is None:
        return "its result is not a strided view of its input"
    return None if _count(op, types) <= MOST_BOXES else "it would take too many copies"


def _view(op: Op, types: CallTypes) -> StridedView | None:
    x = types.input(0)
    return VIEWS[type(op)][0](op, types, StridedView.dense(static(x.shape), x.dtype.itemsize))


def _count(op: Op, types: CallTypes) -> int:
    """A lower bound for the number of copies."""
    if isinstance(op, SpaceToBatchND | BatchToSpaceND):
        blocks = types.input(1).value
        assert blocks is not None
        return math.prod(blocks.tolist())
    return 3**types.output.rank if isinstance(op, MirrorPad) else len(types.inputs) + len(types.outputs)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower one operation that moves elements."""
    (at,) = operations
    op = lowering.operation(at).op
    kind = type(op)
    if kind in VIEWS:
        _moved(lowering, at, op, VIEWS[kind][0])
    elif kind in _LOWER:
        _LOWER[kind](lowering, at, op)
    else:
        copy(lowering, at)


def copy(lowering: Lowering, at: int) -> None:
    """Copy all bytes as they are; nothing is copied if source and target share memory."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    total = lowering.type(source).nbytes
    known = not is_symbolic(total)
    at_once = not known and (lowering.threads == 1 or hint(total) <= _AT_ONCE)
    width = total if at_once else min(_PIECE, total)
    whole = 1 if width is total else total // width
    for rows, start, size in ((whole, 0, width), (1, whole * width, total - whole * width)):
        if (known or at_once) and not size:
            continue  # otherwise every length has a last piece, which may be empty
        slots: dict[str, Slot] = {
            "source": lowering.operand(source, start),
            "target": lowering.operand(target, start),
            "width": size,
            "source_step": size,
            "target_step": size,
        }
        lowering.emit(at, CopyRows(), slots, rows, (source,), (target,))


def _moved(lowering: Lowering, at: int, op: Op, view: View) -> None:
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    own = operand(lowering, source)
    seen = view(op, lowering.subgraph.types(operation), own.view)
    assert seen is not None
    move(lowering, at, own.at(seen), _split_like(operand(lowering, target), seen), (source,))


def _split_like(target: Side, view: StridedView) -> Side:
    """The target with its axes split like those of a view."""
    return side(target.pointer, view.shape, view.itemsize)


def _places(lowering: Lowering, whole: Side, axis: int, parts: Sequence[int], stacked: bool) -> Iterator[Side]:
    """The places of several tensors in one along an axis: consecutive, or `stacked` along a new axis."""
    before, start = (slice(None),) * axis, 0
    for number, part in enumerate(parts):
        if stacked:
            yield whole.at(whole.view[(*before, number, ...)])  # a view even if no axis remains
            continue
        size = lowering.shape(part)[axis]
        yield whole.at(whole.view[(*before, slice(start, start + size))])
        start += size


def _join(lowering: Lowering, at: int, op: Concat | Pack) -> None:
    operation = lowering.operation(at)
    whole = operand(lowering, operation.outputs[0])
    axis = normalize_axis(op.axis, whole.view.ndim)
    if isinstance(op, Concat) and _rows_joined(lowering, at, axis):
        return
    places = _places(lowering, whole, axis, operation.used, isinstance(op, Pack))
    for part, place in zip(operation.used, places, strict=True):
        move(lowering, at, operand(lowering, part), place, (part,))


def _rows_joined(lowering: Lowering, at: int, axis: int) -> bool:
    """Emit the command that joins all parts row by row; returns False if separate copies are as good."""
    operation = lowering.operation(at)
    (out,), itemsize = operation.outputs, lowering.type(operation.outputs[0]).dtype.itemsize
    parts = [part for part in operation.used if 0 not in lowering.shape(part)]
    rows = math.prod(lowering.shape(out)[:axis])
    widths = [itemsize * math.prod(lowering.shape(part)[axis:]) for part in parts]
    few = 1 < len(parts) <= _MOST_JOINED and not any(map(is_symbolic, widths)) and max(widths) <= _WIDEST_JOINED
    if not (lowering.isa.free_masks and few and hint(rows) > 1):
        return False
    together = next((size for size in _REGISTERS if max(widths) <= size), _REGISTERS[-1])
    algorithm = JoinRows(len(parts), together)
    slots: dict[str, Slot] = {"pitch": sum(widths), **{f"width{i}": width for i, width in enumerate(widths)}}
    lowering.run(at, algorithm, rows, {f"part{i}": part for i, part in enumerate(parts)}, {"out": out}, slots)
    return True


def _take_apart(lowering: Lowering, at: int, op: Unpack | Split | SplitV) -> None:
    operation = lowering.operation(at)
    source = operation.used[1 if isinstance(op, Split) else 0]
    whole = operand(lowering, source)
    if isinstance(op, Unpack):
        axis = op.axis
    else:
        axis = int(lowering.elements(operation.used[0 if isinstance(op, Split) else 2]).reshape(-1)[0])
    along = normalize_axis(axis, whole.view.ndim)
    places = _places(lowering, whole, along, operation.outputs, isinstance(op, Unpack))
    for part, place in zip(operation.outputs, places, strict=True):
        move(lowering, at, place, operand(lowering, part), (source,))


def _filling(lowering: Lowering, at: int) -> tuple[Side, tuple[int, ...]]:
    """The element that fills margins (the third operand, else the zero point), and its operand, if any."""
    operation = lowering.operation(at)
    type_ = lowering.type(operation.used[0])
    itemsize = type_.dtype.itemsize
    if len(operation.used) > 2 and not isinstance(operation.op, SpaceToBatchND):
        value = operation.used[2]
        return side(lowering.operand(value), (1,), itemsize), (value,)
    zero = 0 if type_.quantization is None or not type_.dtype.is_integer else type_.quantization.zero_points[0]
    element = np.full(16, zero, type_.dtype.numpy)
    return side(lowering.constant(element), (1,), itemsize), ()


def _fill(lowering: Lowering, at: int, value: Side, target: Side, reads: tuple[int, ...]) -> None:
    move(lowering, at, value.at(value.view.broadcast_to(target.view.shape)), target, reads)


def _pad(lowering: Lowering, at: int, op: Pad) -> None:
    """Copy the middle; each axis's margins span only the middle of the axes before it."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    pairs = lowering.elements(operation.used[1]).tolist()
    whole, value_and_reads = operand(lowering, target), _filling(lowering, at)
    value, reads = value_and_reads
    own = lowering.shape(source)
    for axis, ((before, after), size) in enumerate(zip(pairs, own, strict=True)):
        inner = tuple(slice(a, a + n) for (a, _), n in zip(pairs[:axis], own[:axis], strict=True))
        for margin in (slice(0, before), slice(before + size, before + size + after)):
            _fill(lowering, at, value, whole.at(whole.view[(*inner, margin)]), reads)
    middle = whole.view[tuple(slice(a, a + n) for (a, _), n in zip(pairs, own, strict=True))]
    move(lowering, at, operand(lowering, source), whole.at(middle), (source,))


def _mirror_pad(lowering: Lowering, at: int, op: MirrorPad) -> None:
    """Copy a box for each combination of three parts per axis; the outer two are reversed."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    own, whole = operand(lowering, source), operand(lowering, target)
    border = 1 if op.mode is Mirror.REFLECT else 0
    parts: list[list[tuple[slice, slice]]] = []
    for (before, after), size in zip(lowering.elements(operation.used[1]).tolist(), own.view.shape, strict=True):
        found = [(slice(0, size), slice(before, before + size))]
        if before:
            found.append((_backwards(border + before - 1, before), slice(0, before)))
        if after:
            found.append((_backwards(size - 1 - border, after), slice(before + size, before + size + after)))
        parts.append(found)
    for chosen in product(*parts):
        taken, placed = (tuple(pair[i] for pair in chosen) for i in (0, 1))
        move(lowering, at, own.at(own.view[taken]), whole.at(whole.view[placed]), (source,))


def _backwards(first: int, count: int) -> slice:
    """A slice of `count` indices, downwards from `first`."""
    last = first - count
    return slice(first, last if last >= 0 else None, -1)


def _blocked(
    lowering: Lowering, at: int, blocks: Sequence[int], shift: Sequence[int], batched: Side, spread: Side, gather: bool
) -> None:
    """Copy one box for each position in a block, between images of a batch and pixels that are a block apart.

    Pixel p of the image for position b is at `p * block + b - shift`, if that is inside the image.
    """
    images = spread.view.shape[0]
    for number, position in enumerate(np.ndindex(*blocks)):
        near: list[slice] = []
        far: list[slice] = []
        for i, (block, offset, moved) in enumerate(zip(blocks, position, shift, strict=True)):
            start = offset - moved
            first = max(0, -(start // block))
            count = min(batched.view.shape[1 + i], -(-(spread.view.shape[1 + i] - start) // block)) - first
            near.append(slice(first, first + max(count, 0)))
            begin = first * block + start
            far.append(slice(begin, begin + max(count, 0) * block, block))
        images_here = slice(number * images, (number + 1) * images)
        one = batched.at(batched.view[(images_here, *near)])
        other = spread.at(spread.view[(slice(None), *far)])
        source, target = (other, one) if gather else (one, other)
        move(lowering, at, source, target, (lowering.operation(at).used[0],))


def _space_to_batch(lowering: Lowering, at: int, op: SpaceToBatchND) -> None:
    operation = lowering.operation(at)
    source, block, paddings = operation.used
    pairs = lowering.elements(paddings).tolist()
    batched, spread = operand(lowering, operation.outputs[0]), operand(lowering, source)
    if any(map(any, pairs)):
        value, reads = _filling(lowering, at)
        _fill(lowering, at, value, batched, reads)
    blocks = [int(b) for b in lowering.elements(block).reshape(-1)]
    _blocked(lowering, at, blocks, [before for before, _ in pairs], batched, spread, True)


def _batch_to_space(lowering: Lowering, at: int, op: BatchToSpaceND) -> None:
    operation = lowering.operation(at)
    source, block, crops = operation.used
    pairs = lowering.elements(crops).tolist()
    batched, spread = operand(lowering, source), operand(lowering, operation.outputs[0])
    blocks = [int(b) for b in lowering.elements(block).reshape(-1)]
    _blocked(lowering, at, blocks, [before for before, _ in pairs], batched, spread, False)


def _repeat(lowering: Lowering, at: int, op: Fill) -> None:
    operation = lowering.operation(at)
    value, whole = operand(lowering, operation.used[1]), operand(lowering, operation.outputs[0])
    everywhere = value.view.reshape(()).broadcast_to(whole.view.shape)
    move(lowering, at, value.at(everywhere), whole, (operation.used[1],))


def _per_length(lowering: Lowering, at: int, op: PerLength) -> None:
    whole, made = operand(lowering, lowering.operation(at).outputs[0]), op.elements
    numbers = made.numbers if isinstance(made, Computed) else ()
    constant = lowering.computed(made.function if isinstance(made, Computed) else op.evaluate, *numbers)
    move(lowering, at, side(constant, whole.view.shape, whole.view.itemsize), whole)


_LOWER: Mapping[type[Op], Callable[[Lowering, int, Any], None]] = {
    **dict.fromkeys((Concat, Pack), _join),
    **dict.fromkeys((Unpack, Split, SplitV), _take_apart),
    Pad: _pad,
    MirrorPad: _mirror_pad,
    SpaceToBatchND: _space_to_batch,
    BatchToSpaceND: _batch_to_space,
    Fill: _repeat,
    PerLength: _per_length,
}
