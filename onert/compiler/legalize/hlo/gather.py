"""StableHLO's gather as Gather along one axis or GatherNd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition, moves
from onert.compiler.legalize.draft import Draft
from onert.ir import CallTypes
from onert.ir.ops.data_movement.gather import GatherNd
from onert.ir.ops.stablehlo.gather import HloGather
from onert.ir.shape import static


def _gather(d: Draft, op: HloGather, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(Gather(Slice(x), clamp(indices)))  or  Transpose(GatherNd(Transpose(Slice(x)), clamp(indices)))"""
    x, indices = operands
    indexed, sizes = op.start_index_map, d.shape(x)
    part = [sizes[axis] if axis in indexed else size for axis, size in enumerate(op.slice_sizes)]
    x = d.part(x, [0] * len(sizes), part)
    vectors = _vectors(d, op, indices, sizes)
    batch = d.shape(vectors)[:-1]
    at = [f"batch {i}" for i in range(len(batch))]
    rest = [axis for axis in range(len(sizes)) if axis not in indexed]
    if not indexed:
        slices = d.broadcast(d.reshaped(x, *(1,) * len(batch), *part), (*batch, *part))
        order: list[str | int] = [*at, *rest]
    elif len(indexed) == 1:
        slices, order = _along(d, x, vectors, indexed[0], op.slice_sizes[indexed[0]], at)
    else:
        transposed = d.transposed(x, (*indexed, *rest))
        parts = [op.slice_sizes[axis] for axis in indexed]
        slices = d.moved(GatherNd(), transposed, _element_indices(d, vectors, parts))
        order = [*at, *indexed, *rest]
    return [_laid_out(d, op, slices, order, static(types.output.shape))]


def _vectors(d: Draft, op: HloGather, indices: int, sizes: Sequence[int]) -> int:
    """The index vectors along a new last axis, clamped so that all slices are in range."""
    indices = d.index(indices)
    rank = len(d.shape(indices))
    if op.index_vector_dim == rank:
        vectors = d.reshaped(indices, *d.shape(indices), 1)
    else:
        order = [axis for axis in range(rank) if axis != op.index_vector_dim]
        vectors = d.transposed(indices, (*order, op.index_vector_dim))
    if not op.start_index_map:
        return vectors
    last = [sizes[axis] - op.slice_sizes[axis] for axis in op.start_index_map]
    return d.clamped(vectors, 0, np.array(last))


def _along(d: Draft, x: int, vectors: int, axis: int, part: int, at: Sequence[str]) -> tuple[int, list[str | int]]:
    """Slices along one axis, `part` of them starting at each index, and the meaning of each result dimension."""
    batch, rank = d.shape(vectors)[:-1], len(d.shape(x))
    first = d.reshaped(vectors, *batch)
    if part > 1:
        first = d.sum(vectors, d.numbers(part, vectors, (part,)))
    before, after = range(axis), range(axis + 1, rank)
    order: list[str | int] = [*before, *at, *((axis,) if part > 1 else ()), *after]
    return d.gathered(x, first, axis), order


def _element_indices(d: Draft, vectors: int, parts: Sequence[int]) -> int:
    """The index vectors of all elements of the slices, `parts` along each indexed dimension."""
    if max(parts) == 1:
        return d.reshaped(vectors, *d.shape(vectors)[:-1], *parts, len(parts))
    *batch, depth = d.shape(vectors)
    offsets = np.stack(np.meshgrid(*(np.arange(n) for n in parts), indexing="ij"), axis=-1)
    wide = d.reshaped(vectors, *batch, *(1,) * len(parts), depth)
    return d.sum(wide, d.constant(offsets.astype(d.dtype(vectors).numpy)))


def _laid_out(d: Draft, op: HloGather, slices: int, order: Sequence[str | int], shape: tuple[int, ...]) -> int:
    """The gathered slices with the dimensions of the result; collapsed ones have size 1."""
    remaining = [axis for axis in range(len(op.slice_sizes)) if axis not in op.collapsed_slice_dims]
    offsets = dict(zip(sorted(op.offset_dims), remaining, strict=True))
    batch = iter(name for name in order if isinstance(name, str))
    result_order = [offsets[at] if at in offsets else next(batch) for at in range(len(shape))]
    present = [name for name in order if name in result_order]
    slices = d.reshaped(slices, *(shape[result_order.index(name)] for name in present))
    missing = [name for name in result_order if name not in present]
    moved = d.transposed(slices, [present.index(name) for name in result_order if name not in missing])
    return d.reshaped(moved, *shape)


DECOMPOSITIONS = {HloGather: (Decomposition(moves, _gather),)}
