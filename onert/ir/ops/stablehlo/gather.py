"""StableHLO's gather, and its generator of random bits.

Sources: the StableHLO specification; LiteRT's kernels stablehlo_gather.cc and stablehlo_rng_bit_generator.cc.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.philox import Philox, threefry
from onert.ir.types import TensorType

from .shapes_and_elements import require_axes, require_numbers, require_shape
from .with_bodies import index_depth, index_vectors


@frozen
class HloGather(OnStored):
    """Slices of `x` of one size, whose starts are given by indices and clamped so that they fit.

    - `x`: any
    - `indices`: integers; the vectors along `index_vector_dim` (or each index by itself if that is the rank of
      `indices`) are start positions, where element i applies to dimension `start_index_map[i]`

    A slice has `slice_sizes`; its `collapsed_slice_dims` have size 1 and are removed. Its other dimensions are the
    `offset_dims` of the result, whose remaining dimensions are those of `indices` without `index_vector_dim`.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        require(indices.dtype.is_integer, f"indices hold {indices.dtype.text}, expected integers")
        index_depth(indices, self.index_vector_dim, self.start_index_map)
        require_numbers(self.slice_sizes, x.rank, "slice_sizes", 0)
        require_axes(self.start_index_map, x.rank, "start_index_map")
        require_axes(self.collapsed_slice_dims, x.rank, "collapsed_slice_dims")
        for axis, size in enumerate(x.shape):
            part = self.slice_sizes[axis]
            require(size is None or part <= size, f"a slice of {part} is larger than the dimension of {size}")
            require(axis not in self.collapsed_slice_dims or part == 1, f"a slice of {part} is collapsed, expected 1")
        batch = [d for axis, d in enumerate(indices.shape) if axis != self.index_vector_dim]
        kept = [n for axis, n in enumerate(self.slice_sizes) if axis not in self.collapsed_slice_dims]
        require(
            len(kept) == len(self.offset_dims),
            f"{len(self.offset_dims)} offset_dims are given for {len(kept)} dimensions",
        )
        require_axes(self.offset_dims, len(batch) + len(kept), "offset_dims")
        sizes, offsets = iter(batch), dict(zip(sorted(self.offset_dims), kept, strict=True))
        shape = tuple(offsets[a] if a in offsets else next(sizes) for a in range(len(batch) + len(kept)))
        require_shape(shape, "the gathered shape")
        return x.result(shape)

    def evaluate(self, x: Array, indices: Array) -> Array:
        vectors = index_vectors(indices, self.index_vector_dim)
        batch = vectors.shape[:-1]
        places = []
        for axis, part in enumerate(self.slice_sizes):
            start = np.zeros(batch, np.int64)
            if axis in self.start_index_map:
                start = np.clip(vectors[..., self.start_index_map.index(axis)], 0, x.shape[axis] - part)
            along = np.arange(part).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
            places.append(start.reshape(*batch, *(1,) * x.ndim) + along)
        parts = x[tuple(places)] if places else np.broadcast_to(x, batch)
        parts = parts.reshape(
            *batch, *(n for a, n in enumerate(self.slice_sizes) if a not in self.collapsed_slice_dims)
        )
        others = [axis for axis in range(parts.ndim) if axis not in self.offset_dims]
        back = np.argsort([*others, *sorted(self.offset_dims)])
        return np.ascontiguousarray(parts.transpose(back)).reshape([parts.shape[a] for a in back])


class BitGenerator(Enum):
    """The algorithm for random bits, in the order of the schema's RngAlgorithm."""

    DEFAULT = "the same as PHILOX"
    PHILOX = "Philox-4x32-10"
    THREEFRY = "Threefry-2x32-20"


_INTEGERS = (DType.INT32, DType.UINT32, DType.INT64, DType.UINT64)


@frozen
class HloRngBitGenerator(OnStored):
    """Random bits as a pure function of a state, and the next state.

    - `state`: uint64 [2], for Philox also [3]: the key, the counter, and the upper half of the counter (which is the
      key if there are only two words)

    Results: the next state, which advances only the counter's lower half, and integers of type `to` and the `shape`.
    """

    algorithm: BitGenerator
    to: DType
    shape: tuple[int, ...]

    @property
    def words(self) -> int:
        """The number of 32-bit words in the result."""
        return int(np.prod(self.shape, dtype=np.int64)) * (self.to.itemsize // 4)

    @property
    def blocks(self) -> int:
        """The number of blocks that provide these words."""
        return -(-self.words // (2 if self.algorithm is BitGenerator.THREEFRY else 4))

    def infer(self, state: TensorType) -> tuple[TensorType, TensorType]:
        require(state.dtype is DType.UINT64, f"the state holds {state.dtype.text}, expected u64")
        require(state.rank == 1, f"the state has rank {state.rank}, expected 1")
        sizes = (2,) if self.algorithm is BitGenerator.THREEFRY else (2, 3)
        require(state.shape[0] in (None, *sizes), f"the state has {state.shape[0]} elements, expected {sizes[-1]}")
        require(self.to in _INTEGERS, f"the result is {self.to.text}, expected integers of 32 or 64 bits")
        sv.checked_shape(self.shape, "the result's shape")
        return state.result(state.shape), TensorType(self.to, self.shape)

    def evaluate(self, state: Array) -> tuple[Array, Array]:
        key, low, *high = (int(word) for word in state)
        following = state.copy()
        following[1] = (low + self.blocks) % (1 << 64)
        if self.algorithm is BitGenerator.THREEFRY:
            bits = threefry(key, low, self.blocks)
        else:
            bits = Philox(key, low | (high[0] if high else key) << 64).blocks(self.blocks)
        return following, bits.reshape(-1)[: self.words].view(self.to.numpy).reshape(self.shape)
