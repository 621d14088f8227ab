"""A tensor: an operand with a buffer."""

from __future__ import annotations

import numpy as np

from onert.ir import Array, Constant, TensorType

from .memory import HOST, Buffer, Memory


class Tensor:
    """Type and buffer of one operand within one execution.

    A `dynamic` tensor has a type with unknown dimensions until a run assigns an array, which becomes its buffer and
    determines `type`; kernels look for that buffer when they run. The buffer of a model's input or output may change
    between runs, never during one. The buffer of a constant in host memory may be a `Constant`, whose elements are read
    when the buffer is first used.
    While `stamp` is the same object, the elements are the same; None if that is not tracked.
    """

    __slots__ = ("_buffer", "declared", "dynamic", "memory", "stamp", "type")

    def __init__(self, type_: TensorType, buffer: Buffer | Constant | None, memory: Memory = HOST) -> None:
        self.declared = type_
        self.type = type_
        self._buffer = buffer
        self.memory = memory
        self.stamp: object = None
        self.dynamic = not type_.is_static or type_.dtype.is_handle

    @property
    def buffer(self) -> Buffer | None:
        """Where the elements are; None if there are none."""
        if isinstance(self._buffer, Constant):
            self._buffer = self._buffer.array
        return self._buffer

    @buffer.setter
    def buffer(self, buffer: Buffer | None) -> None:
        self._buffer = buffer

    @property
    def array(self) -> Array:
        """The elements in host memory; a copy if they are in another memory space."""
        if self.memory is HOST and isinstance(self._buffer, np.ndarray):
            return self._buffer  # spares small models several calls for each of their outputs
        return self.memory.copy_out(self.buffer, self.type)

    @property
    def held(self) -> int:
        """The bytes of a dynamic tensor's current elements; 0 for others."""
        if not self.dynamic:
            return 0
        if isinstance(self._buffer, np.ndarray):
            return self._buffer.nbytes
        return 0 if self._buffer is None else self.array.nbytes

    def assign(self, array: Array) -> None:
        """Store a result: copied into the buffer, or, if the tensor is dynamic, as its new buffer.

        A view is copied in either case: it may refer to an operand whose memory is reused.
        """
        if self.dynamic:
            self.buffer = array = array if array.flags.owndata else array.copy()
            self.become(array.shape)
        else:
            self.memory.copy_in(array, self.buffer, self.type)

    def become(self, shape: tuple[int, ...]) -> None:
        """Give a dynamic tensor the type for this shape."""
        type_ = self.type
        if type_.shape != shape or not type_.ranked:
            self.type = TensorType(self.declared.dtype, shape, self.declared.quantization)


class Tensors:
    """The tensors of one subgraph in one execution, by operand."""

    __slots__ = ("_tensors",)

    def __init__(self, tensors: dict[int, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, operand: int) -> Tensor:
        return self._tensors[operand]

    def __contains__(self, operand: int) -> bool:
        return operand in self._tensors

    def items(self) -> list[tuple[int, Tensor]]:
        return list(self._tensors.items())
