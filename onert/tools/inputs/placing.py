"""Place a picture in a model's input plane, and map coordinates in the plane back to the picture."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value


class Fit(Enum):
    """How to fit a picture into a plane of another shape."""

    STRETCH = "stretch"
    """Fill the plane, changing the aspect ratio."""
    LETTERBOX = "letterbox"
    """Keep the aspect ratio and pad on both sides."""
    CROP = "crop"
    """Keep the aspect ratio, fill the plane and crop on both sides."""


@frozen
class Placement(Value):
    """The position (`top`, `left`) and size (`height`, `width`) of a picture resized into a plane, in pixels.

    `picture` and `plane` are sizes (height, width). `top` or `left` is negative if the picture is cropped.
    """

    picture: tuple[int, int]
    plane: tuple[int, int]
    top: int
    left: int
    height: int
    width: int

    def in_picture(self, y: float, x: float) -> tuple[float, float]:
        """Convert a point from fractions of the plane to fractions of the picture."""
        return (y * self.plane[0] - self.top) / self.height, (x * self.plane[1] - self.left) / self.width

    def box_in_picture(self, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """Convert a box (top, left, bottom, right) from fractions of the plane to fractions of the picture."""
        return (*self.in_picture(*box[:2]), *self.in_picture(*box[2:]))

    @property
    def window(self) -> tuple[int, int, int, int]:
        """The rows and columns of the plane that the picture covers: top, bottom, left, right."""
        top, left = max(self.top, 0), max(self.left, 0)
        return top, min(self.top + self.height, self.plane[0]), left, min(self.left + self.width, self.plane[1])


def place(picture: tuple[int, int], plane: tuple[int, int], fit: Fit) -> Placement:
    """The placement of a picture of one size in a plane of another."""
    if fit is Fit.STRETCH:
        return Placement(picture, plane, 0, 0, *plane)
    ratios = (plane[0] / picture[0], plane[1] / picture[1])
    scale = min(ratios) if fit is Fit.LETTERBOX else max(ratios)
    height, width = (max(1, round(side * scale)) for side in picture)
    return Placement(picture, plane, (plane[0] - height) // 2, (plane[1] - width) // 2, height, width)
