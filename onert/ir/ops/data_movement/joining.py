"""Tensors joined and split along an axis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.quant import round_half_away
from onert.ir.shape import Dim, Shape
from onert.ir.types import CallTypes, TensorType


def _one_type(xs: tuple[TensorType, ...], what: str) -> TensorType:
    require(bool(xs), f"{what} has no inputs, expected at least one")
    for x in xs:
        require(x.dtype is xs[0].dtype, f"{what} is given {xs[0].dtype.text} and {x.dtype.text}, expected one type")
        require(x.rank == xs[0].rank, f"{what} is given ranks {xs[0].rank} and {x.rank}, expected one rank")
    return xs[0]


def requantized(x: Array, source: TensorType, result: TensorType) -> Array:
    """Stored elements requantised in float32 as in TFLite's ConcatenationWithScaling."""
    if source.quantization == result.quantization or source.quantization is None or result.quantization is None:
        return x
    scale = np.float32(source.scale) * (np.float32(1) / np.float32(result.scale))
    bias = -np.float32(source.zero_point) * scale
    low, high = result.dtype.limits
    moved = round_half_away((x.astype(np.float32) * scale + bias).astype(np.float64)) + result.zero_point
    out: Array = np.clip(moved, low, high).astype(result.dtype.numpy)
    return out


@frozen
class Concat(OnStored):
    """Tensors concatenated along `axis`, followed by an activation.

    - `xs`: of one element type and rank, of equal shape except along the axis. Quantised ones are requantised to the
      result's parameters first, in float32.
    """

    axis: int = 0
    activation: Activation = Activation.NONE

    def infer(self, *xs: TensorType) -> TensorType:
        first = _one_type(xs, "Concat")
        require(first.rank > 0, "Concat is given scalars, expected rank 1 or more")
        axis = shapes.normalize_axis(self.axis, first.rank)
        rest = _without(first.shape, axis)
        along: Dim = 0
        for x in xs:
            other = _without(x.shape, axis)
            require(
                shapes.compatible(rest, other),
                f"Concat along axis {axis} is given shapes {shapes.text(first.shape)} and {shapes.text(x.shape)}",
            )
            rest = shapes.merge(rest, other)
            size = x.shape[axis]
            along = None if along is None or size is None else along + size
        return first.result((*rest[:axis], along, *rest[axis:]))

    def evaluate(self, *xs: Array) -> Array:
        return self.activation.apply(np.concatenate(xs, self.axis))

    def evaluate_quantized(self, types: CallTypes, *xs: Array) -> Array:
        result = types.output
        moved = [requantized(x, t, result) for x, t in zip(xs, types.inputs, strict=True) if t is not None]
        joined = np.concatenate(moved, self.axis)
        if self.activation is Activation.NONE:
            return joined
        out: Array = np.clip(joined, *self.activation.bounds(result))
        return out


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


@frozen
class Pack(OnStored):
    """Tensors of one shape, stacked along a new axis.

    - `xs`: of one element type and shape
    """

    axis: int = 0

    def infer(self, *xs: TensorType) -> TensorType:
        first = _one_type(xs, "Pack")
        shape = first.shape
        for x in xs:
            require(
                shapes.compatible(shape, x.shape),
                f"Pack is given shapes {shapes.text(first.shape)} and {shapes.text(x.shape)}, expected one shape",
            )
            shape = shapes.merge(shape, x.shape)
        at = shapes.normalize_axis(self.axis, first.rank + 1)
        return first.result((*shape[:at], len(xs), *shape[at:]))

    def evaluate(self, *xs: Array) -> Array:
        return np.stack(xs, self.axis)


@frozen
class Unpack(OnStored):
    """`x` split along `axis` into one result per index, with the axis removed.

    - `x`: any, of rank 1 or more, with exactly `count` entries along the axis
    """

    count: int
    axis: int = 0

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        axis = shapes.normalize_axis(self.axis, x.rank)
        require(x.shape[axis] in (self.count, None), f"dimension {axis} is {x.shape[axis]}, expected num {self.count}")
        return (x.result(_without(x.shape, axis)),) * self.count

    def evaluate(self, x: Array) -> tuple[Array, ...]:
        moved = np.moveaxis(x, self.axis, 0)
        return tuple(np.asarray(moved[i], order="C") for i in range(self.count))


