"""How windows slide over the rows of a picture of integers."""

from __future__ import annotations

from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.direct.sliding_window import Slide, slide, together
from onert_llvm.target.isa import Isa

from .conv_geometry import Plane


def sliding(geometry: Plane, isa: Isa) -> tuple[Slide, dict[str, Slot]]:
    """How a window moves along, and the slots of the picture."""
    window, stride, dilation = (of[1] for of in (geometry.window, geometry.stride, geometry.dilation))
    path = slide(geometry.window, stride, dilation, geometry.channels, isa)
    some = together(window, stride, dilation, geometry.pads[1], geometry.size[1], geometry.out[1])
    return path, {**geometry.slots, **some}
