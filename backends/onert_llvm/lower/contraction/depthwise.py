"""Code shared by depthwise convolutions of several element types."""

from __future__ import annotations

import math

from attrs import evolve

from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.direct.sliding_window import Slide, slide, together
from onert_llvm.kernels.data_movement.row_copy import RepeatBytes
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.target.isa import Isa

from .conv_geometry import Plane


def sliding(geometry: Plane, isa: Isa) -> tuple[Slide, dict[str, Slot]]:
    """How a window slides along the rows of an integer image, and the slots that describe the image."""
    window, stride, dilation = (of[1] for of in (geometry.window, geometry.stride, geometry.dilation))
    path = slide(geometry.window, stride, dilation, geometry.channels, isa)
    some = together(window, stride, dilation, geometry.pads[1], geometry.size[1], geometry.out[1])
    return path, {**geometry.slots, **some}


def repeated(lowering: Lowering, at: int, x: int, times: int) -> tuple[Pointer, tuple[int, ...], tuple[Access, ...]]:
    """The input with each channel repeated: its pointer, and the operands and scratch memory that it reads."""
    if times == 1:
        return lowering.operand(x), (x,), ()
    own = operand(lowering, x)
    shape, itemsize = (*own.view.shape, times), own.view.itemsize
    (room,) = lowering.scratch(math.prod(shape) * itemsize)
    spread = own.at(own.view[..., None].broadcast_to(shape))
    move(lowering, at, spread, side(room.pointer, shape, itemsize), (x,))
    return room.pointer, (), (evolve(room, write=False),)


def repeat_bytes(
    lowering: Lowering, at: int, x: int | Access, room: Access, shape: tuple[int, ...], times: int
) -> Access:
    """Emit a command that repeats each channel of `x[images, height, width, channels]`, operand or memory, in `room`;
    returns the memory to read."""
    place, reads, touched = (lowering.operand(x), (x,), ()) if isinstance(x, int) else (x.pointer, (), (x,))
    slots: dict[str, Slot] = {"x": place, "out": room.pointer, "width": shape[2] * shape[3], "times": times}
    lowering.emit(at, RepeatBytes(), slots, shape[0] * shape[1], reads, (), accesses=(*touched, room))
    return evolve(room, write=False)
