"""Channels: rows of tensors of one format, to which references of instances can be connected."""

from __future__ import annotations

from operator import index

from onert.backend import HOST
from onert.ir import Array, TensorType
from onert.ir import shape as shapes

from .errors import KeyRangeError
from .tensor import Tensor, tensor

_LEAST = 8


class Channel:
    """Tensors of one format. New ones are zeros; capacity doubles as needed."""

    def __init__(self, name: str, type_: TensorType, size: int = 0) -> None:
        self._name = name
        self._type = type_
        self._size = 0
        self._stride = type_.nbytes + -type_.nbytes % HOST.alignment
        self._memory = HOST.allocate(0)
        self.resize(size)

    def resize(self, size: int) -> None:
        """Set the number of tensors; those that stay keep their elements.

        Tensors that were read from the channel before it grew show its earlier content.
        """
        wanted = index(size)
        if wanted < 0:
            raise KeyRangeError(f"a channel cannot have {wanted} tensors")
        used = self._size * self._stride
        if wanted * self._stride > self._memory.nbytes:
            count = max(_LEAST, 2 * self._size, wanted)
            grown = HOST.allocate(count * self._stride)
            grown[:used] = self._memory[:used]
            self._memory = grown
        else:
            self._memory[wanted * self._stride :] = 0
        self._size = wanted

    def array(self, position: int) -> Array:
        """The elements of a tensor. Raises KeyRangeError, an IndexError, if it does not exist."""
        at = index(position)
        if not -self._size <= at < self._size:
            raise KeyRangeError(f"the channel of '{self._name}' has no tensor {at}, it has {self._size}")
        return HOST.view(self._memory, (at % self._size) * self._stride, self._type)

    @property
    def type(self) -> TensorType:
        """The format of the tensors."""
        return self._type

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> Tensor:
        return tensor(self._name, self.array(position))

    def __repr__(self) -> str:
        return f"Channel('{self._name}', {self._type.dtype.text}{shapes.text(self._type.shape)}, {self._size})"
