"""Slices, padding, and repetition of tensors."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.errors import RuleError
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Dim, Shape
from onert.ir.types import CallTypes, TensorType, unranked


@frozen
class Slice(OnStored):
    """The part of `x` of shape `size` that starts at `begin`; a size of -1 extends to the end.

    - `x`: any
    - `begin`, `size`: integers, one per dimension of x
    """

    def infer(self, x: TensorType, begin: TensorType, size: TensorType) -> TensorType:
        starts, sizes = sv.integers(begin, "begin"), sv.integers(size, "size")
        for operand, name in ((begin, "begin"), (size, "size")):
            require(
                sv.length(operand) in (x.rank, None), f"{name} has {sv.length(operand)} elements, expected {x.rank}"
            )
        if starts is None or sizes is None:
            return x.result(sv.unknown(x.rank))
        return x.result(self._shape(x.shape, starts, sizes))

    @staticmethod
    def _shape(x: Shape, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Shape:
        out: list[Dim] = []
        for axis, (d, start, size) in enumerate(zip(x, starts, sizes, strict=True)):
            if not start >= 0:
                raise RuleError(f"begin is {start} along axis {axis}, expected at least 0")
            if not size >= -1:
                raise RuleError(f"size is {size} along axis {axis}, expected at least -1")
            if d is not None and not (start <= d and (size == -1 or start + size <= d)):
                raise RuleError(
                    f"{size} elements from {start} along axis {axis} are requested, expected at most {d} in total"
                )
            out.append(size if size != -1 else None if d is None else d - start)
        return tuple(out)

    def evaluate(self, x: Array, begin: Array, size: Array) -> Array:
        starts = sv.values(begin)
        shape = shapes.static(self._shape(x.shape, starts, sv.values(size)))
        cut = tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))
        return np.asarray(x[cut], order="C")

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        begin = types.input(1).value
        if begin is None:
            return None
        sizes = shapes.static(types.output.shape)
        cut = tuple(slice(s, s + n) for s, n in zip(sv.values(begin), sizes, strict=True))
        return sv.part((*cut, ...))


@frozen
class StridedSlice(OnStored):
    """Every n-th element from `begin` to `end` along each axis, like Python's extended slices.

    Bit i of a mask applies to position i: `begin_mask` and `end_mask` ignore that bound, `ellipsis_mask` stands for all
    axes that are not named, `new_axis_mask` inserts a dimension of 1, `shrink_axis_mask` selects one index and removes
    the axis. With `offset`, `end` is relative to `begin`.
    - `x`: any
    - `begin`, `end`, `strides`: integers of rank 1 and equal length; no stride is 0
    """

    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False

    def infer(self, x: TensorType, begin: TensorType, end: TensorType, strides: TensorType) -> TensorType:
        given = [sv.integers(t, name) for t, name in ((begin, "begin"), (end, "end"), (strides, "strides"))]
        counts = {sv.length(t) for t in (begin, end, strides)} - {None}
        require(len(counts) <= 1, f"begin, end and strides have {sorted(c for c in counts if c is not None)} elements")
        steps = given[2]
        if steps is not None:
            require(0 not in steps, "a stride is 0")
        if any(g is None for g in given):
            count = next(iter(counts), None)
            if count is not None:
                return x.result(self._unknown(x, count))
            same = not (self.new_axis_mask or self.shrink_axis_mask)
            return x.result((None,) * x.rank) if same else unranked(x.dtype)
        b, e, s = (g or () for g in given)
        shape: list[Dim] = []
        for axis, part in self.parts(x.rank, b, e, s):
            if axis is None:
                shape.append(1)
            elif not isinstance(part, slice):  # an index, which may be symbolic
                self._index(part, x.shape[axis], axis)
            else:
                d = x.shape[axis]
                shape.append(d if part == slice(None, None, 1) else None if d is None else shapes.span(part, d)[1])
        return x.result(tuple(shape))

    def picks(self, begin: TensorType) -> bool:
        """Whether the operation removes an axis at an index that is known only at run time."""
        return bool(self.shrink_axis_mask) and begin.value is None

    def _unknown(self, x: TensorType, count: int) -> Shape:
        """The result's shape if the bounds are unknown: its rank is known."""
        out: list[Dim] = []
        for axis, part in self.parts(x.rank, (0,) * count, (1,) * count, (1,) * count):
            if isinstance(part, slice):
                out.append(1 if axis is None else x.shape[axis] if part == slice(None, None, 1) else None)
        return tuple(out)

    def parts(
        self, rank: int, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]
    ) -> list[tuple[int | None, slice | int]]:
        """For each position the axis of x (None for a new one) and what is selected of it: a slice, or one index."""
        count = len(begin)
        if not (self.ellipsis_mask or self.new_axis_mask) and count <= rank:
            named_parts = [(i, self._part(i, begin[i], end[i], strides[i])) for i in range(count)]
            return [*named_parts, *((a, slice(None, None, 1)) for a in range(count, rank))]
        ellipsis = next((i for i in range(count) if self.ellipsis_mask >> i & 1), None)
        # As in TensorFlow, the ellipsis takes precedence over other masks, and a new axis is not removed.
        new = [i for i in range(count) if self.new_axis_mask >> i & 1 and i != ellipsis]
        named = count - len(new) - (ellipsis is not None)
        require(named <= rank, f"{named} axes are sliced, expected at most the rank of {rank}")
        found: list[tuple[int | None, slice | int]] = []
        axis = 0
        for i in range(count):
            if i == ellipsis:
                rest = rank - named
                found += [(a, slice(None, None, 1)) for a in range(axis, axis + rest)]
                axis += rest
            elif i in new:
                found.append((None, slice(None)))
            else:
                found.append((axis, self._part(i, begin[i], end[i], strides[i])))
                axis += 1
        return found + [(a, slice(None, None, 1)) for a in range(axis, rank)]

    def _part(self, i: int, begin: int, end: int, stride: int) -> slice | int:
        if self.shrink_axis_mask >> i & 1:
            return 0 if self.begin_mask >> i & 1 and stride > 0 else begin
        if self.offset:
            end += begin
        return slice(None if self.begin_mask >> i & 1 else begin, None if self.end_mask >> i & 1 else end, stride)

    @staticmethod
    def _index(index: int, size: Dim, axis: int) -> None:
        if size is not None and not -size <= index < size:
            raise RuleError(f"index {index} along axis {axis} is outside of its {size} elements")

    def evaluate(self, x: Array, begin: Array, end: Array, strides: Array) -> Array:
        return np.asarray(self.view(x, sv.values(begin), sv.values(end), sv.values(strides)), order="C")

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        begin, end, strides = (types.input(i).value for i in (1, 2, 3))
        if begin is None or end is None or strides is None:
            return None
        index = self._places(types.input(0).shape, sv.values(begin), sv.values(end), sv.values(strides))
        return sv.part(index)

    def view(self, x: Array, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """The result as a view of `x`; reads no element."""
        require(0 not in strides, "a stride is 0")
        return x[self._places(x.shape, begin, end, strides)]

    def _places(self, x: Shape, begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...]) -> sv.Index:
        """The result as an index of an array of this shape, which gives a view."""
        index: list[slice | int | None] = []
        for axis, part in self.parts(len(x), begin, end, strides):
            if axis is not None and not isinstance(part, slice):
                self._index(part, x[axis], axis)
            index.append(None if axis is None else part)
        return (*index, ...)  # the ellipsis makes it a view even if no axis is left


