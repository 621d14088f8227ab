"""Images as inputs and outputs: colours, sizes, layouts and conversion to tensors, in NumPy."""

from .colors import Format, convert_color
from .conversion import Conversion, Layout
from .geometry import Align, Border, Interpolation, Placed, crop, make_border, resize, resize_and_paste, warp_affine

__all__ = [
    "Align",
    "Border",
    "Conversion",
    "Format",
    "Interpolation",
    "Layout",
    "Placed",
    "convert_color",
    "crop",
    "make_border",
    "resize",
    "resize_and_paste",
    "warp_affine",
]
