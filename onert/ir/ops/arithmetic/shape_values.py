"""Shapes and indices that operations receive as tensors, and functions that move elements by them (`Op.sized`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import require
from onert.ir.shape import MAX_ELEMENTS, MAX_RANK, Dim, Shape, num_elements, text
from onert.ir.types import TensorType, unranked

Index = tuple[Any, ...]
"""An index of an array."""


def integers(x: TensorType, name: str) -> tuple[int, ...] | None:
    """The elements of an integer operand of rank 0 or 1, or None if unknown. Raises RuleError for another operand."""
    require(x.dtype.is_integer, f"{name} holds {x.dtype.text}, expected integers")
    require(x.rank <= 1, f"{name} has rank {x.rank}, expected 1")
    return None if x.value is None else values(x.value)


def flattened(x: TensorType, name: str) -> tuple[int, ...] | None:
    """The elements of an integer operand of any rank, or None if unknown. Raises RuleError for another operand.

    Some of LiteRT's kernels count an operand's elements and ignore its rank.
    """
    require(x.dtype.is_integer, f"{name} holds {x.dtype.text}, expected integers")
    return None if x.value is None else values(x.value)


def one_integer(x: TensorType, name: str) -> int | None:
    """The only element of an integer operand of any rank, or None if unknown. RuleError for another operand."""
    count = num_elements(x.shape)
    require(count in (1, None), f"{name} has {count} elements, expected 1")
    found = flattened(x, name)
    return None if found is None else found[0]


def values(x: Array) -> tuple[int, ...]:
    """The elements of an array of integers, or of objects that are integers or symbolic numbers."""
    elements = x.reshape(-1)
    if x.dtype.kind in "iu":
        return tuple(elements.tolist())
    return tuple(elements) if x.dtype == object else tuple(int(v) for v in elements)


def two(x: Array) -> tuple[int, int]:
    """The two elements of an array, as in `values`."""
    first, second = values(x)
    return first, second


def pairs_text(pairs: Sequence[tuple[int, int]]) -> str:
    """Pairs as messages write them: `[(1, 2), (0, 0)]`."""
    return "[" + ", ".join(f"({a}, {b})" for a, b in pairs) + "]"


def length(x: TensorType) -> Dim:
    """The number of elements of an operand of rank 0 or 1; None if it is unknown."""
    return 1 if x.rank == 0 else x.shape[0]


def checked_shape(dims: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Dimensions given by an operand. Raises RuleError if one is negative or there are too many elements."""
    if len(dims) > MAX_RANK:
        raise RuleError(f"{name} has {len(dims)} dimensions, more than {MAX_RANK}")
    total = 1
    for d in dims:  # messages are written only where they are needed: runs check computed shapes
        if not d >= 0:
            raise RuleError(f"{name} is {text(dims)}, expected no negative dimension")
        total *= d
    if not total <= MAX_ELEMENTS:
        raise RuleError(f"{name} is {text(dims)}, more than {MAX_ELEMENTS} elements")
    return dims


def of_shape(dtype: DType, dims: TensorType, name: str) -> TensorType:
    """A tensor whose shape is given by an operand of rank 1, as far as it is known. RuleError as `checked_shape`."""
    found, rank = integers(dims, name), length(dims)
    if found is not None:
        return TensorType(dtype, checked_shape(found, name))
    return unranked(dtype) if rank is None else TensorType(dtype, unknown(rank))


def unknown(rank: int) -> Shape:
    """The shape of this rank in which no dimension is known."""
    return (None,) * rank


def require_index_type(x: TensorType, name: str) -> None:
    """Raises RuleError unless the operand's element type is an integer type that may hold indices."""
    if x.dtype not in (DType.INT32, DType.INT64, DType.INT16, DType.INT8, DType.UINT8, DType.UINT32):
        raise RuleError(f"{name} holds {x.dtype.text}, expected integers")


def margins(paddings: Array) -> list[tuple[int, int]]:
    """Pairs of margins. Raises RuleError if one is negative."""
    found = values(paddings)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    if not all(a >= 0 and b >= 0 for a, b in pairs):
        raise RuleError(f"paddings is {pairs_text(pairs)}, expected no negatives")
    return pairs


def wider(x: Shape, pairs: list[tuple[int, int]] | None) -> Shape:
    """The shape with margins, as far as they are known. Raises RuleError as `checked_shape`."""
    if pairs is None:
        return unknown(len(x))
    wide = tuple(None if d is None else d + a + b for d, (a, b) in zip(x, pairs, strict=True))
    checked_shape(tuple(d for d in wide if d is not None), "the padded shape")
    return wide


def inside(x: tuple[int, ...], pairs: list[tuple[int, int]]) -> Index:
    """Where an array of this shape is in the padded one."""
    return tuple(slice(a, a + d) for (a, _), d in zip(pairs, x, strict=True))


def part(index: Index) -> Callable[..., Array]:
    """The elements of an array at this index, which gives a view."""
    return lambda x, *_: x[index].copy()


def filled(shape: tuple[int, ...]) -> Callable[..., Array]:
    """An array of this shape, filled with the one element of the second operand."""

    def fill(_: Array, value: Array) -> Array:
        out = np.empty(shape, value.dtype)
        out[...] = value.reshape(())
        return out

    return fill


def padded(shape: tuple[int, ...], inside: Index) -> Callable[..., Array]:
    """An array of this shape with the first operand `inside`, filled with the third, otherwise with 0."""

    def pad(x: Array, _: Array, value: Array | None = None) -> Array:
        out = np.empty(shape, x.dtype)
        out[...] = 0 if value is None else value.reshape(())
        out[inside] = x
        return out

    return pad


def tiled(x: tuple[int, ...], times: tuple[int, ...], shape: tuple[int, ...]) -> Callable[..., Array]:
    """An array of the shape `x` repeated along each axis."""
    apart, each = tuple(n for pair in zip(times, x, strict=True) for n in pair), tuple(n for d in x for n in (1, d))

    def tile(array: Array, *_: Array) -> Array:
        out = np.empty(shape, array.dtype)
        out.reshape(apart)[...] = array.reshape(each)  # `np.tile` takes longer
        return out

    return tile


def broadcast(shape: tuple[int, ...]) -> Callable[..., Array]:
    """An array broadcast to this shape."""

    def spread(x: Array, *_: Array) -> Array:
        out = np.empty(shape, x.dtype)
        out[...] = x  # `np.broadcast_to` takes longer
        return out

    return spread
