"""Float inputs quantised to bytes on the fly (dynamic range): the commands, and the memory that they fill."""

from __future__ import annotations

import math

from attrs import evolve, frozen

from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.dynamic_quantization import Extent, QuantizeDynamic, moved_by
from onert_llvm.kernels.contraction.extremes import PAIRS, PARTS
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.target.isa import multiplying

_PIECE = 1 << 14
"""The number of elements that are quantised as one piece."""

_PAIR = 8
"""The size of a pair of extremes, in bytes."""


@frozen(eq=False)
class Quantized:
    """An input as bytes, with the parameters of each item, and the memory that holds all of it; `more` is other memory
    beside it.

    If bytes are not `signed`, the dot product's offset was added to them. An item has `size` bytes, and its padding
    pixel `channels`.
    """

    asymmetric: bool
    signed: bool
    size: int
    channels: int
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
        """A padding pixel."""
        return self.accesses[3].pointer

    def from_item(self, item: int) -> Quantized:
        """The items from one on."""
        steps = (self.size, 4, 4, self.channels)
        moved = (evolve(a, pointer=advanced(a.pointer, item * s)) for a, s in zip(self.accesses, steps, strict=True))
        return evolve(self, accesses=tuple(moved))

    def from_byte(self, at: int) -> Quantized:
        """The bytes of each item from one on."""
        values, *rest = self.accesses
        values = evolve(values, pointer=advanced(values.pointer, at), nbytes=values.nbytes - at)
        return evolve(self, accesses=(values, *rest))

    def with_values(self, values: Access, size: int) -> Quantized:
        """The same parameters with other bytes, `size` of them per item."""
        return evolve(self, accesses=(values, *self.accesses[1:]), size=size)


def advanced(pointer: Pointer, nbytes: int) -> Pointer:
    """A place a number of bytes further on."""
    return evolve(pointer, offset=pointer.offset + nbytes)


def quantize_once(
    lowering: Lowering, at: int, x: int, items: int, channels: int, asymmetric: bool, *more: int, bits: int = 8
) -> Quantized:
    """The same as `quantize`, but once for all layers of a kind with the same input, such as queries, keys and values,
    or branches.
    """
    what = ("bytes", x, items, channels, asymmetric, moved_by(multiplying(lowering.isa, bits)))
    found: Quantized | None = lowering.retained(what)
    if found is not None:
        return evolve(found, more=lowering.scratch(*more, beside=found.accesses))
    made = quantize(lowering, at, x, items, channels, asymmetric, *more, bits=bits)
    kind, uses = type(lowering.operation(at).op), lowering.subgraph.uses[x]
    others = [i for i in uses if i > at and type(lowering.operation(i).op) is kind]
    return lowering.retain(what, made, made.accesses, max(others)) if others else made


@frozen(eq=False)
class StoredExtremes:
    """The extremes of a tensor, recorded by the commands that compute it, in `parts` pairs per command."""

    access: Access
    parts: int

    @property
    def count(self) -> int:
        """The number of pairs of all commands."""
        return self.access.nbytes // _PAIR

    def slots(self, number: int = 0) -> dict[str, Slot]:
        """Where a command records its extremes; `TILES` must be added."""
        return {PAIRS: advanced(self.access.pointer, number * self.parts * _PAIR), PARTS: self.parts}


def extremes_memory(lowering: Lowering, at: int, result: int, parts: int, commands: int = 1) -> StoredExtremes | None:
    """Memory for the extremes of an image that `commands` are about to compute, if it is quantised later. Each command
    is divided into `parts`, or has fewer work tiles. Must be requested before other scratch memory.
    """
    uses = lowering.subgraph.uses.get(result, ())
    readers = [i for i in uses if i > at and _quantises(lowering, i, result)]
    if not readers or lowering.compact:
        return None
    access = lowering.unretained_scratch(commands * parts * _PAIR)
    return lowering.retain((StoredExtremes, result), StoredExtremes(access, parts), (access,), max(readers))


def _quantises(lowering: Lowering, at: int, x: int) -> bool:
    """Whether an operation quantises a single image as a whole."""
    operation = lowering.operation(at)
    if not isinstance(operation.op, Conv2D | DepthwiseConv2D | TransposeConv2D):
        return False
    weights, images = operation.inputs[1], lowering.shape(x)[0]
    assert weights is not None
    own = 2 if isinstance(operation.op, TransposeConv2D) else 0
    single = not is_symbolic(images) and images == 1
    return single and operation.inputs[own] == x and not lowering.type(weights).dtype.is_float


def quantize(
    lowering: Lowering,
    at: int,
    x: int,
    items: int,
    channels: int,
    asymmetric: bool,
    *more: int,
    transposed: bool = False,
    signed: bool = False,
    bits: int = 8,
) -> Quantized:
    """Emit the commands that quantise an input item by item; `more` are sizes of the operation's other scratch memory.
    With `transposed`, its last two axes are exchanged first. Bytes are `signed`, or as the dot product with weights of
    `bits` bits needs them.
    """
    signed = signed or not moved_by(multiplying(lowering.isa, bits))
    total = math.prod(lowering.shape(x))
    size = total // items
    chunks = -(-size // _PIECE)
    tiles = items * chunks
    sizes = (total, 4 * items, 4 * items, items * channels, 8 * tiles, 4 * total if transposed else 0)
    *made, extents, floats = lowering.scratch(*sizes, *more)[: len(sizes)]
    source = lowering.operand(x)
    reads: tuple[int, ...] = (x,)
    read: tuple[Access, ...] = ()
    if transposed:
        there = operand(lowering, x)
        view = there.view.swapaxes(-2, -1)
        move(lowering, at, there.at(view), side(floats.pointer, view.shape, view.itemsize), (x,))
        source, reads, read = floats.pointer, (), (evolve(floats, write=False),)
    pieces: dict[str, Slot] = {"x": source, "size": size, "chunk": min(size, _PIECE), "chunks": chunks}
    own = dict(zip(("out", "scales", "offsets", "padding"), (m.pointer for m in made), strict=True))
    slots: dict[str, Slot] = {**pieces, **own, "channels": channels}
    known: StoredExtremes | None = lowering.retained((StoredExtremes, x)) if items == 1 else None
    whole = not is_symbolic(size) and chunks == 1 and known is None
    if not whole:
        if known is None:
            lowering.emit(at, Extent(), pieces | {"out": extents.pointer}, tiles, reads, (), total, (extents, *read))
        seen, parts = (extents, chunks) if known is None else (known.access, known.count)
        read, slots = (*read, evolve(seen, write=False)), slots | {"extents": seen.pointer, "parts": parts}
    lowering.emit(at, QuantizeDynamic(asymmetric, signed, whole), slots, tiles, reads, (), 4 * total, (*made, *read))
    beside = lowering.scratch(*sizes, *more)[len(sizes) :]
    return Quantized(asymmetric, signed, size, channels, tuple(evolve(m, write=False) for m in made), beside)


def by_groups(lowering: Lowering, at: int, source: Quantized, images: int, groups: int, room: Access) -> Quantized:
    """The images with the channels of each group separated into images of their own."""
    channels = source.channels // groups
    shape = images, source.size // source.channels, groups, channels
    apart = shape[0], groups, shape[1], channels
    there = side(room.pointer, apart, 1)
    values = source.accesses[0]
    move(lowering, at, side(values.pointer, shape, 1), there.at(there.view.swapaxes(1, 2)))
    return source.with_values(evolve(room, write=False), source.size)