def _margins(x: TensorType, paddings: TensorType) -> list[tuple[int, int]] | None:
    """The number of elements before and after each axis, or None if unknown."""
    sv.require_index_type(paddings, "paddings")
    require(
        shapes.compatible(paddings.shape, (x.rank, 2)),
        f"paddings has shape {shapes.text(paddings.shape)}, expected [{x.rank}, 2]",
    )
    return None if paddings.value is None else sv.margins(paddings.value)


@frozen
class Pad(OnStored):
    """`x` padded with 0 (the zero point if quantised), or with a given value.

    - `x`: any
    - `paddings`: [rank, 2], the number of elements before and after each axis
    - `value`: one element of x's type, optional
    """

    def infer(self, x: TensorType, paddings: TensorType, value: TensorType | None = None) -> TensorType:
        if value is not None:
            require(value.dtype is x.dtype, f"the padding value is {value.dtype.text}, expected {x.dtype.text}")
            count = shapes.num_elements(value.shape)
            require(count in (1, None), f"the padding value has {count} elements, expected 1")
        return x.result(sv.wider(x.shape, _margins(x, paddings)))

    def evaluate(self, x: Array, paddings: Array, value: Array | None = None) -> Array:
        return _pad(x, paddings, 0 if value is None else value.reshape(())[()])

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        paddings = types.input(1).value
        if paddings is None:
            return None
        inside = sv.inside(shapes.static(types.input(0).shape), sv.margins(paddings))
        return sv.padded(shapes.static(types.output.shape), inside)

    def evaluate_quantized(self, types: CallTypes, x: Array, paddings: Array, value: Array | None = None) -> Array:
        if value is not None:
            return self.evaluate(x, paddings, value)
        quantization = types.input(0).quantization
        return _pad(x, paddings, 0 if quantization is None else quantization.zero_point)


