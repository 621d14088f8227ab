"""Several requests that are run as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from onert.host.device_manager import Result
from onert.host.network import Network
from onert.ir import Array

from .request import Request

_SHARED = 1 << 18
"""Bytes of outputs of which requests are given parts: they are there until all of these requests are gone. To copy each
row by itself takes as long as half of all else that is done for its request."""


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
        rows = [array.reshape(size, len(array) // size, *array.shape[1:])[:count] for array in result]
        each: list[Iterable[Array]] = list(rows)
        if sum(array.nbytes for array in result) > _SHARED:
            each = [_in_pieces(array, _SHARED // len(rows)) for array in rows]
        return list(zip(*each, strict=True))


def _in_pieces(array: Array, nbytes: int) -> Iterator[Array]:
    """The rows of an array, as parts of copies of so many bytes each, or of one row."""
    step = max(1, nbytes // max(1, array[0].nbytes))
    for at in range(0, len(array), step):
        yield from array[at : at + step].copy()


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
