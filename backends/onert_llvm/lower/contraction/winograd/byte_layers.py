"""Convolutions of bytes by Winograd's minimal filtering, where that is estimated to be faster."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert.ir.symbolic.trace import hint, minimum
from onert_llvm.command.command import Slot, most_pieces
from onert_llvm.kernels.contraction.winograd.winograd_int8 import OUTPUTS, WinogradInt8, room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.int8_filters import Filter, Outputs
from onert_llvm.lower.contraction.quantized_layer import Layer
from onert_llvm.schedule import winograd_int8 as schedule
from onert_llvm.schedule.float_packing import panels
from onert_llvm.schedule.winograd import MOST_PIECES

_WINDOW = (3, 3)


def lowered(lowering: Lowering, layer: Layer[Outputs], geometry: Plane) -> bool:
    """Write the command of a convolution, a group of one at most; False if its sums of all terms are better."""
    channels, n = layer.filter.values.shape[2:]
    isa, ones = lowering.isa, (1, 1)
    if geometry.window != _WINDOW or geometry.stride != ones or geometry.dilation != ones:
        return False
    down, across = (-(-size // OUTPUTS) for size in geometry.out)
    total, sizes = geometry.images * down * across, schedule.Layer(channels, n, isa)
    if not schedule.runs(sizes, hint(total)):
        return False
    faster = schedule.is_faster(sizes, hint(total), hint(geometry.rows))
    chosen = lowering.choose(("winograd", geometry, channels, n), faster, lambda: (True, False))
    filters = _centred(layer.filter)
    if not chosen or not schedule.fits(filters):
        return False
    columns, how = layer.outputs.scaled(lowering, Filter(filters, 0), layer.part)
    wide, signed = channels >= 2 * isa.f32, layer.outputs.signed
    code = (WinogradInt8, how, signed, wide)
    cut = schedule.blocks(sizes, total, lowering.threads, lowering.tiles(code))
    lowering.has_code(code, cut.tile)
    count = panels(n, cut.tile.columns, isa)
    groups = -(-count // cut.group)
    work = -(-total // cut.block) * groups
    parts = minimum(work, most_pieces(lowering.threads, MOST_PIECES))
    size = room(cut.tile, cut.block, channels, n, isa.f32)
    (rooms,) = lowering.scratch(parts * size)
    algorithm = WinogradInt8(cut.tile, how, signed, wide)
    slots: dict[str, Slot] = {
        **geometry.slots,
        **columns,
        **layer.target(lowering),
        "b": lowering.packed(filters, cut.tile.columns, schedule.pack_winograd_int8),
        "n": n,
        "k": channels,
        "panels": count,
        "panel_bytes": schedule.panel_bytes(channels, cut.tile.columns, isa),
        "input": layer.input(lowering),
        "zero": layer.padding(lowering, channels),
        "down": down,
        "across": across,
        "total": total,
        "block": cut.block,
        "group": cut.group,
        "groups": groups,
        "rooms": rooms.pointer,
        "room": size,
        "tiles": work,
        "pieces": parts,
    }
    slots = {name: slots[name] for name in algorithm.slots}
    writes, own = ((layer.result,), ()) if layer.room is None else ((), (layer.room,))
    flops = 2 * geometry.rows * geometry.taps * channels * n
    lowering.emit(layer.operation, algorithm, slots, work, (layer.source,), writes, flops, (rooms, *own), parts)
    return True


def _centred(weights: Filter) -> Array:
    """`[height, width, channels, n]` less their zero point."""
    found: Array = weights.values
    return found if weights.zero == 0 else found.astype(np.int16) - np.int16(weights.zero)
