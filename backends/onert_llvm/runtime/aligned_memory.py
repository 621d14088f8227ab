"""Aligned memory for native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from onert.ir import Array, DType
from onert.ir.process import imports
from onert.ir.value import ByIdentity, Value

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_LINE = 64


def zeros(count: int, dtype: DTypeLike) -> Array:
    """Zeros that start on a cache line."""
    kind = np.dtype(dtype)
    raw = np.zeros(count * kind.itemsize + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + count * kind.itemsize].view(kind)


def aligned(array: Array) -> Array:
    """The array, or a copy, that is contiguous and starts on a cache line."""
    if array.flags.c_contiguous and array.ctypes.data % _LINE == 0:
        return array
    out = zeros(array.size, array.dtype).reshape(array.shape)
    out[...] = array
    return out


@frozen(eq=False)
class Aligned(ByIdentity):
    """A constant that a function computes, contiguous and at the start of a cache line."""

    function: Callable[..., Array]

    def __call__(self, *numbers: int) -> Array:
        return aligned(self.function(*numbers))


@frozen(eq=False)
class NamedFunction(ByIdentity):
    """The same for a function that is known by its name, and its first arguments.

    A call raises LookupError if there is no function of this name.
    """

    name: str
    given: tuple[Any, ...]

    def __call__(self, *numbers: int) -> Array:
        function = imports.module("onert.ir.symbolic.functions").named(self.name)
        return aligned(function(*self.given, *numbers))


@frozen
class Elements(Value):
    """A constant whose elements are given numbers, as a function of these."""

    dtype: DType
    shape: tuple[int, ...]

    def __call__(self, *numbers: int) -> Array:
        return aligned(np.array(numbers, self.dtype.numpy).reshape(self.shape))

    @property
    def are_words(self) -> bool:
        """Whether elements have 32 or 64 bits, so that native code can store them."""
        return self.dtype.numpy.kind in "iuf" and self.dtype.itemsize in (4, 8)
