"""Packed weights shared by programs, such as a model's programs for different lengths."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import ref

import numpy as np

from onert.ir import Array
from onert_llvm.runtime.aligned_memory import aligned

_Key = tuple[Hashable, ...]
_packed: dict[_Key, tuple[ref[Array], ref[Array]]] = {}
"""The array that owns the weights' memory and the packed array, by where the weights are and how they are packed. Both
are weak references."""


def shared(weights: Array, how: Hashable, pack: Callable[[], Array]) -> Array:
    """Constant weights as packed by `pack`, aligned; the same array as before if that is still in use.

    `how` distinguishes the packings of the same weights.
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
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
