"""Where tensors live: memory spaces, their arenas, and the plan of what lies where."""

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
"""What a memory space hands out for a tensor: a NumPy array in host memory, the backend's own handle elsewhere."""


class Memory(Protocol):
    """A memory space. Backends whose memories have the same name pass tensors to one another without a copy.

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
        """An arena of at least `nbytes` zero bytes. ExecutionError if there is not enough memory."""

    def free(self, arena: Buffer) -> None: ...

    def view(self, arena: Buffer, offset: int, type_: TensorType) -> Buffer:
        """The tensor of a static type that starts `offset` bytes into the arena."""

    def copy_in(self, source: Array, target: Buffer, type_: TensorType) -> None:
        """Copy from the host to this space."""

    def copy_out(self, source: Buffer, type_: TensorType) -> Array:
        """Copy from this space to the host; the array may be a view."""

    def copy(self, source: Buffer, target: Buffer, type_: TensorType) -> None:
        """Copy within this space. The two places do not overlap."""


@runtime_checkable
class OwnLayout(Protocol):
    """A memory space in which elements are laid out otherwise than on the host: padded, in blocks, in another order.

    No tensor there shares the memory of a tensor of another shape.
    """

    def nbytes(self, type_: TensorType) -> int:
        """The bytes that a tensor of a static type takes."""


def tensor_bytes(memory: Memory, type_: TensorType) -> int:
    """The bytes that a tensor of a static type takes in a memory space."""
    takes = getattr(memory, "nbytes", None)  # isinstance of a protocol takes 25 us, and every tensor is asked about
    return type_.nbytes if takes is None else int(takes(type_))


def has_own_layout(memory: Memory) -> bool:
    """Whether a memory space is an `OwnLayout`."""
    return hasattr(memory, "nbytes")


def require_room(nbytes: int) -> None:
    """ExecutionError if the machine has less than `nbytes` of memory in total. So much is never asked for."""
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if nbytes > room:
        raise ExecutionError(f"{nbytes} bytes are needed, more than the machine's {room}")


_MAPPED, _HUGE_PAGE = 1 << 20, 2 << 20
"""Bytes of an arena from which on it has pages of its own, and of a page of the larger kind that processors have."""


def _mapped(nbytes: int) -> Array:
    """Zeros that begin on a huge page, in pages of their own, which the system has back once nobody uses the array.

    Arenas of many sizes leave holes in the heap of the C library, which grows by them. Where there are huge pages, one
    is entered at a time: to touch memory for the first time takes a tenth of the time that it takes page by page.
    """
    pages = mmap.mmap(-1, nbytes + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):  # where there are none
        pages.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(pages, np.uint8)
    start = -raw.ctypes.data % _HUGE_PAGE
    return raw[start : start + nbytes]


_TOUCHED, _PAGE = 64 << 20, 4096
"""Bytes up to which memory for lengths to come is touched when it is made, and of the smallest page."""


def touched(memory: Array) -> Array:
    """The same bytes, which must be unused zeros. If they are few, the process gets each of their pages now.

    Otherwise the first run at each greater length would wait for pages. Larger memory lies in huge pages, of which a
    greater length needs only a few more.
    """
    if memory.nbytes <= _TOUCHED:
        memory[::_PAGE] = 0
    return memory


class HostMemory:
    """The memory that NumPy arrays lie in; every tensor is a NumPy array."""

    name = "host"
    alignment = 64

    def allocate(self, nbytes: int) -> Array:
        require_room(nbytes)
        try:
            if nbytes >= _MAPPED:
                return _mapped(nbytes)
            raw = np.zeros(nbytes + self.alignment, np.uint8)
        except (MemoryError, OSError, OverflowError, ValueError) as error:
            raise ExecutionError(f"no room for an arena of {nbytes} bytes in host memory") from error
        start = -raw.ctypes.data % self.alignment
        return raw[start : start + nbytes]

    def free(self, arena: Array) -> None:
        """Nothing to do: NumPy frees an array with its last reference."""

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
    """Host memory for backends that want pictures as [batch, channels, height, width].

    The buffer of every tensor with four dimensions is an array in that order. `copy_in` and `copy_out` change the
    order, and so does a Permute between such a backend and another. The axes of operations stay as the operations
    define them: a kernel for this memory has to translate them.
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
    """Where a tensor lies in its arena, in bytes. `root` is the operand whose memory it shares, mostly itself."""

    offset: int
    nbytes: int
    root: int


@frozen
class ArenaPlan(Value):
    """The layout of one memory space's arena for one subgraph.

    `size` is the arena's size in bytes. `lower_bound` is the size that no plan can beat: the largest sum of tensors,
    each rounded up to the memory's alignment, that need memory at the same time under the program's executor.
    """

    memory: Memory
    size: int
    placements: Mapping[int, Placement]
    lower_bound: int
    planner: str
