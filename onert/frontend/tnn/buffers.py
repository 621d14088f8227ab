"""Weights of layers, independent of their source."""

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
    """Stored elements: TNN's number of their type, their shape if the file declares it, and their bytes."""

    code: int
    shape: tuple[int, ...] | None
    content: memoryview | bytes

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.content) // DTYPES[self.code].itemsize

    def array(self) -> Array:
        """The elements as a vector."""
        dtype = DTYPES[self.code]
        stored = dtype.numpy if dtype is DType.BFLOAT16 else dtype.numpy.newbyteorder("<")
        return np.frombuffer(self.content, stored)

    def real(self) -> Array:
        """The elements as a float32 vector; a view if they are stored as float32."""
        return self.array().astype(np.float32, copy=False)


@frozen
class WeightRequest(Value):
    """A request for a buffer of a layer: its name, its shape, and how many products each sum with it has.

    `terms` is 0 for an added buffer and 1 for an elementwise factor; `integer` requests stored integers.
    """

    name: str
    shape: tuple[int, ...]
    terms: int = 0
    integer: bool = False


class Weights(Protocol):
    """A source of weights."""

    def buffer(self, layer: Layer, request: WeightRequest) -> Buffer | None:
        """A buffer of a layer; None if the layer has none of this name."""

    def constant(self, name: str, shape: tuple[int, ...] | None) -> Buffer | None:
        """A blob that no layer produces; `shape` is the shape that its reader expects, if known."""

    def scale(self, blob: str) -> Mapping[str, Buffer] | None:
        """The scales and zero points of a quantised blob; None if it has none."""

    @property
    def generated(self) -> bool:
        """Whether weights are generated, so that shapes that only a weight file contains have to be guessed."""


def sized(buffer: Buffer, count: int, what: str) -> Buffer:
    """The buffer. Raises ModelError unless it has `count` elements."""
    if buffer.count != count:
        raise ModelError(f"{what} has {buffer.count} elements, expected {count}")
    return buffer
