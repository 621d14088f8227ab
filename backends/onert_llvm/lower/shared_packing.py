"""Packed weights that programs share: those for other lengths of a model have the same weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import ref

import numpy as np

from onert.ir import Array
from onert_llvm.runtime.aligned_memory import aligned

_Key = tuple[Hashable, ...]
_packed: dict[_Key, tuple[ref[Array], ref[Array]]] = {}
"""By where weights lie and how they are packed: the array that owns the memory, and what was made of it. Both are there
as long as somebody else has them."""


def shared(weights: Array, how: Hashable, pack: Callable[[], Array]) -> Array:
    """What `pack` makes of constant weights, aligned; the same array as before where that was asked for and is in use.

    `how` tells apart all that may be made of the same weights.
    """
    owner = _owner(weights)
    key = (weights.ctypes.data, weights.shape, weights.strides, weights.dtype.str, how)
    known = _packed.get(key)
    if known is not None and known[0]() is owner:
        found = known[1]()
        if found is not None:
            return found
    made = aligned(pack())

    def forget(dead: ref[Array]) -> None:
        entry = _packed.get(key)
        if entry is not None and dead in entry:
            _packed.pop(key, None)

    _packed[key] = (ref(owner, forget), ref(made, forget))
    return made


def _owner(array: Array) -> Array:
    """The first of the arrays that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
