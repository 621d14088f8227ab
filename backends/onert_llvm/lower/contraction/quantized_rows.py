"""Floats as bytes when they are multiplied (dynamic range): the commands, and the memory that they fill."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve, frozen

from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.dynamic_quantization import Extent, QuantizeDynamic, moved_by
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side

from .conv_geometry import Plane

_PIECE = 1 << 14
"""Elements that are quantised as one piece."""


@frozen(eq=False)
class Quantized:
    """An input as bytes, what was written down of each item, and the memory that holds all of it; `more` is other
    memory beside it.

    Where bytes are not `signed`, the dot product's offset was added to them.
    """

    asymmetric: bool
    signed: bool
    accesses: tuple[Access, ...]
    more: tuple[Access, ...] = ()

    @property
    def slots(self) -> dict[str, Slot]:
        _, scales, offsets, _ = self.accesses
        found: dict[str, Slot] = {"row_scales": scales.pointer}
        return found | ({"row_offsets": offsets.pointer} if self.asymmetric else {})

    @property
    def values(self) -> Slot:
        return self.accesses[0].pointer

    def padding(self) -> Slot:
        """A pixel outside of the picture."""
        return self.accesses[3].pointer

    def from_item(self, item: int, size: int) -> Quantized:
        """The same for the items from one on, of so many elements each."""
        return self._later((item * size, 4 * item, 4 * item, 0))

    def from_channel(self, channel: int) -> Quantized:
        """The same for the channels from one on."""
        values, *rest = self.accesses
        return evolve(
            self,
            accesses=(evolve(values, pointer=later(values.pointer, channel), nbytes=values.nbytes - channel), *rest),
        )

    def image(self, number: int, geometry: Plane) -> Quantized:
        """The same for one image of several."""
        channels = geometry.channels
        steps = (geometry.size[0] * geometry.size[1] * channels, 4, 4, channels)
        return self._later([number * step for step in steps])

    def _later(self, nbytes: Sequence[int]) -> Quantized:
        moved = (evolve(a, pointer=later(a.pointer, n)) for a, n in zip(self.accesses, nbytes, strict=True))
        return evolve(self, accesses=tuple(moved))


def later(pointer: Pointer, nbytes: int) -> Pointer:
    """So many bytes behind a place."""
    return evolve(pointer, offset=pointer.offset + nbytes)


def shared(lowering: Lowering, at: int, x: int, items: int, channels: int, asymmetric: bool, *more: int) -> Quantized:
    """The same as `quantized`, made once for all layers of a kind with the same input: queries, keys and values, or
    branches.
    """
    what = ("bytes", x, items, channels, asymmetric)
    found: Quantized | None = lowering.left(what)
    if found is not None:
        return evolve(found, more=lowering.scratch(*more))
    made = quantized(lowering, at, x, items, channels, asymmetric, *more)
    kind, uses = type(lowering.operation(at).op), lowering.subgraph.uses[x]
    others = [i for i in uses if i > at and type(lowering.operation(i).op) is kind]
    return lowering.leave(what, made, made.accesses, max(others)) if others else made


def quantized(
    lowering: Lowering,
    at: int,
    x: int,
    items: int,
    channels: int,
    asymmetric: bool,
    *more: int,
    turned: bool = False,
    signed: bool = False,
) -> Quantized:
    """The commands that quantise an input item by item; `more` are sizes of other scratch memory of the operation.

    With `turned` its last two axes are exchanged first. Bytes are `signed`, or as the dot product multiplies them.
    """
    signed = signed or not moved_by(lowering.isa)
    total = math.prod(lowering.shape(x))
    size = total // items
    chunks = -(-size // _PIECE)
    tiles = items * chunks
    sizes = (total, 4 * items, 4 * items, items * channels, 8 * tiles, 4 * total if turned else 0)
    *made, extents, floats = lowering.scratch(*sizes, *more)[: len(sizes)]
    source = lowering.operand(x)
    reads: tuple[int, ...] = (x,)
    read: tuple[Access, ...] = ()
    if turned:
        whole = operand(lowering, x)
        view = whole.view.swapaxes(-2, -1)
        move(lowering, at, whole.at(view), side(floats.pointer, view.shape, view.itemsize), (x,))
        source, reads, read = floats.pointer, (), (evolve(floats, write=False),)
    pieces: dict[str, Slot] = {"x": source, "size": size, "chunk": min(size, _PIECE), "chunks": chunks}
    lowering.emit(at, Extent(), pieces | {"out": extents.pointer}, tiles, reads, (), total, (extents, *read))
    own = dict(zip(("out", "scales", "offsets", "padding"), (m.pointer for m in made), strict=True))
    slots: dict[str, Slot] = {**pieces, **own, "extents": extents.pointer, "channels": channels}
    accesses = (evolve(extents, write=False), *made, *read)
    lowering.emit(at, QuantizeDynamic(asymmetric, signed), slots, tiles, reads, (), 4 * total, accesses)
    beside = lowering.scratch(*sizes, *more)[len(sizes) :]
    return Quantized(asymmetric, signed, tuple(evolve(m, write=False) for m in made), beside)
