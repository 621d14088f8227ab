"""Memory for native code."""

from __future__ import annotations

import numpy as np

from onert.ir import Array


def aligned(array: Array) -> Array:
    """A contiguous copy that starts on a cache line."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out
