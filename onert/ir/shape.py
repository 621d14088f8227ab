"""Shapes: tuples of dimensions, where None is an unknown dimension."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from .errors import RuleError

Dim = int | None
Shape = tuple[Dim, ...]

MAX_RANK = 16  # guards against malicious files; NumPy 2 itself supports at most 64 dimensions
MAX_ELEMENTS = 1 << 40  # far more than any real tensor, and small enough that sizes do not overflow


def is_static(shape: Shape) -> bool:
    """Whether every dimension is known."""
    return None not in shape


def static(shape: Shape) -> tuple[int, ...]:
    """`shape`, all of whose dimensions must be known. Raises RuleError if one is not."""
    if None in shape:
        raise RuleError(f"shape {text(shape)} has an unknown dimension, expected a static shape")
    return cast(tuple[int, ...], shape)


def num_elements(shape: Shape) -> Dim:
    """The product of the dimensions; None if one is unknown (even beside a 0)."""
    total = 1
    for d in shape:
        if d is None:
            return None
        total *= d
    return total


def text(shape: Shape) -> str:
    """The shape as messages write it: `[1, ?, 3]`."""
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"


def compatible(a: Shape, b: Shape) -> bool:
    """Whether a run-time shape can match both `a` and `b`."""
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def merge(a: Shape, b: Shape) -> Shape:
    """The compatible shapes `a` and `b` combined: a dimension is known if either knows it."""
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape that results from NumPy's broadcasting. Raises RuleError if two dimensions differ and neither is 1.

    An unknown dimension beside a known one larger than 1 must equal it; beside 1 it stays unknown.
    """
    shapes = list(shapes)
    rank = max((len(s) for s in shapes), default=0)
    out: list[Dim] = []
    for axis in range(-rank, 0):
        sizes = dict.fromkeys(s[axis] for s in shapes if len(s) >= -axis)
        sizes.pop(1, None)  # as keys, sizes that depend on lengths are not compared
        known: Dim = None
        for d in sizes:
            if isinstance(d, int) or (None not in sizes and (len(sizes) == 1 or d != 1)):
                if known not in (None, d):
                    raise RuleError(f"shapes {' and '.join(text(x) for x in shapes)} do not broadcast")
                known = d
        # Sizes that depend on lengths may all be found to be 1.
        out.append(1 if known is None and None not in sizes else known)
    return tuple(out)


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises RuleError unless -rank <= axis < rank."""
    if not -rank <= axis < rank:
        raise RuleError(f"axis {axis} is outside [{-rank}, {rank}) for rank {rank}")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes counted from the front, sorted and without duplicates."""
    return tuple(sorted({normalize_axis(int(a), rank) for a in axes}))


def times(d: Dim, by: int) -> Dim:
    """A dimension multiplied by a factor."""
    return None if d is None else d * by


def span(part: slice, size: int) -> tuple[int, int, int]:
    """The first index, number of elements and step of a slice of an axis of `size` elements, by Python's rules."""
    step = 1 if part.step is None else part.step
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clipped(at: int) -> int:
        at = at + size if at < 0 else at
        return low if at < low else high if at > high else at

    if step > 0:
        start = low if part.start is None else clipped(part.start)
        stop = high if part.stop is None else clipped(part.stop)
        many = -(-(stop - start) // step)
    else:
        start = high if part.start is None else clipped(part.start)
        stop = low if part.stop is None else clipped(part.stop)
        many = -(-(start - stop) // -step)
    return start, many if many > 0 else 0, step
