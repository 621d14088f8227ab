"""Arrays in host memory: new ones, and copies between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import setitem
from typing import Any

import numpy as np

from onert.backend import HOST
from onert.ir import Array, ExecutionError, TensorType
from onert.ir import shape as shapes
from onert.ir.dtype import address


def copy(target: Array, source: Array) -> Callable[[], object]:
    """A call of a function written in C that copies an array to one of the same type and shape.

    It copies contiguous bytes if possible: for a few elements NumPy needs four times as long.
    """
    if is_contiguous(target, source):
        there, here = (array.reshape(-1).view(np.uint8).data for array in (target, source))
        return partial(setitem, there, slice(None), here)
    return partial(setitem, target, ..., source)


def is_contiguous(target: Array, source: Array) -> bool:
    """Whether two arrays of one type and shape are contiguous bytes."""
    contiguous = target.flags.c_contiguous and source.flags.c_contiguous
    return bool(target.size and contiguous and not target.dtype.hasobject)


def is_plain(target: Array, source: Array) -> bool:
    """Whether copying an array is copying bytes from one place to another."""
    return is_contiguous(target, source) and not np.may_share_memory(target, source)


class _Lendable(np.ndarray[Any, Any]):
    """Memory for an array whose users are known: NumPy has a view of a view keep only the memory itself alive, unless
    that is of another type than the views."""

    start: int


def fresh(type_: TensorType) -> Array:
    """Memory like `empty`'s, for a caller to keep: recycled by the C library, without being cleared. Raises
    ExecutionError if there is not enough."""
    try:
        raw = _Lendable(type_.nbytes + HOST.alignment, np.uint8)
    except MemoryError as error:
        raise ExecutionError(f"not enough memory for an output of {type_.nbytes} bytes") from error
    raw.start = -address(raw) % HOST.alignment
    return np.ndarray(shapes.static(type_.shape), type_.dtype.numpy, raw, raw.start)


def lent(array: Array) -> Array | None:
    """Another array with the memory of one from `fresh`, which lives as long as any view of it. None for others."""
    raw = array.base
    if not isinstance(raw, _Lendable):
        return None
    return np.ndarray(array.shape, array.dtype, raw, raw.start)


def empty(type_: TensorType) -> Array:
    """An array of a static type that starts on a cache line; its elements are arbitrary."""
    if type_.dtype.is_handle:
        return np.empty(shapes.static(type_.shape), object)
    return HOST.view(HOST.allocate(type_.nbytes), 0, type_)
