"""Several requests that run together."""

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
"""Outputs of at most this many bytes are shared: each request gets a view, and the array lives until all are gone.
Copying each row by itself would take half as long as everything else that is done for its request."""


class BatchRequest(Request):
    """Requests that are given to a device together. They are answered individually.

    `size` is the compiled batch size: inputs are concatenated along the first dimension and padded with the last
    request's. None: the network is run for each request, one after another. `owner` is called with the result.
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
        """Split the result of the batch into the results of its requests.

        Each request gets its own arrays: views of a shared array if the outputs are small, otherwise parts of copies.
        """
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
    """The rows of an array, as views of copies of about `nbytes` bytes each (at least one row)."""
    step = max(1, nbytes // max(1, array[0].nbytes))
    for at in range(0, len(array), step):
        yield from array[at : at + step].copy()


def _stacked(requests: Sequence[Request], size: int) -> tuple[Array, ...]:
    filled = [*requests, *[requests[-1]] * (size - len(requests))]
    if size == 1:
        return tuple(filled[0].inputs)
    return tuple(_joined(arrays) for arrays in zip(*(request.inputs for request in filled), strict=True))


def _joined(arrays: Sequence[Array]) -> Array:
    """Concatenate arrays of the same type and shape.

    They are copied in one call that releases the interpreter's lock at most once. NumPy releases it for each array, and
    another thread may then hold it for milliseconds each time.
    """
    first = arrays[0]
    if first.size and first.dtype.isbuiltin == 1:
        buffers: Any = arrays
        with suppress(BufferError, ValueError):  # not contiguous
            whole = np.frombuffer(b"".join(buffers), first.dtype)
            return whole.reshape(len(arrays) * len(first), *first.shape[1:])
    return np.concatenate(arrays)
