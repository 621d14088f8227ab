"""A program's constants in memory spaces other than the host's."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import finalize

from onert.ir import Constant, TensorType
from onert.ir.process.digests import digest

from .memory import Buffer, Memory, tensor_bytes


class DeviceConstants:
    """Constants shared by all executions of a program and of its specialisations for other input shapes. Each is copied
    into a memory space once, and its memory is freed when the last of these programs is gone.

    Constants with equal types and bytes count as the same: folding a constant again makes a new object.
    """

    def __init__(self) -> None:
        self._buffers: dict[Hashable, tuple[Memory, Buffer, Buffer]] = {}
        self._digests: dict[int, tuple[Constant, bytes]] = {}
        finalize(self, _free, self._buffers)

    def buffer(self, memory: Memory, type_: TensorType, data: Constant) -> Buffer:
        """A constant's buffer in a memory space. Raises ExecutionError if there is not enough memory."""
        key = (memory.name, type_, self._digest(data))
        found = self._buffers.get(key)
        if found is None:
            arena = memory.allocate(tensor_bytes(memory, type_))
            try:
                buffer = memory.view(arena, 0, type_)
                memory.copy_in(data.array, buffer, type_)
            except BaseException:
                memory.free(arena)
                raise
            found = self._buffers.setdefault(key, (memory, arena, buffer))
            if found[1] is not arena:  # another thread was faster
                memory.free(arena)
        return found[2]

    def _digest(self, data: Constant) -> bytes:
        """A digest of the elements; the object is stored too, so that its id cannot be reused."""
        known = self._digests.get(id(data))
        if known is None:
            known = self._digests[id(data)] = (data, digest(data.array.tobytes()).digest())
        return known[1]


def _free(buffers: dict[Hashable, tuple[Memory, Buffer, Buffer]]) -> None:
    while buffers:
        _, (memory, arena, _) = buffers.popitem()
        memory.free(arena)
