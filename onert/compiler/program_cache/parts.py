"""What a cached program takes from its package instead of storing it: large constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from onert.ir import Array, Constant, DType
from onert.ir.content import Content
from onert.ir.process.cached import cached
from onert.ir.process.digests import digest

from . import key as keys
from .encoding import encode
from .records import Records

Place = tuple[int, str, tuple[int, ...], str]
"""Where the elements of a constant are in the content: the offset in bytes, the element type, the shape, and their
digest."""

_INLINE_BYTES = 1 << 16
"""Constants of up to this many bytes, such as biases, are stored in the entry, so the model is not read for them."""


class Parts:
    """The objects that a program takes from its package, by number."""

    def __init__(self, members: Sequence[object]) -> None:
        self._members = members

    def numbers(self) -> dict[int, int]:
        """The numbers of members by identity."""
        return {id(part): at for at, part in enumerate(self._members)}

    def places(self, numbers: Sequence[int]) -> dict[int, Place]:
        """Where those of these members are that can be read without parsing the package."""
        return {}

    def locate(self, places: Mapping[int, Place]) -> None:
        """Read members from these places. Raises TypeError if they are none."""

    def __getitem__(self, at: int) -> object:
        return self._members[at]

    def check(self) -> None:
        """Do nothing: the package was checked when its key was made."""


class LazyParts(Parts):
    """The larger constants of models; entries contain all others. If the content has the elements of a constant as they
    are, they are read from there. The models are parsed when another one is first used."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._places: Mapping[int, Place] = {}

    def numbers(self) -> dict[int, int]:
        return {id(part): at for at, part in enumerate(self._constants) if part.array.nbytes > _INLINE_BYTES}

    def places(self, numbers: Sequence[int]) -> dict[int, Place]:
        whole = np.frombuffer(self._content.data, np.uint8)
        found = ((at, _place(self._constants[at].array, whole)) for at in numbers)
        return {at: place for at, place in found if place is not None}

    def locate(self, places: Mapping[int, Place]) -> None:
        for start, text, shape, expected in places.values():
            if not (type(start) is int and type(text) is str and type(shape) is tuple and type(expected) is str):
                raise TypeError("the places of constants have other fields")
        self._places = places

    def __getitem__(self, at: int) -> object:
        return Constant(partial(self._array, at))

    def _array(self, at: int) -> Array:
        place = self._places.get(at)
        read = None if place is None else _read(self._content, place)
        return self._constants[at].array if read is None else read

    def check(self) -> None:
        """Raise EncodeError if the models have operations declared by third-party code, the only part that can be."""
        operations = tuple(s.operations for model in self._content.models for s in model.subgraphs)
        encode(operations, Records(), self.numbers())

    @cached
    def _constants(self) -> tuple[Constant, ...]:
        return keys.constants_of(self._content.models)


def _place(array: Array, whole: Array) -> Place | None:
    """Where an array's elements are in the whole content; None if they are not a part of it."""
    start = array.ctypes.data - whole.ctypes.data
    if array.dtype == object or not array.flags.c_contiguous or not 0 <= start <= whole.nbytes - array.nbytes:
        return None
    elements = whole[start : start + array.nbytes]
    return start, DType.from_numpy(array.dtype).text, array.shape, digest(elements.data).hexdigest()


def _read(content: Content, place: Place) -> Array | None:
    """The elements at a place; None if they are others by now."""
    start, text, shape, expected = place
    dtype = DType.from_text(text).numpy
    raw = content.range(start, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
    if raw is None or digest(raw).hexdigest() != expected:
        return None
    return np.frombuffer(raw, dtype).reshape(shape)
