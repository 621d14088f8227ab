"""Converts sparse constants to dense ones.

Source: the schema's SparsityParameters, the format of the TACO tensor algebra compiler. Dimensions are stored in
`traversal_order`; those from the tensor's rank on are block dimensions, which `block_map` maps to the tensor's. Each is
either dense with a size, or compressed with segments and indices.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.frontend.flatbuffer import Table
from onert.ir import Array, ModelError

from .schema import slot

_DENSE, _SPARSE = 0, 1
_VECTORS = {1: "i", 2: "H", 3: "B"}  # the union SparseIndexVector: 32, 16 and 8 bits


@frozen(eq=False)
class Level:
    """A stored dimension: dense of `size`, or compressed by `segments` and `indices`."""

    size: int
    segments: Array | None = None
    indices: Array | None = None


@frozen(eq=False)
class Sparsity:
    """How the `count` stored elements are distributed over a dense tensor. Validated when it is read."""

    order: tuple[int, ...]
    block_map: tuple[int, ...]
    levels: tuple[Level, ...]
    count: int

    def densify(self, values: Array, shape: tuple[int, ...]) -> Array:
        """The dense tensor with `values` as its `count` stored elements; the others are 0."""
        return _densify(self, values, shape)


def read(table: Table, shape: tuple[int, ...]) -> Sparsity:
    """The sparsity of a tensor of this shape. Raises ModelError if its numbers are inconsistent."""
    order = tuple(int(x) for x in table.array(slot("SparsityParameters", "traversal_order"), "i"))
    block_map = tuple(int(x) for x in table.array(slot("SparsityParameters", "block_map"), "i"))
    rank = len(shape)
    if sorted(order) != list(range(rank + len(block_map))) or len(order) != rank + len(block_map):
        raise ModelError(f"sparsity traverses dimensions {list(order)}, expected an order of {rank + len(block_map)}")
    if len(set(block_map)) != len(block_map) or any(not 0 <= d < rank for d in block_map):
        raise ModelError(f"sparsity maps blocks to dimensions {list(block_map)} of a tensor of rank {rank}")
    metadata = list(table.tables(slot("SparsityParameters", "dim_metadata")))
    if len(metadata) != len(order):
        raise ModelError(f"sparsity describes {len(metadata)} dimensions, expected {len(order)}")
    sizes = _sizes(
        shape, block_map, [int(m.scalar(slot("DimensionMetadata", "dense_size"), "i", 0)) for m in metadata], order
    )
    levels, count = [], 1
    for dimension, item in zip(order, metadata, strict=True):
        level, count = _level(item, sizes[dimension], count)
        levels.append(level)
    return Sparsity(order, block_map, tuple(levels), count)


def _sizes(shape: tuple[int, ...], block_map: tuple[int, ...], dense: list[int], order: tuple[int, ...]) -> list[int]:
    """The size of every stored dimension; for a blocked one, the number of whole blocks. Elements beyond them are 0."""
    rank = len(shape)
    blocks = [dense[order.index(rank + i)] for i in range(len(block_map))]
    sizes = list(shape)
    for size, dimension in zip(blocks, block_map, strict=True):
        if not 0 < size <= shape[dimension]:
            raise ModelError(f"dimension {dimension} of {shape[dimension]} is stored in blocks of {size}")
        sizes[dimension] = shape[dimension] // size
    return sizes + blocks


def _level(item: Table, size: int, above: int) -> tuple[Level, int]:
    """A stored dimension, and the number of elements stored down to it; `above` is that of the enclosing dimensions."""
    kind = int(item.scalar(slot("DimensionMetadata", "format"), "b", 0))
    if kind == _DENSE:
        stored = int(item.scalar(slot("DimensionMetadata", "dense_size"), "i", 0))
        if stored != size:
            raise ModelError(f"a dense dimension of size {stored} is stored, expected {size}")
        return Level(size), above * size
    if kind != _SPARSE:
        raise ModelError(f"dimension format is {kind}, expected 0 or 1")
    segments, indices = _numbers(item, "array_segments"), _numbers(item, "array_indices")
    if len(segments) != above + 1 or segments[0] != 0 or np.any(np.diff(segments) < 0) or segments[-1] != len(indices):
        raise ModelError(f"the segments of a sparse dimension do not split {len(indices)} indices into {above} parts")
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        raise ModelError(f"an index of a sparse dimension is outside of its size {size}")
    return Level(size, segments, indices), len(indices)


def _numbers(item: Table, name: str) -> Array:
    kind = int(item.scalar(slot("DimensionMetadata", f"{name}_type"), "B", 0))
    vector = item.table(slot("DimensionMetadata", name))
    if kind not in _VECTORS or vector is None:
        raise ModelError(f"{name} of a sparse dimension is of kind {kind}, expected one of {sorted(_VECTORS)}")
    return vector.array(0, _VECTORS[kind]).astype(np.int64)


def _densify(sparsity: Sparsity, values: Array, shape: tuple[int, ...]) -> Array:
    parents = np.zeros(1, np.int64)
    coordinates: list[Array] = []  # of all elements stored so far, one array for each dimension visited
    for level in sparsity.levels:
        if level.segments is None or level.indices is None:
            here = np.tile(np.arange(level.size), len(parents))
            source = np.repeat(np.arange(len(parents)), level.size)
        else:
            lengths = np.diff(level.segments)
            here = level.indices
            source = np.repeat(np.arange(len(parents)), lengths)
        coordinates = [c[source] for c in coordinates] + [here]
        parents = source
    stored = dict(zip(sparsity.order, coordinates, strict=True))
    rank = len(shape)
    index = [stored[d] for d in range(rank)]
    for i, dimension in enumerate(sparsity.block_map):
        block = sparsity.levels[sparsity.order.index(rank + i)].size
        index[dimension] = index[dimension] * block + stored[rank + i]
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values
    return dense
