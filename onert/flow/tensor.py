"""Tensors: views of memory with the methods of Myelin's, and Python's buffer protocol."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from onert.backend import HOST
from onert.ir import Array, DType, TensorType

from .errors import FormatError, KeyRangeError

_C_TYPES: Mapping[DType, type[Any]] = {
    DType.FLOAT32: ctypes.c_float,
    DType.FLOAT64: ctypes.c_double,
    DType.INT8: ctypes.c_int8,
    DType.INT16: ctypes.c_int16,
    DType.INT32: ctypes.c_int32,
    DType.INT64: ctypes.c_int64,
    DType.UINT8: ctypes.c_uint8,
    DType.UINT16: ctypes.c_uint16,
    DType.UINT32: ctypes.c_uint32,
    DType.UINT64: ctypes.c_uint64,
    DType.BOOL: ctypes.c_bool,
}
"""Element types that C has: before Python 3.12 only types written in C, such as ctypes', have a buffer."""


class Tensor:
    """A view of the elements of a tensor, which it keeps alive.

    `t[i, j]` is an element, negative indices count from the end; with a rank above 1, `t[i]` is the element at position
    `i` in row-major order. Elements can be assigned. `np.asarray(t)` is an array that shares the elements. A read-only
    tensor has no buffer and can only be read through NumPy.
    """

    _name: str
    _array: Array

    def name(self) -> str:
        """The name of the variable."""
        return self._name

    def rank(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def shape(self) -> list[int]:
        """The sizes of the dimensions."""
        return list(self._array.shape)

    def type(self) -> str:
        """The name of the element type."""
        return str(self._array.dtype)

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.reshape(-1).tolist())

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._place(key)].item()

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._array.flags.writeable:
            raise FormatError(f"'{self._name}' is a constant of compiled code; only learnable variables can be changed")
        try:
            self._array[self._place(key)] = value
        except (TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"'{self._name}' of type {self.type()} cannot hold {value!r:.80}: {error}") from error

    def _place(self, key: Any) -> tuple[int, ...]:
        """The indices of an element. Raises KeyRangeError, an IndexError, if it does not exist."""
        shape = self._array.shape
        if not shape:
            return ()
        try:
            at = tuple(map(index, key)) if isinstance(key, tuple) else (index(key),)
        except TypeError as error:
            raise KeyRangeError(f"'{self._name}' has no element {key!r:.80}, expected integers") from error
        if len(at) == 1 and len(shape) > 1:
            if not 0 <= at[0] < self._array.size:
                raise KeyRangeError(f"'{self._name}' has no element {at[0]}, expected 0 to {self._array.size - 1}")
            return tuple(int(i) for i in np.unravel_index(at[0], shape))
        if len(at) != len(shape) or not all(-size <= i < size for i, size in zip(at, shape, strict=True)):
            raise KeyRangeError(f"'{self._name}' of shape {list(shape)} has no element {list(at)}")
        return at

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's access to elements without a buffer. Raises AttributeError for types that NumPy cannot name."""
        if self._array.dtype.kind == "V":
            raise AttributeError(f"NumPy has no name for {self._array.dtype}")
        found: dict[str, Any] = self._array.__array_interface__
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The elements as an array, for types that NumPy cannot name."""
        return np.array(self._array, dtype, copy=copy)

    def __repr__(self) -> str:
        return str(self._array)


@lru_cache(1024)
def _kind(dtype: DType, shape: tuple[int, ...]) -> type[Any]:
    """The class of writable tensors of a type: a subclass of a ctypes array, which has a buffer."""
    found: Any = _C_TYPES[dtype]
    for size in reversed(shape):
        found *= size
    return type("Tensor", (Tensor, found), {})


class _Strided(Tensor, np.ndarray[Any, Any]):
    """The class of column-major tensors: a subclass of NumPy's arrays, whose buffers have strides."""


def tensor(name: str, array: Array) -> Tensor:
    """A tensor over the elements of an array."""
    dtype = DType.from_numpy(array.dtype)
    found: Tensor
    if not array.flags.c_contiguous:
        found = array.view(_Strided)
    elif not array.flags.writeable or dtype not in _C_TYPES:
        found = Tensor()
    else:
        found = _kind(dtype, array.shape).from_buffer(array if array.size else bytearray(array.itemsize))
    found._name = name
    found._array = array
    return found


def memory_for(type_: TensorType) -> Array:
    """Zeros of a static type, aligned to a cache line."""
    return HOST.view(HOST.allocate(type_.nbytes), 0, type_)


def fill(name: str, target: Array, value: Any) -> None:
    """Copy the elements of an object with a buffer into a tensor, or a number into a tensor of one element.

    Raises FormatError, a TypeError, if the element type or the shape differs.
    """
    if isinstance(value, bool | int | float | np.generic):
        if target.size != 1:
            raise FormatError(f"'{name}' has {target.size} elements, but is given one number")
        given = np.full(target.shape, value).astype(target.dtype) if target.size else target
    else:
        given = np.asarray(value)
        if given.dtype != target.dtype:
            raise FormatError(f"'{name}' is given elements of type {given.dtype}, expected {target.dtype}")
        if given.shape != target.shape:
            raise FormatError(f"'{name}' is given shape {list(given.shape)}, expected {list(target.shape)}")
    if not target.flags.writeable:
        raise FormatError(f"'{name}' is a constant of compiled code; make the variable learnable to change it")
    np.copyto(target, given)


def value_of(name: str, array: Array) -> Any:
    """The value for a key: a tensor, or the element if there is only one."""
    return array.reshape(-1)[0].item() if math.prod(array.shape) == 1 else tensor(name, array)
