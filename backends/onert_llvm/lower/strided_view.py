"""Strided views as in NumPy, but without memory and with sizes that may be symbolic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, Self

from attrs import evolve, frozen

from onert.ir.shape import span
from onert.ir.symbolic.sizes import are_same, is_broadcast
from onert.ir.value import Value

Index = slice | int | EllipsisType | None


@frozen
class StridedView(Value):
    """The layout of elements of `itemsize` bytes: sizes, strides and the offset of the first element in bytes. Slicing,
    transposing, reshaping and broadcasting follow NumPy's rules.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    offset: int = 0

    @classmethod
    def dense(cls, shape: Sequence[int], itemsize: int) -> Self:
        """A whole tensor in row-major order."""
        return cls(tuple(shape), tuple(itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))), itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's name
        return self.transpose(tuple(range(self.ndim))[::-1])

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, given as one sequence or as separate numbers."""
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], Iterable) else axes
        found = [axis + self.ndim if axis < 0 else axis for axis in order]
        return evolve(self, shape=tuple(self.shape[i] for i in found), strides=tuple(self.strides[i] for i in found))

    def swapaxes(self, a: int, b: int) -> Self:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def flip(self, axes: Sequence[int]) -> Self:
        """The given axes reversed."""
        if 0 in self.shape:
            return self
        offset = self.offset + sum(self.strides[i] * (self.shape[i] - 1) for i in axes)
        return evolve(self, offset=offset, strides=tuple(-s if i in axes else s for i, s in enumerate(self.strides)))

    def broadcast_to(self, shape: Sequence[int]) -> Self:
        """Broadcast along new leading axes and along axes of size 1."""
        more = len(shape) - self.ndim
        pairs = zip(self.shape, shape[more:], self.strides, strict=True)
        strides = tuple(0 if is_broadcast(own, wanted) else stride for own, wanted, stride in pairs)
        return evolve(self, shape=tuple(shape), strides=(0,) * more + strides)

    def reshape(self, *sizes: Any) -> Self:
        """The elements of a dense view in another shape; one size may be -1."""
        shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Iterable) else sizes
        own = type(self).dense(self.shape, self.itemsize)
        axes = zip(self.shape, self.strides, own.strides, strict=True)
        if any(not are_same(mine, dense) and size != 1 and mine != dense for size, mine, dense in axes):
            raise ValueError(f"{self} is not dense and cannot be reshaped to {shape}")
        given = [d for d in shape if not (isinstance(d, int) and d == -1)]
        if len(given) < len(shape):
            rest = math.prod(self.shape) // max(1, math.prod(given))
            shape = tuple(rest if isinstance(d, int) and d == -1 else d for d in shape)
        return evolve(type(self).dense(shape, self.itemsize), offset=self.offset)

    def __getitem__(self, given: Any) -> Self:
        index: tuple[Index, ...] = given if isinstance(given, tuple) else (given,)
        used = sum(part is not None and part is not ... for part in index)
        rest = (slice(None),) * (self.ndim - used)
        at = next((i for i, part in enumerate(index) if part is ...), len(index))
        shape, strides, offset, axis = [], [], self.offset, 0
        for part in (*index[:at], *rest, *index[at + 1 :]):
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(part, slice):
                start, count, step = span(part, size)
                offset += start * stride if count != 0 else 0
                shape.append(count)
                strides.append(stride * step)
            else:
                assert part is not ...
                if not -size <= part < size:
                    raise IndexError(f"index {part} is out of range for an axis of size {size}")
                offset += stride * (part + size if part < 0 else part)
        return evolve(self, shape=tuple(shape), strides=tuple(strides), offset=offset)
