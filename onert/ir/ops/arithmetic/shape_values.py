"""Shapes and indices that operations receive as tensors."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import require
from onert.ir.shape import MAX_ELEMENTS, MAX_RANK, Dim, Shape, num_elements, text
from onert.ir.types import TensorType, unranked


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