def _pad(x: Array, paddings: Array, value: object) -> Array:
    pairs = sv.margins(paddings)
    out = np.full(shapes.static(sv.wider(x.shape, pairs)), value, x.dtype)
    out[sv.inside(x.shape, pairs)] = x
    return out


class Mirror(Enum):
    """Whether mirrored padding excludes the border element (REFLECT) or repeats it (SYMMETRIC)."""

    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


@frozen
class MirrorPad(OnStored):
    """`x` padded with its own mirror image.

    - `x`: any
    - `paddings`: [rank, 2]; padding must not exceed the elements available to mirror
    """

    mode: Mirror = Mirror.REFLECT

    def infer(self, x: TensorType, paddings: TensorType) -> TensorType:
        pairs = _margins(x, paddings)
        if pairs is not None:
            self._checked(x.shape, pairs)
        return x.result(sv.wider(x.shape, pairs))

    def _checked(self, x: Shape, pairs: list[tuple[int, int]]) -> None:
        border = 1 if self.mode is Mirror.REFLECT else 0
        for axis, (d, pair) in enumerate(zip(x, pairs, strict=True)):
            require(
                d is None or max(pair) <= max(d - border, 0),
                f"paddings {pair} along axis {axis} are larger than the {d} elements available to mirror",
            )

    def evaluate(self, x: Array, paddings: Array) -> Array:
        pairs = sv.margins(paddings)
        self._checked(x.shape, pairs)
        if self.mode is Mirror.REFLECT:
            return np.pad(x, pairs, mode="reflect")
        return np.pad(x, pairs, mode="symmetric")


@frozen
class Tile(OnStored):
    """`x` repeated along each axis.

    - `x`: any
    - `multiples`: non-negative integers, one per dimension of x
    """

    def infer(self, x: TensorType, multiples: TensorType) -> TensorType:
        found, count = sv.flattened(multiples, "multiples"), shapes.num_elements(multiples.shape)
        require(count in (x.rank, None), f"multiples has {count} elements, expected {x.rank}")
        return x.result(sv.unknown(x.rank) if found is None else self._shape(x.shape, found))

    @staticmethod
    def _shape(x: Shape, multiples: tuple[int, ...]) -> Shape:
        if not all(m >= 0 for m in multiples):
            raise RuleError(f"multiples is {shapes.text(multiples)}, expected no negative number")
        out = tuple(None if d is None else d * m for d, m in zip(x, multiples, strict=True))
        sv.checked_shape(tuple(d for d in out if d is not None), "the tiled shape")
        return out

    def evaluate(self, x: Array, multiples: Array) -> Array:
        times = sv.values(multiples)
        return sv.tiled(x.shape, times, shapes.static(self._shape(x.shape, times)))(x)

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        multiples, x = types.input(1).value, shapes.static(types.input(0).shape)
        return None if multiples is None else sv.tiled(x, sv.values(multiples), shapes.static(types.output.shape))


