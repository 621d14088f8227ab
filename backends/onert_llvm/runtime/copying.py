"""Runs that end with copies: a model's variables get their new values without another call."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import partial
from typing import Any, Self

import numpy as np

from onert.ir import Array


class Copying(partial[None]):
    """Runs commands on the calling thread and then copies arrays, in one call of native code (see `run.ll`)."""

    __slots__ = ("_keep",)

    _keep: object

    def __new__(cls, address: int, run: tuple[Any, ...], pairs: Iterable[tuple[Array, Array]], keep: object) -> Self:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        arrays = tuple(pairs)
        copies = np.array([(to.ctypes.data, source.ctypes.data, to.nbytes) for to, source in arrays], np.int64)
        native = ctypes.CFUNCTYPE(None, pointer, integer, pointer, integer)(address)
        self = super().__new__(cls, native, *run, pointer(copies.ctypes.data), integer(len(arrays)))
        self._keep = copies, arrays, keep
        return self
