"""Several requests that are run as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onert.host.device_manager import Result
from onert.host.network import Network
from onert.ir import Array

from .request import Request


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
        """What each of the requests is to be answered, of what came of them together; arrays of their own."""
        if isinstance(result, BaseException):
            return [result] * len(self.requests)
        if self.size is None:
            return list(result)
        rows = [len(array) // self.size for array in result]
        return [
            [array[at * step : (at + 1) * step].copy() for array, step in zip(result, rows, strict=True)]
            for at in range(len(self.requests))
        ]


def _stacked(requests: Sequence[Request], size: int) -> tuple[Array, ...]:
    filled = [*requests, *[requests[-1]] * (size - len(requests))]
    if size == 1:
        return tuple(filled[0].inputs)
    return tuple(np.concatenate(arrays) for arrays in zip(*(request.inputs for request in filled), strict=True))
