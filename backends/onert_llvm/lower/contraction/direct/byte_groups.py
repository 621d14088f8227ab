"""Byte convolutions in groups whose channels are copied apart first, so that one command computes all groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.contraction import Contraction, Ending
from onert_llvm.kernels.contraction.extremes import TILES
from onert_llvm.kernels.contraction.operands import GroupWindows
from onert_llvm.kernels.contraction.register_tile import columns
from onert_llvm.kernels.data_movement.separate_groups import SeparateGroups
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.int8_gemm import widens
from onert_llvm.lower.contraction.partition import partition
from onert_llvm.schedule.cost_model import Shape
from onert_llvm.schedule.weight_packing import pack_int8, panel_bytes_int8

_WIDE = 2
"""The bytes of a widened number."""

_MOST_PIECE = 16
"""The most bytes that are copied at a time."""

_FEW_CHANNELS = 8
"""The most channels of a group whose pixels are copied; those of more are multiplied in place, which is as fast."""


@frozen(eq=False)
class Separated:
    """A convolution of one image whose groups are apart: small ones are merged, so that they fill registers of columns.

    `weights[rows, terms, n]` are those of each window row, with zeros for other groups and behind an odd number of
    channels; `panels` is the number of a group's panels, of `vectors` registers each, and `terms` the number of all
    weights that are not zeros of this kind.
    """

    geometry: Plane
    weights: Array
    groups: int
    vectors: int
    panels: int
    terms: int

    @property
    def channels(self) -> int:
        """The channels of a group."""
        return self.geometry.channels // self.groups

    @property
    def pitch(self) -> int:
        """The elements from one pixel of a group to the next."""
        return self.channels + self.channels % 2

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of the picture with its margins."""
        out, stride, window, dilation = (getattr(self.geometry, n) for n in ("out", "stride", "window", "dilation"))
        high, wide = ((o - 1) * s + (w - 1) * d + 1 for o, s, w, d in zip(out, stride, window, dilation, strict=True))
        return high, wide

    @property
    def room(self) -> int:
        """The bytes of the picture with its groups apart."""
        return math.prod(self.size) * self.groups * self.pitch * _WIDE


def separated(lowering: Lowering, geometry: Plane, filters: Array) -> Separated | None:
    """A convolution of one image with centred `filters[n, height, width, channels of a group]` in this form; None if
    groups do not fill whole registers of columns, or if the target does not widen bytes.
    """
    n, kh, kw, inner = filters.shape
    groups, lanes = geometry.channels // inner, lowering.isa.f32
    own = n // groups
    together = lanes // math.gcd(own, lanes)
    wasteful = together > max(2, -(-lanes // own)) or (geometry.pointwise and inner > _FEW_CHANNELS)
    if wasteful or groups % together or geometry.dilation[1] > 1 or not widens(lowering, geometry.rows):
        return None
    registers = own * together // lanes
    vectors = next(each for each in (2, 3, 1) if registers % each == 0)
    depth = together * inner
    weights = np.zeros((kh, kw, depth + depth % 2, n), np.int8)
    for g in range(groups):
        part, first = slice(g * own, (g + 1) * own), g % together * inner
        weights[:, :, first : first + inner, part] = filters[part].transpose(1, 2, 3, 0)
    ordered = weights.reshape(kh, -1, n)
    return Separated(geometry, ordered, groups // together, vectors, registers // vectors, filters.size)


def multiply(
    lowering: Lowering,
    at: int,
    what: Separated,
    ending: Ending,
    signed: bool,
    images: Sequence[dict[str, Slot]],
    reads: Sequence[int],
    writes: Sequence[int],
    room: Access,
    accesses: Sequence[Access] = (),
) -> None:
    """Emit a copy to the `room` and a product for each image. Its slots are `input` and `zero`, for the copy, and those
    of the product's ending; `reads`, `writes` and `accesses` are the operands and other memory that the commands touch.
    """
    geometry, (height, segment, n) = what.geometry, what.weights.shape
    lanes, (high, wide) = lowering.isa.f32, what.size
    across = what.vectors * lanes
    code = (GroupWindows, ending, signed, what.vectors)
    tile = lowering.tile(code, Shape(geometry.rows, across, height * segment, integer=True, widened=True))
    tile = evolve(tile, columns=columns(n, what.vectors, lowering.isa))
    panel_bytes = panel_bytes_int8(height, segment, tile.columns, lowering.isa, 8)
    packed = lowering.packed(what.weights, tile.columns, pack_int8)
    row = what.pitch * math.prod(geometry.stride) * _WIDE
    work, sizes = partition(lowering, Shape(geometry.rows, n, row, True), tile, row, packed, panel_bytes)
    piece = math.gcd(what.channels, _MOST_PIECE)
    copy = SeparateGroups(signed, piece, piece == what.channels)
    line = wide * what.pitch
    beside: dict[str, Slot] = {"out": room.pointer, "lines": high, "line_pixels": wide, "pitch": what.pitch}
    beside |= {**geometry.slots, "groups": what.groups, "channels": what.channels}
    windows: dict[str, Slot] = {"kernel_h": height, "out_w": geometry.out[1], "segment": segment}
    windows |= {"line": geometry.dilation[0] * line, "down": geometry.stride[0] * line, "input": room.pointer}
    windows |= {"across": geometry.stride[1] * what.pitch, "group": high * line, "group_panels": what.panels}
    product = Contraction(tile, GroupWindows(), ByteTerms(0, signed, widened=True), ending)
    seen = evolve(room, write=False)
    for image in images:
        own = beside | image
        own = {name: own[name] for name in copy.slots}
        lowering.emit(at, copy, own, high, reads, (), 0, (room, *accesses))
        own = sizes | image | windows | {TILES: work.tiles}
        own = {name: own[name] for name in product.slots}
        lowering.emit(at, product, own, work.tiles, reads, writes, 2 * geometry.rows * what.terms, (seen, *accesses))
