"""Weights of layers, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from attrs import frozen

from onert.ir import Array, DType, ModelError
from onert.ir.value import Value

from .structure import DTYPES, Layer

INT8 = 2


@frozen(eq=False)
class Buffer(Value):
    """Elements as they are stored: TNN's number of their type, their shape where the file says it, and their bytes."""

    code: int
    shape: tuple[int, ...] | None
    content: memoryview | bytes

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.content) // DTYPES[self.code].itemsize

    def array(self) -> Array:
        """The elements, in one dimension."""
        dtype = DTYPES[self.code]
        stored = dtype.numpy if dtype is DType.BFLOAT16 else dtype.numpy.newbyteorder("<")
        return np.frombuffer(self.content, stored)

    def real(self) -> Array:
        """The elements as float32, in one dimension; those that are float32 stay in the file."""
        return self.array().astype(np.float32, copy=False)


@frozen
class Wish(Value):
    """What a layer needs: which buffer, of which shape, and how many products are added up with it.

    `terms` is 0 for what is added and 1 for what multiplies single elements; `integer` asks for stored integers.
    """

    part: str
    shape: tuple[int, ...]
    terms: int = 0
    integer: bool = False


class Weights(Protocol):
    """Where layers get their weights from."""

    def part(self, layer: Layer, wish: Wish) -> Buffer | None:
        """A buffer of a layer; None where the layer has none of this name."""

    def constant(self, name: str, shape: tuple[int, ...] | None) -> Buffer | None:
        """A blob that no layer makes; `shape` is what whoever needs it expects, if that can be told."""

    def scale(self, blob: str) -> Mapping[str, Buffer] | None:
        """The scales and zero points of a quantised blob."""

    @property
    def invents(self) -> bool:
        """Whether weights are made up, so that shapes have to be guessed where only a file would say them."""


def sized(buffer: Buffer, count: int, what: str) -> Buffer:
    """The buffer; ModelError unless it has so many elements."""
    if buffer.count != count:
        raise ModelError(f"{what} has {buffer.count} elements, expected {count}")
    return buffer
