"""Several requests that are run as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from onert.host.device_manager import Result
from onert.host.network import Network
from onert.ir import Array

from .request import Request

_SHARED = 1 << 18
"""Bytes of a batch's outputs up to which requests are given parts of one array, which is there until all of them are
gone: to copy a row takes longer than all else that is done for its request.
"""


class BatchRequest(Request):
    """Requests that a device is given at once. It is answered by answering them.

    `size` is how many the network is compiled for: their inputs are joined along the first dimension, filled up with
    the last request's. None: the network is run for each of them, one after the other. `owner` is told the result.
    """

    __slots__ = ("owner", "requests", "size")

    def __init__(
        self,
        network: Network,
        requests: Sequence[Request],
        size: int | None,
        owner: Callable[[BatchRequest, Any], None],
    ) -> None:
        first = requests[0]
        inputs = () if size is None else _stacked(requests, size)
        super().__init__(network, inputs, first.priority, first.number, first.begun, None)
        self.requests = tuple(requests)
        self.size = size
        self.owner = owner

    def parts(self, result: Any) -> list[Result]:
        """What each of the requests is to be answered, of what came of them together: arrays that no other request is
        given, parts of one where that is small."""
        if isinstance(result, BaseException):
            return [result] * len(self.requests)
        if self.size is None:
            return list(result)
        count, size = len(self.requests), self.size
        each: list[Iterable[Array]] = [
            array.reshape(size, len(array) // size, *array.shape[1:])[:count] for array in result
        ]
        if sum(array.nbytes for array in result) > _SHARED:
            each = [[rows.copy() for rows in array] for array in each]
        return list(zip(*each, strict=True))


def _stacked(requests: Sequence[Request], size: int) -> tuple[Array, ...]:
    filled = [*requests, *[requests[-1]] * (size - len(requests))]
    if size == 1:
        return tuple(filled[0].inputs)
    return tuple(_joined(arrays) for arrays in zip(*(request.inputs for request in filled), strict=True))


def _joined(arrays: Sequence[Array]) -> Array:
    """Arrays of one type and shape, one after the other.

    They are copied in one call, which gives the interpreter's lock back once at most. NumPy gives it back for each
    array, and another thread may keep it for milliseconds each time.
    """
    first = arrays[0]
    if first.size and first.dtype.isbuiltin == 1:
        buffers: Any = arrays
        with suppress(BufferError, ValueError):  # not contiguous
            whole = np.frombuffer(b"".join(buffers), first.dtype)
            return whole.reshape(len(arrays) * len(first), *first.shape[1:])
    return np.concatenate(arrays)
