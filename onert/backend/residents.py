"""The constants of a program where they lie in memory spaces other than the host's."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import finalize

from onert.ir import Constant, TensorType
from onert.ir.process.digests import digest

from .memory import Buffer, Memory, tensor_bytes


class Residents:
    """What all executions of a program, and of its programs for other input shapes, share: each constant is put into a
    memory space once, and its room given back when the last of these programs is gone.

    Constants are the same where their types and their bytes are: a pass makes another object of what it folds again.
    """

    def __init__(self) -> None:
        self._buffers: dict[Hashable, tuple[Memory, Buffer, Buffer]] = {}
        self._digests: dict[int, tuple[Constant, bytes]] = {}
        finalize(self, _free, self._buffers)

    def buffer(self, memory: Memory, type_: TensorType, data: Constant) -> Buffer:
        """Where a constant's elements lie in a memory space. ExecutionError if there is no room for them."""
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
            if found[1] is not arena:  # another thread has put it there at this moment
                memory.free(arena)
        return found[2]

    def _digest(self, data: Constant) -> bytes:
        """Names the elements; the object is kept, so that no other one comes to have its identity."""
        known = self._digests.get(id(data))
        if known is None:
            known = self._digests[id(data)] = (data, digest(data.array.tobytes()).digest())
        return known[1]


def _free(buffers: dict[Hashable, tuple[Memory, Buffer, Buffer]]) -> None:
    while buffers:
        _, (memory, arena, _) = buffers.popitem()
        memory.free(arena)
