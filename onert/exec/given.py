"""What a caller gives as an input, as an array of the input's element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError


def elements(info: TensorInfo, given: Any) -> Array:
    """The array of what is given for an input: numbers and lists are converted, texts become UTF-8.

    ExecutionError if it is no array, or has another element type than the input.
    """
    array = np.asarray(given, info.dtype.numpy) if isinstance(given, int | float | bool | list) else given
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not isinstance(array, np.ndarray):
        raise ExecutionError(f"input {info.name!r} is given a {type(given).__name__}, expected a NumPy array")
    if info.dtype.is_handle and array.dtype.kind in "SU":
        array = np.array([x if isinstance(x, bytes) else x.encode() for x in array.ravel().tolist()], object).reshape(
            array.shape
        )
    if array.dtype != info.dtype.numpy:
        raise ExecutionError(
            f"input {info.name!r} is given elements of type {array.dtype}, expected {info.dtype.numpy}"
        )
    return array
