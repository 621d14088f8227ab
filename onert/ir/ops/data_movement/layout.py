"""Elements in another order: transposition, reversal, and blocks of the plane moved into channels or the batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Dim, Shape
from onert.ir.types import CallTypes, TensorType


@frozen
class Transpose(OnStored):
    """`x` with its axes permuted: axis i of the result is axis `permutation[i]` of `x`.

    - `x`: any
    - `permutation`: one integer per dimension of x, each axis once
    """

    def infer(self, x: TensorType, permutation: TensorType) -> TensorType:
        order = sv.integers(permutation, "permutation")
        count = sv.length(permutation)
        require(count in (x.rank, None), f"permutation has {count} elements, expected {x.rank}")
        if order is None:
            return x.result(sv.unknown(x.rank))
        return x.result(tuple(x.shape[a] for a in _order(order, x.rank)))

    def evaluate(self, x: Array, permutation: Array) -> Array:
        return np.asarray(np.transpose(x, _order(sv.values(permutation), x.ndim)), order="C")


def _order(permutation: tuple[int, ...], rank: int) -> tuple[int, ...]:
    order = tuple(shapes.normalize_axis(a, rank) for a in permutation)
    require(sorted(order) == list(range(rank)), f"permutation {list(permutation)} does not name every axis once")
    return order


def _require_image(x: TensorType, size: int) -> None:
    require(size >= 1, f"block_size is {size}, expected at least 1")
    require(x.rank == 4, f"x has rank {x.rank}, expected 4")


def _parts(d: Dim, by: int, what: str) -> Dim:
    if d is None:
        return None
    require(d % by == 0, f"{what} is {d}, which block size {by} does not divide")
    return d // by


@frozen
class SpaceToDepth(OnStored):
    """Moves blocks of `block_size` by `block_size` pixels into channels.

    - `x`: [batch, height, width, channels], height and width multiples of the block size b; the result is
      [batch, height / b, width / b, channels * b * b].
    """

    block_size: int

    def infer(self, x: TensorType) -> TensorType:
        _require_image(x, self.block_size)
        n, h, w, c = x.shape
        b = self.block_size
        return x.result((n, _parts(h, b, "the height"), _parts(w, b, "the width"), shapes.times(c, b * b)))

    def evaluate(self, x: Array) -> Array:
        n, h, w, c = x.shape
        b = self.block_size
        blocks = x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
        return blocks.reshape(n, h // b, w // b, b * b * c)


@frozen
class DepthToSpace(OnStored):
    """Moves channels into blocks of `block_size` by `block_size` pixels: the inverse of `SpaceToDepth`.

    - `x`: [batch, height, width, channels]; the result is [batch, height * b, width * b, channels / b / b] for size b
    """

    block_size: int

    def infer(self, x: TensorType) -> TensorType:
        _require_image(x, self.block_size)
        n, h, w, c = x.shape
        b = self.block_size
        return x.result((n, shapes.times(h, b), shapes.times(w, b), _parts(c, b * b, "the number of channels")))

    def evaluate(self, x: Array) -> Array:
        n, h, w, c = x.shape
        b = self.block_size
        blocks = x.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5)
        return blocks.reshape(n, h * b, w * b, c // (b * b))


def _moved(
    x: TensorType, block: TensorType, margins: TensorType, what: str, shape: Callable[[Shape, Array, Array], Shape]
) -> TensorType:
    """`x` with the `shape` that its own, the block and the margins give it, as far as these are known.

    Raises RuleError if the operands' shapes do not match.
    """
    require(x.rank in (3, 4), f"x has rank {x.rank}, expected 3 or 4")
    count = x.rank - 2
    require(
        shapes.compatible(block.shape, (count,)),
        f"block_shape has shape {shapes.text(block.shape)}, expected [{count}]",
    )
    require(
        shapes.compatible(margins.shape, (count, 2)),
        f"{what} has shape {shapes.text(margins.shape)}, expected [{count}, 2]",
    )
    for operand, name in ((block, "block_shape"), (margins, what)):
        sv.require_index_type(operand, name)
    if block.value is None or margins.value is None:
        return x.result((*sv.unknown(count + 1), x.shape[-1]))
    return x.result(shape(x.shape, block.value, margins.value))


def _pairs(margins: Array, what: str) -> list[tuple[int, int]]:
    pairs = [sv.two(pair) for pair in margins]
    require(all(a >= 0 and b >= 0 for a, b in pairs), f"{what} is {sv.pairs_text(pairs)}, expected no negative number")
    return pairs


def _blocks(block: Array) -> tuple[int, ...]:
    sizes = sv.values(block)
    require(all(1 <= b < 1 << 20 for b in sizes), f"block_shape is {shapes.text(sizes)}, expected sizes of at least 1")
    return sizes


@frozen
class SpaceToBatchND(OnStored):
    """Pads `x` and distributes the pixels of each block over images of the batch.

    - `x`: [batch, spatial..., channels] with one or two spatial dimensions
    - `block_shape`: the block's size in each spatial dimension
    - `paddings`: [spatial dimensions, 2], the number of zeros before and after (zero points if quantised)
    """

    def infer(self, x: TensorType, block_shape: TensorType, paddings: TensorType) -> TensorType:
        return _moved(x, block_shape, paddings, "paddings", self._shape)

    @staticmethod
    def _shape(x: Shape, block: Array, paddings: Array) -> Shape:
        sizes, pairs = _blocks(block), _pairs(paddings, "paddings")
        spatial = [
            _parts(None if d is None else d + a + b, s, f"spatial dimension {i} with padding")
            for i, (d, s, (a, b)) in enumerate(zip(x[1:-1], sizes, pairs, strict=True))
        ]
        batch = x[0]
        for s in sizes:
            batch = shapes.times(batch, s)
        return (batch, *spatial, x[-1])

    def evaluate(self, x: Array, block_shape: Array, paddings: Array, zero: int = 0) -> Array:
        self._shape(x.shape, block_shape, paddings)
        sizes = _blocks(block_shape)
        padded = np.pad(x, [(0, 0), *_pairs(paddings, "paddings"), (0, 0)], constant_values=zero)
        n, *spatial, c = padded.shape
        split: list[int] = [n]
        for d, s in zip(spatial, sizes, strict=True):
            split += [d // s, s]
        inner, outer = range(2, 2 + 2 * len(sizes), 2), range(1, 1 + 2 * len(sizes), 2)
        moved = padded.reshape(*split, c).transpose(*inner, 0, *outer, 1 + 2 * len(sizes))
        shape = (n * int(np.prod(sizes)), *(d // s for d, s in zip(spatial, sizes, strict=True)), c)
        return moved.reshape(shape)

    def evaluate_quantized(self, types: CallTypes, x: Array, block_shape: Array, paddings: Array) -> Array:
        quantization = types.input(0).quantization
        return self.evaluate(x, block_shape, paddings, 0 if quantization is None else quantization.zero_point)


@frozen
class BatchToSpaceND(OnStored):
    """Collects blocks of pixels from images of the batch, then crops: the inverse of `SpaceToBatchND`.

    - `x`: [batch, spatial..., channels], the batch a multiple of the number of pixels in a block
    - `block_shape`: the block's size in each spatial dimension
    - `crops`: [spatial dimensions, 2], the number of pixels cropped before and after
    """

    def infer(self, x: TensorType, block_shape: TensorType, crops: TensorType) -> TensorType:
        return _moved(x, block_shape, crops, "crops", self._shape)

    @staticmethod
    def _shape(x: Shape, block: Array, crops: Array) -> Shape:
        sizes, pairs = _blocks(block), _pairs(crops, "crops")
        batch = _parts(x[0], int(np.prod(sizes, dtype=np.int64)), "the batch")
        spatial: list[Dim] = []
        for d, s, (a, b) in zip(x[1:-1], sizes, pairs, strict=True):
            left = None if d is None else d * s - a - b
            require(left is None or left >= 0, f"crops {sv.pairs_text(pairs)} are larger than {d} times {s}")
            spatial.append(left)
        return (batch, *spatial, x[-1])

    def evaluate(self, x: Array, block_shape: Array, crops: Array) -> Array:
        shape = shapes.static(self._shape(x.shape, block_shape, crops))
        sizes = _blocks(block_shape)
        n, *spatial, c = x.shape
        count = len(sizes)
        split = x.reshape(*sizes, n // int(np.prod(sizes)), *spatial, c)
        order = [count]
        for i in range(count):
            order += [count + 1 + i, i]
        whole = split.transpose(*order, 2 * count + 1).reshape(
            n // int(np.prod(sizes)), *(d * s for d, s in zip(spatial, sizes, strict=True)), c
        )
        cut = [slice(a, a + length) for (a, _), length in zip(_pairs(crops, "crops"), shape[1:-1], strict=True)]
        return np.ascontiguousarray(whole[(slice(None), *cut)])


@frozen
class Reverse(OnStored):
    """`x` reversed along `axes`.

    - `x`: any
    - `axes`: integers of rank 1, each axis once
    """

    def infer(self, x: TensorType, axes: TensorType) -> TensorType:
        found = sv.integers(axes, "axes")
        if found is not None:
            self._checked(found, x.rank)
        return x.result(x.shape)

    @staticmethod
    def _checked(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
        found = tuple(shapes.normalize_axis(a, rank) for a in axes)
        require(len(set(found)) == len(found), f"axes {list(axes)} name one axis twice")
        return found

    def evaluate(self, x: Array, axes: Array) -> Array:
        return np.array(np.flip(x, self._checked(sv.values(axes), x.ndim)), order="C")  # an array even for a scalar


@frozen
class ReverseSequence(OnStored):
    """`x` with the first `lengths[batch]` entries along `sequence_axis` reversed for each index of `batch_axis`.

    - `x`: any, of rank 2 or more
    - `lengths`: integers, one for each index of `batch_axis`
    """

    sequence_axis: int
    batch_axis: int = 0

    def infer(self, x: TensorType, lengths: TensorType) -> TensorType:
        sequence, batch = self._axes(x.rank)
        require(
            shapes.compatible(lengths.shape, (x.shape[batch],)),
            f"lengths has shape {shapes.text(lengths.shape)}, expected [{x.shape[batch]}]",
        )
        found = sv.integers(lengths, "lengths")
        if found is not None and x.shape[sequence] is not None:
            self._checked(found, x.shape[sequence] or 0)
        return x.result(x.shape)

    def _axes(self, rank: int) -> tuple[int, int]:
        sequence, batch = (shapes.normalize_axis(a, rank) for a in (self.sequence_axis, self.batch_axis))
        require(sequence != batch, f"the sequence and the batch are both along axis {batch}")
        return sequence, batch

    @staticmethod
    def _checked(lengths: tuple[int, ...], size: int) -> None:
        for n in lengths:
            require(0 <= n <= size, f"a length is {n}, expected 0 to {size}")

    def rounds(self, types: CallTypes) -> int:
        return types.input(1).shape[0] or 0

    def evaluate(self, x: Array, lengths: Array) -> Array:
        sequence, batch = self._axes(x.ndim)
        self._checked(sv.values(lengths), x.shape[sequence])
        moved = np.moveaxis(x, (batch, sequence), (0, 1))
        out = moved.copy()
        for i, n in enumerate(sv.values(lengths)):
            out[i, :n] = moved[i, :n][::-1]
        return np.ascontiguousarray(np.moveaxis(out, (0, 1), (batch, sequence)))
