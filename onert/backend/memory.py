"""Memory spaces, their arenas, and the plan of where each tensor is placed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import numpy as np
from attrs import frozen

from onert.ir import Array, ExecutionError, TensorType
from onert.ir.value import Value

Buffer = Any
"""What a memory space returns for a tensor: a NumPy array in host memory, the backend's own handle elsewhere."""


class Memory(Protocol):
    """A memory space. Backends whose memories have the same name exchange tensors without a copy.

    If kernels only enqueue work, the memory also has a `queue` (`onert.backend.Queue`), and its copies are work in that
    queue. `copy_in` has read the source when it returns, `copy` may return before it has begun, and `copy_out` returns
    when all earlier work is done. `free` takes effect after all earlier work.
    """

    @property
    def name(self) -> str: ...

    @property
    def alignment(self) -> int:
        """In bytes, a power of two: every offset in an arena is a multiple of it."""

    def allocate(self, nbytes: int) -> Buffer:
        """An arena of at least `nbytes` zero bytes. Raises ExecutionError if there is not enough memory."""

    def free(self, arena: Buffer) -> None: ...

    def view(self, arena: Buffer, offset: int, type_: TensorType) -> Buffer:
        """The tensor of a static type that starts `offset` bytes into the arena."""

    def copy_in(self, source: Array, target: Buffer, type_: TensorType) -> None:
        """Copy from the host to this space."""

    def copy_out(self, source: Buffer, type_: TensorType) -> Array:
        """Copy from this space to the host; the array may be a view."""

    def copy(self, source: Buffer, target: Buffer, type_: TensorType) -> None:
        """Copy within this space. Source and target do not overlap."""


@runtime_checkable
class OwnLayout(Protocol):
    """A memory space whose element layout differs from the host's: padded, blocked, or in another order.

    No tensor there shares the memory of a tensor of another shape.
    """

    def nbytes(self, type_: TensorType) -> int:
        """The bytes that a tensor of a static type occupies."""


def tensor_bytes(memory: Memory, type_: TensorType) -> int:
    """The bytes that a tensor of a static type occupies in a memory space."""
    takes = getattr(memory, "nbytes", None)  # isinstance of a protocol costs 25 us, for every tensor
    return type_.nbytes if takes is None else int(takes(type_))


def has_own_layout(memory: Memory) -> bool:
    """Whether a memory space is an `OwnLayout`."""
    return hasattr(memory, "nbytes")


LITTLE = 1 << 20
"""Bytes that any machine has."""


def require_room(nbytes: int) -> None:
    """Raises ExecutionError if the machine has less than `nbytes` of memory in total, before anything is allocated."""
    if nbytes < LITTLE:
        return
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if nbytes > room:
        raise ExecutionError(f"{nbytes} bytes are needed, more than the machine's {room}")


_MAPPED, _HUGE_PAGE = 1 << 20, 2 << 20
"""The size in bytes from which an arena gets its own pages, and the size of a huge page."""


def _mapped(nbytes: int) -> Array:
    """Zeros that start on a huge page, in pages of their own, which are released with the array's last reference.

    Arenas of many sizes would fragment the C library's heap, which then grows. Huge pages, if available, are mapped one
    at a time: touching memory for the first time then costs a tenth of what it costs page by page.
    """
    pages = mmap.mmap(-1, nbytes + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):  # the system has no huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(pages, np.uint8)
    start = -raw.ctypes.data % _HUGE_PAGE
    return raw[start : start + nbytes]


_TOUCHED, _PAGE = 256 << 20, 4096
"""The size in bytes up to which memory for future lengths is touched when it is allocated; the smallest page's size."""


def touched(memory: Array) -> Array:
    """Touch each page of this memory, which must be unused zeros, if it is small, and return it.

    Otherwise the first run at each greater length would wait for page faults: in huge pages only for a few, but each
    takes up to two milliseconds in a virtual machine.
    """
    if memory.nbytes <= _TOUCHED:
        memory[::_PAGE] = 0
    return memory


class HostMemory:
    """The memory of NumPy arrays; the buffer of every tensor is a NumPy array."""

    name = "host"
    alignment = 64

    def allocate(self, nbytes: int) -> Array:
        require_room(nbytes)
        try:
            if nbytes >= _MAPPED:
                return _mapped(nbytes)
            raw = np.zeros(nbytes + self.alignment, np.uint8)
        except (MemoryError, OSError, OverflowError, ValueError) as error:
            raise ExecutionError(f"cannot allocate an arena of {nbytes} bytes in host memory") from error
        start = -raw.ctypes.data % self.alignment
        return raw[start : start + nbytes]

    def free(self, arena: Array) -> None:
        """Nothing to do: an array is freed with its last reference."""

    def view(self, arena: Array, offset: int, type_: TensorType) -> Array:
        flat = arena[offset : offset + type_.nbytes].view(type_.dtype.numpy)
        return flat.reshape(tuple(d for d in type_.shape if d is not None))

    def copy_in(self, source: Array, target: Array, type_: TensorType) -> None:
        np.copyto(target, source, casting="no")

    def copy_out(self, source: Array, type_: TensorType) -> Array:
        return source

    def copy(self, source: Array, target: Array, type_: TensorType) -> None:
        np.copyto(target, source, casting="no")


HOST = HostMemory()


class ChannelsFirstMemory(HostMemory):
    """Host memory for backends that want images as [batch, channels, height, width].

    The buffer of every tensor of rank 4 is an array in that order. `copy_in` and `copy_out` transpose, and so does a
    Permute between such a backend and another. The axes of operations stay as the operations define them: a kernel for
    this memory has to translate them.
    """

    name = "host-channels-first"

    def nbytes(self, type_: TensorType) -> int:
        return type_.nbytes

    def view(self, arena: Array, offset: int, type_: TensorType) -> Array:
        if type_.rank != 4:
            return super().view(arena, offset, type_)
        n, h, w, c = type_.shape
        return super().view(arena, offset, TensorType(type_.dtype, (n, c, h, w)))

    def copy_in(self, source: Array, target: Array, type_: TensorType) -> None:
        super().copy_in(source.transpose(0, 3, 1, 2) if type_.rank == 4 else source, target, type_)

    def copy_out(self, source: Array, type_: TensorType) -> Array:
        return source.transpose(0, 2, 3, 1) if type_.rank == 4 else source


CHANNELS_FIRST = ChannelsFirstMemory()


@frozen
class Placement(Value):
    """A tensor's bytes in its arena. `root` is the operand whose memory it shares, usually itself."""

    offset: int
    nbytes: int
    root: int


@frozen
class ArenaPlan(Value):
    """The layout of one memory space's arena for one subgraph.

    `size` is the arena's size in bytes. `lower_bound` is a size below which no plan exists: the largest total of
    tensors, each rounded up to the memory's alignment, that need memory at the same time under the program's executor.
    """

    memory: Memory
    size: int
    placements: Mapping[int, Placement]
    lower_bound: int
    planner: str
