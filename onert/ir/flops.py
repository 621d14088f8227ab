"""Counting additions and multiplications of operations whose types are static, and rounds of Python's loops."""

from __future__ import annotations

from math import prod

from .shape import Shape
from .types import CallTypes, TensorType

BLOCK_ELEMENTS = 1 << 22
"""Of what a window meets, how much is gathered at a time."""


def elementwise(types: CallTypes) -> int:
    """One for each element that is computed."""
    return sum(_size(t) for t in types.outputs)


def filtered(types: CallTypes, axis: int = 0) -> int:
    """Each output: a product and a sum for every element of its filter; filters lie along `axis` of the weights."""
    weight = types.input(1)
    return 2 * _size(types.output) * _size(weight) // max(_dim(weight, axis), 1)


def scattered(x: TensorType, weight: TensorType) -> int:
    """Transposed convolution: each input element meets every element of the filters that see it."""
    return 2 * _size(x) * _size(weight) // max(_dim(x, -1), 1)


def products(types: CallTypes, axis: int) -> int:
    """Each output: a product and a sum for every element of the first operand along `axis`."""
    return 2 * _size(types.output) * _dim(types.input(0), axis)


def windows(types: CallTypes, size: int) -> int:
    """Each output: one for every element of its window."""
    return _size(types.output) * size


def gates(types: CallTypes) -> int:
    """Recurrent cells: each item of a sequence meets every weight once."""
    x = types.input(0)
    weights = sum(_size(t) for t in types.inputs[1:] if t is not None and t.rank == 2)
    return 2 * weights * _size(x) // max(_dim(x, -1), 1)


def tapped(types: CallTypes, window: Shape, x: int = 0) -> int:
    """Rounds of a sliding window: its elements, again for each block of what it meets."""
    given, made = types.input(x), types.output
    elements = prod(d or 0 for d in window)
    meets = _size(made) // max(_dim(made, -1), 1) * elements * _dim(given, -1)
    return elements * (_dim(given, 0) + meets // BLOCK_ELEMENTS)


def stepped(types: CallTypes) -> int:
    """Rounds of recurrent cells: each step of a sequence takes some ten. Which dimension has the steps is not asked."""
    return 10 * sum(d or 0 for d in types.input(0).shape[:-1])


def _size(type_: TensorType) -> int:
    return prod(d or 0 for d in type_.shape)


def _dim(type_: TensorType, axis: int) -> int:
    return type_.shape[axis] or 0