@frozen
class Repeat(OnStored):
    """`x` with each slice along `axis` repeated as often as `counts` says, one behind the other.

    - `x`: any, of rank 1 or more
    - `counts`: non-negative integers of rank 1, one per slice; or one for all
    """

    axis: int = 0

    def infer(self, x: TensorType, counts: TensorType) -> TensorType:
        found = sv.integers(counts, "counts")
        at = shapes.normalize_axis(self.axis, x.rank)
        require(counts.rank == 1, f"counts has rank {counts.rank}, expected 1")
        fits = counts.shape[0] in (1, None) or x.shape[at] in (counts.shape[0], None)
        require(fits, f"counts has {counts.shape[0]} elements, expected {x.shape[at]}")
        length = x.shape[at]
        if found is None or length is None:
            return x.result((*x.shape[:at], None, *x.shape[at + 1 :]))
        return x.result(self._shape(x.shape, at, np.array(found)))

    @staticmethod
    def _shape(x: Shape, at: int, counts: Array) -> Shape:
        low, high = (int(counts.min()), int(counts.max())) if counts.size else (0, 0)
        require(low >= 0, f"a slice is repeated {low} times, expected no negative number")
        sv.checked_shape((high,), "the repeated shape")  # so that the sum cannot overflow
        length = x[at] if counts.size == 1 else 1
        total = int(counts.sum(dtype=np.int64)) * (length or 0)
        out = (*x[:at], total, *x[at + 1 :])
        sv.checked_shape(tuple(d for d in out if d is not None), "the repeated shape")
        return out

    def evaluate(self, x: Array, counts: Array) -> Array:
        at = shapes.normalize_axis(self.axis, x.ndim)
        self._shape(x.shape, at, counts)
        return np.repeat(x, counts, at)


@frozen
class BroadcastTo(OnStored):
    """`x` broadcast to a given shape: repeated along dimensions of 1 and new leading dimensions.

    - `x`: any
    - `shape`: integers of rank 1
    """

    def infer(self, x: TensorType, shape: TensorType) -> TensorType:
        wanted = sv.integers(shape, "the shape")
        if wanted is None:
            return sv.of_shape(x.dtype, shape, "the shape")
        return x.result(self._shape(x.shape, wanted))

    @staticmethod
    def _shape(x: Shape, wanted: tuple[int, ...]) -> Shape:
        sv.checked_shape(wanted, "the shape")
        fits = (
            len(x) <= len(wanted)
            and all(
                (isinstance(d, int) and d == 1) or d in (None, w, 1)  # a symbolic size is first compared with its own
                for d, w in zip(x, wanted[len(wanted) - len(x) :], strict=True)
            )
        )
        if not fits:
            raise RuleError(f"shape {shapes.text(x)} does not broadcast to {shapes.text(wanted)}")
        return wanted

    def evaluate(self, x: Array, shape: Array) -> Array:
        wanted = sv.values(shape)
        self._shape(x.shape, wanted)
        return sv.broadcast(wanted)(x)

    def sized(self, types: CallTypes) -> Callable[..., Array]:
        return sv.broadcast(shapes.static(types.output.shape))


@frozen
class BroadcastArgs(OnStored):
    """The shape to which two shapes broadcast.

    - `a`, `b`: shapes, integers of rank 1 and one type
    """

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        for operand, name in ((a, "the first shape"), (b, "the second shape")):
            sv.integers(operand, name)
        require(a.dtype is b.dtype, f"BroadcastArgs is given {a.dtype.text} and {b.dtype.text}, expected one type")
        lengths = (sv.length(a), sv.length(b))
        return a.result((None if None in lengths else max(d for d in lengths if d is not None),))

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.array(shapes.broadcast([sv.values(a), sv.values(b)]), a.dtype).reshape(-1)
