"""Counts the additions and multiplications, and the Python loop iterations, of operations with static types."""

from __future__ import annotations

from math import prod

from .shape import Shape
from .types import CallTypes, TensorType

BLOCK_ELEMENTS = 1 << 22
"""The most elements of a sliding window's input that are gathered at a time."""


def elementwise(types: CallTypes) -> int:
    """One operation per element of each result."""
    return sum(_size(t) for t in types.outputs)


def filtered(types: CallTypes, axis: int = 0) -> int:
    """A multiplication and an addition per output and element of its filter; `axis` of the weights counts filters."""
    weight = types.input(1)
    return 2 * _size(types.output) * _size(weight) // max(_dim(weight, axis), 1)


def scattered(x: TensorType, weight: TensorType) -> int:
    """Transposed convolution: a multiplication and an addition per input element and filter element it meets."""
    return 2 * _size(x) * _size(weight) // max(_dim(x, -1), 1)


def products(types: CallTypes, axis: int) -> int:
    """A multiplication and an addition per output and element of the first operand along `axis`."""
    return 2 * _size(types.output) * _dim(types.input(0), axis)


def windows(types: CallTypes, size: int) -> int:
    """One operation per output and element of its window, of `size` elements."""
    return _size(types.output) * size


def gates(types: CallTypes) -> int:
    """Recurrent cells: each item of a sequence is multiplied by every weight once."""
    x = types.input(0)
    weights = sum(_size(t) for t in types.inputs[1:] if t is not None and t.rank == 2)
    return 2 * weights * _size(x) // max(_dim(x, -1), 1)


def tapped(types: CallTypes, window: Shape, x: int = 0) -> int:
    """Loop iterations of a sliding window: one per window element, repeated for each block of gathered input."""
    given, made = types.input(x), types.output
    elements = prod(d or 0 for d in window)
    meets = _size(made) // max(_dim(made, -1), 1) * elements * _dim(given, -1)
    return elements * (_dim(given, 0) + meets // BLOCK_ELEMENTS)


def stepped(types: CallTypes) -> int:
    """Loop iterations of recurrent cells: about ten per step. Whichever leading dimension is time, all are counted."""
    return 10 * sum(d or 0 for d in types.input(0).shape[:-1])


def _size(type_: TensorType) -> int:
    return prod(d or 0 for d in type_.shape)


def _dim(type_: TensorType, axis: int) -> int:
    return type_.shape[axis] or 0
