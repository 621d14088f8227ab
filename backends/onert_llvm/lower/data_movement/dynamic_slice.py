"""Slices of tensors whose starts are known only at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.data_movement.part_update import Overwritten
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicSlice
from onert_llvm.command.command import Pointer, Slot
from onert_llvm.kernels.data_movement.dynamic_slice import DynamicSlice
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side

from . import movement

_WIDE = {DType.INT32: False, DType.INT64: True}


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not read, save or write the slice; None if it does."""
    if any(t is not None and (t.dtype.is_handle or 0 in t.shape) for t in (*types.inputs, *types.outputs)):
        return "a tensor holds no plain elements"
    starts = types.inputs[1 if isinstance(op, HloDynamicSlice) else 2 :]
    if any(t is None or t.dtype not in _WIDE for t in starts):
        return "indices of this type have no native form"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Read a slice; or copy the whole tensor, then write a slice over it."""
    at, operation, _ = lowering.single(operations, Op)
    (result,) = operation.outputs
    if isinstance(operation.op, HloDynamicSlice):
        _emit(lowering, at, operation.used[0], result, operation.used[1:], put=False)
    else:
        movement.copy(lowering, at)
        _emit(lowering, at, result, operation.used[1], operation.used[2:], put=True)


def lower_overwritten(lowering: Lowering, operations: Sequence[int]) -> None:
    """Save the slice that is about to be overwritten, its start, and a flag that it was saved."""
    at, operation, _ = lowering.single(operations, Overwritten)
    whole, _, *starts = operation.used
    part, *places, taken = operation.outputs
    _emit(lowering, at, whole, part, starts, put=False)
    for start, place in zip(starts, places, strict=True):
        move(lowering, at, operand(lowering, start), operand(lowering, place), (start,))
    move(lowering, at, side(lowering.constant(np.ones(16, np.bool_)), (), 1), operand(lowering, taken))


def _emit(lowering: Lowering, at: int, whole: int, part: int, starts: Sequence[int], put: bool) -> None:
    """Copy a box of `part`'s shape from `whole`, or with `put` to it."""
    outer, inner = lowering.shape(whole), lowering.shape(part)
    if not outer:
        outer, inner = (1,), (1,)
    itemsize = lowering.type(whole).dtype.itemsize
    places = _starts(lowering, starts, len(outer))
    run = len(outer)  # axes from here on are whole
    while run > 1 and inner[run - 1] == outer[run - 1]:
        run -= 1
    slots: dict[str, Slot] = {"whole": lowering.operand(whole), "part": lowering.operand(part)}
    slots["width"] = math.prod(inner[run - 1 :]) * itemsize
    for i in range(run):
        step = math.prod(outer[i + 1 :]) * itemsize
        slots |= {f"start{i}": places[i][0], f"most{i}": outer[i] - inner[i], f"step{i}": step}
    slots |= {f"size{i}": inner[i] for i in range(run - 1)}
    tiles = math.prod(inner[: run - 1])
    reads = (*starts, part) if put else (*starts, whole)
    algorithm = DynamicSlice(put, tuple(wide for _, wide in places[:run]))
    lowering.emit(at, algorithm, slots, tiles, reads, (whole if put else part,))


def _starts(lowering: Lowering, starts: Sequence[int], rank: int) -> list[tuple[Pointer, bool]]:
    """The pointer to the start along each axis, and whether it has 64 bits; missing trailing starts are 0."""
    found = [
        (lowering.operand(i, at * lowering.type(i).dtype.itemsize), _WIDE[lowering.type(i).dtype])
        for i in starts
        for at in range(math.prod(lowering.shape(i)))
    ]
    return found + [(lowering.constant(np.zeros(16, np.int32)), False) for _ in range(rank - len(found))]
