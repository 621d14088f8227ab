"""Windows with few channels: the pixels of a window row are adjacent in memory, so whole segments are copied.

The first layer of a network reads three channels, too few for the loop over channels of the general convolution. Tiles
copy their windows to the stack; byte tiles do so only if a window reaches outside of the picture.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, Kernel, Type, Val, View, vec

from .implicit_im2col import each_origin
from .register_tile import Rows


@frozen
class Patch(Value):
    """A window of `height` rows of `segment` elements (width times channels), its pixels adjacent in memory."""

    height: int
    segment: int

    @property
    def depth(self) -> int:
        """Elements of a window."""
        return self.height * self.segment


def room(k: Kernel, patch: Patch, pitch: int) -> int:
    """Elements from one copied window to the next if window rows are `pitch` apart."""
    size = patch.height * pitch
    return -(-size // k.isa.vector_bytes) * k.isa.vector_bytes + k.isa.f32


def gather(k: Kernel, task: Task, block: Rows, patch: Patch, padding: Val, pitch: int) -> View:
    """Copy the windows of a tile's rows to the stack; returns the first, and the others follow at a distance of `room`.

    The rows of a window are `pitch` elements apart; elements outside of the picture are `padding`. Each window is
    followed by undefined elements, enough to fill a register of bytes, or of elements.
    """
    lanes, element, apart = k.isa.f32, padding.type, room(k, patch, pitch)
    pieces = range(0, patch.segment, lanes)
    copies = k.view(k.scratch(element, block.count * apart), element, apart, 1)
    source = task.view("input", element, 1)
    fill, count = padding.splat(lanes), k.iota(I32, lanes)
    width = (task.i64("in_w") * task.i64("pixel")).cast(I32)
    with each_origin(k, task, block.first, block.count) as (i, at):
        left = at.x * task.i64("pixel")
        for ky in range(patch.height):
            y = at.y + task.i64("dilation_h") * ky
            line = source[at.image + y * task.i64("row") + left]
            limit = y.ult(task.i64("in_h")).select(width, k.const(I32, 0))
            for piece in pieces:
                across = count + (left.cast(I32) + piece).splat(lanes)
                seen = across.ult(limit.splat(lanes))
                if piece + lanes > patch.segment:
                    seen = seen & (count < patch.segment - piece)
                here = k.view(line.address, element, 1)[piece].load(lanes, seen)
                copies[i, ky * pitch + piece].store(seen.select(here, fill))
    return copies[0]


def padding_of(k: Kernel, task: Task, element: Type) -> Val:
    """The padding value, from the task's row of padding."""
    return k.view(task.ptr("zero"), vec(element, 1), 1)[0].load()
