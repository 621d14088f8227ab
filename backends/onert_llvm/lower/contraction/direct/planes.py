"""Convolutions of few output channels, channel by channel, as a register of columns would be nearly empty."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.arithmetic.expression import is_cheap
from onert_llvm.kernels.contraction.direct.plane_conv_f32 import PlaneConvF32
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.epilogue import Windows
from onert_llvm.lower.strided_copy import move, side
from onert_llvm.schedule.cost_model import guard
from onert_llvm.schedule.planes import plane_registers

_ACROSS, _SUMS = 5, 15
"""Windows of up to this many columns are unrolled, without a loop, if they have at most this many accumulators."""


@frozen
class Columns(Value):
    """The columns of a picture's planes: how many each row has, and how many of these are zeros on the left. If it is
    `known`, an earlier convolution of the operation has stored them."""

    pitch: int
    left: int
    known: bool = False


def lowered(lowering: Lowering, windows: Windows, filters: Array, ldc: int, columns: Columns | None = None) -> bool:
    """Emit a convolution with finite constant filters `[n, height, width, channels]`; returns False if other kernels
    are estimated to be better. Without `columns` it has its own.
    """
    geometry, after, isa = windows.geometry, windows.after, lowering.isa
    n, _, across, channels = filters.shape
    if ldc != n or channels != geometry.channels or geometry.stride != (1, 1):
        return False
    if min(geometry.pads) < 0 or after.epilogue.matrices or after.epilogue.residual:
        return False
    little = is_cheap(after.epilogue.tree)
    registers = plane_registers(n, geometry.taps, channels, geometry.out[1], isa, little)
    if not registers:
        return False
    found = columns or Columns(_pitch(geometry), geometry.pads[1])
    room = windows.scratch(lowering, geometry.images * geometry.size[0] * channels * found.pitch * 4)
    if not found.known:
        _turned(lowering, windows, found, evolve(room, write=True))
    place = evolve(room.pointer, offset=room.pointer.offset + (found.left - geometry.pads[1]) * 4)
    slots: dict[str, Slot] = {name: geometry.slots[name] for name in ("in_h", "out_h", "out_w")}
    slots |= {name: geometry.slots[name] for name in ("kernel_h", "kernel_w", "dilation_h", "dilation_w", "pad_h")}
    slots |= {"planes": place, "weights": lowering.constant(filters.transpose(1, 3, 2, 0).copy()), **after.slots}
    slots |= {"out": after.place, "pitch": found.pitch, "channels": channels}
    # two rows of results share what they read, which takes longest if there is one filter
    two = n == 1 and geometry.window[0] > 1 and geometry.dilation[0] == 1 and hint(geometry.out[0]) > 1
    if two:
        guard(geometry.out[0] > 1)
        registers = min(registers, isa.registers // 4)
    tiles, flops = geometry.images * -(-geometry.out[0] // (1 + two)), 2 * geometry.rows * geometry.taps * channels * n
    touched = (evolve(room, write=False), *after.accesses)
    written = across if across <= _ACROSS and n * registers * (1 + two) <= _SUMS else 0
    algorithm = PlaneConvF32(n, registers, written, after.epilogue, 1 + two)
    lowering.emit(windows.operation, algorithm, slots, tiles, after.reads, after.writes, flops, touched)
    return True


def _pitch(geometry: Plane) -> int:
    """The number of columns that a row's windows cover, padding included."""
    return geometry.out[1] + (geometry.window[1] - 1) * geometry.dilation[1]


def _turned(lowering: Lowering, windows: Windows, columns: Columns, room: Access) -> None:
    """Copy the image as [image and row, channel, column], with zeros for horizontal padding."""
    geometry, at = windows.geometry, windows.operation
    (height, width), channels, pitch, left = geometry.size, geometry.channels, columns.pitch, columns.left
    rows = geometry.images * height
    seen = min(width, pitch - left)
    source = side(windows.source, (rows, width, channels), 4)
    target = side(room.pointer, (rows, channels, pitch), 4)
    picture = source.at(source.view[:, :seen].transpose((0, 2, 1)))
    move(lowering, at, picture, target.at(target.view[:, :, left : left + seen]), windows.reads)
    nothing = side(lowering.constant(np.zeros(1, np.float32)), (1,), 4)
    for first, last in ((0, left), (left + seen, pitch)):
        if first < last:
            shape = (rows, channels, last - first)
            zeros = nothing.at(nothing.view.reshape(()).broadcast_to(shape))
            move(lowering, at, zeros, target.at(target.view[:, :, first:last]))
