"""Byte convolutions by Winograd's minimal filtering, if that is estimated to be faster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint, minimum
from onert_llvm.command.command import Access, Slot, most_pieces
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.kernels.contraction.winograd.winograd_int8 import OUTPUTS, WinogradInt8, room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.int8_filters import Filter, Outputs
from onert_llvm.lower.contraction.quantized_layer import Layer
from onert_llvm.schedule import winograd_int8 as schedule
from onert_llvm.schedule.float_packing import panels
from onert_llvm.schedule.winograd import MOST_PIECES, tiles
from onert_llvm.target.machines import scratch_stride

_WINDOW = (3, 3)


def lowered(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> bool:
    """Emit a convolution without groups, or one group; returns False if the direct sums are better."""
    filters = _centred(layer.filter)
    if not suits(lowering, geometry, filters):
        return False
    columns, how = layer.outputs.scaled(lowering, Filter(filters, 0), layer.part)
    plan = planned(lowering, geometry, filters, how, layer.outputs.signed)
    (rooms,) = lowering.scratch(plan.room, beside=layer.rooms)
    slots = columns | layer.target(lowering)
    slots |= {"input": layer.input(lowering), "zero": layer.padding(lowering, filters.shape[2])}
    writes = (layer.result,) if layer.room is None else ()
    plan.emit(lowering, layer.operation, slots, (layer.source,), writes, rooms, layer.rooms)
    return True


def suits(lowering: Lowering, geometry: Plane, filters: Array) -> bool:
    """Whether a convolution with centred `filters[height, width, channels, n]` is possible this way, and faster."""
    channels, n = filters.shape[2:]
    if geometry.window != _WINDOW or geometry.stride != (1, 1):
        return False
    (total, _, _), sizes = _tiles(geometry), schedule.Layer(channels, n, lowering.isa)
    if not schedule.runs(sizes, hint(total)):
        return False
    faster = schedule.is_faster(sizes, hint(total), hint(geometry.rows))
    chosen = lowering.choose(("winograd", geometry, channels, n), faster, lambda: (True, False))
    return chosen and schedule.fits(filters)


def _tiles(geometry: Plane) -> tuple[int, int, int]:
    """The number of output tiles: in total, vertically and horizontally."""
    return tiles(Form(OUTPUTS), geometry.images, geometry.out, geometry.dilation)


@frozen(eq=False)
class Plan:
    """The command of a convolution before its input and its results are known.

    `room` is the size of its scratch memory.
    """

    algorithm: WinogradInt8
    slots: dict[str, Slot]
    work: int
    parts: int
    room: int
    flops: int

    def emit(
        self,
        lowering: Lowering,
        at: int,
        slots: dict[str, Slot],
        reads: Sequence[int],
        writes: Sequence[int],
        rooms: Access,
        accesses: Sequence[Access],
    ) -> None:
        """Emit the command with its remaining slots, and with what it touches besides its `rooms`."""
        found = {**self.slots, **slots, "rooms": rooms.pointer}
        found = {name: found[name] for name in self.algorithm.slots}
        lowering.emit(at, self.algorithm, found, self.work, reads, writes, self.flops, (rooms, *accesses), self.parts)


def planned(lowering: Lowering, geometry: Plane, filters: Array, how: Requantize | Dynamic, signed: bool) -> Plan:
    """The plan for a convolution that `suits`, of signed or unsigned bytes."""
    channels, n = filters.shape[2:]
    isa, (total, down, across) = lowering.isa, _tiles(geometry)
    sizes, wide, dilated = schedule.Layer(channels, n, isa), channels >= 2 * isa.f32, geometry.dilation != (1, 1)
    code = (WinogradInt8, how, signed, wide, dilated)
    cut = schedule.blocks(sizes, total, lowering.threads, lowering.tiles(code))
    lowering.record_tile(code, cut.tile)
    count = panels(n, cut.tile.columns, isa)
    shares = cut.slots(total, count)
    work = shares["blocks"] * shares["groups"]
    parts = minimum(work, most_pieces(lowering.threads, MOST_PIECES))
    size = scratch_stride(room(cut.tile, cut.block, channels, n, isa.f32), lowering.callers, isa)
    slots: dict[str, Slot] = {
        **geometry.slots,
        "b": lowering.packed(filters, cut.tile.columns, schedule.pack_winograd_int8),
        "n": n,
        "ldc": n,
        "k": channels,
        "panels": count,
        "panel_bytes": schedule.panel_bytes(channels, cut.tile.columns, isa),
        "down": down,
        "across": across,
        "total": total,
        **shares,
        "room": size,
    }
    flops = 2 * geometry.rows * geometry.taps * channels * n
    late = schedule.is_late(sizes, cut.block)
    algorithm = WinogradInt8(cut.tile, how, signed, wide, dilated, late)
    return Plan(algorithm, slots, work, parts, size * lowering.callers, flops)


def _centred(weights: Filter) -> Array:
    """The weights `[height, width, channels, n]` less their zero point."""
    found: Array = weights.values
    return found if weights.zero == 0 else found.astype(np.int16) - np.int16(weights.zero)