def _require_splits(count: int) -> None:
    require(1 <= count <= 1 << 16, f"num_splits is {count}, expected at least 1")


@frozen
class Split(OnStored):
    """`x` split into `count` equal parts along an axis.

    - `axis`: one integer
    - `x`: any, its dimension along the axis a multiple of `count`
    """

    count: int

    def infer(self, axis: TensorType, x: TensorType) -> tuple[TensorType, ...]:
        _require_splits(self.count)
        found = sv.one_integer(axis, "axis")
        if found is None:
            return (x.result(sv.unknown(x.rank)),) * self.count
        at = shapes.normalize_axis(found, x.rank)
        return (x.result((*x.shape[:at], self._part(x.shape[at], at), *x.shape[at + 1 :])),) * self.count

    def _part(self, size: Dim, axis: int) -> Dim:
        if size is None:
            return None
        require(size % self.count == 0, f"dimension {axis} is {size}, which num_splits {self.count} does not divide")
        return size // self.count

    def evaluate(self, axis: Array, x: Array) -> tuple[Array, ...]:
        at = shapes.normalize_axis(sv.values(axis)[0], x.ndim)
        self._part(x.shape[at], at)
        return tuple(np.ascontiguousarray(part) for part in np.split(x, self.count, at))


@frozen
class SplitV(OnStored):
    """`x` split into `count` parts of given sizes along an axis; one size may be -1 for the remainder.

    - `x`: any
    - `sizes`: `count` integers
    - `axis`: one integer
    """

    count: int

    def infer(self, x: TensorType, sizes: TensorType, axis: TensorType) -> tuple[TensorType, ...]:
        _require_splits(self.count)
        found, wanted = sv.one_integer(axis, "axis"), sv.integers(sizes, "size_splits")
        require(
            sv.length(sizes) in (self.count, None),
            f"size_splits has {sv.length(sizes)} elements, expected {self.count}",
        )
        if found is None or wanted is None:
            return (x.result(sv.unknown(x.rank)),) * self.count
        at = shapes.normalize_axis(found, x.rank)
        return tuple(x.result((*x.shape[:at], part, *x.shape[at + 1 :])) for part in self._sizes(wanted, x.shape[at]))

    def _sizes(self, wanted: tuple[int, ...], total: Dim) -> tuple[Dim, ...]:
        require(len(wanted) == self.count, f"size_splits has {len(wanted)} elements, expected {self.count}")
        require(
            all(s >= -1 for s in wanted) and wanted.count(-1) <= 1,
            f"size_splits is {shapes.text(wanted)}, expected sizes of at least 0 and at most one -1",
        )
        known = sum(s for s in wanted if s != -1)
        if total is None:
            return tuple(None if s == -1 else s for s in wanted)
        fits = known <= total if -1 in wanted else known == total
        require(fits, f"size_splits is {shapes.text(wanted)}, which do not add up to {total}")
        return tuple(total - known if s == -1 else s for s in wanted)

    def evaluate(self, x: Array, sizes: Array, axis: Array) -> tuple[Array, ...]:
        at = shapes.normalize_axis(sv.values(axis)[0], x.ndim)
        parts = shapes.static(self._sizes(sv.values(sizes), x.shape[at]))
        return tuple(np.ascontiguousarray(p) for p in np.split(x, np.cumsum(parts)[:-1], at))

    def sized(self, types: CallTypes) -> Callable[..., tuple[Array, ...]] | None:
        axis = types.input(2).value
        if axis is None:
            return None
        at = shapes.normalize_axis(sv.values(axis)[0], types.input(0).rank)
        ends = tuple(accumulate((shapes.static(t.shape)[at] for t in types.outputs), initial=0))
        cuts = [(*(slice(None),) * at, slice(a, b)) for a, b in pairwise(ends)]
        return lambda x, *_: tuple([x[cut].copy() for cut in cuts])
