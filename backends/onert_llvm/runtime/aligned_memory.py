"""Memory for native code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onert.ir import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_LINE = 64


def zeros(count: int, dtype: DTypeLike) -> Array:
    """So many zeros that start on a cache line."""
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
