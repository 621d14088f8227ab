"""Where a picture lies in the plane that a model is given, and where what the model finds lies in the picture."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value


class Fit(Enum):
    """How a picture of another shape goes into a plane."""

    STRETCH = "stretch"
    """It fills the plane; its aspect changes."""
    LETTERBOX = "letterbox"
    """It keeps its aspect and is padded to both sides."""
    CROP = "crop"
    """It keeps its aspect and fills the plane; what is beyond is cut off on both sides."""


@frozen
class Placement(Value):
    """A picture of `picture` pixels lies at `top`, `left` of a plane, `height` and `width` large; all in pixels.

    Sizes are (height, width). A picture that is cropped begins before the plane does.
    """

    picture: tuple[int, int]
    plane: tuple[int, int]
    top: int
    left: int
    height: int
    width: int

    def in_picture(self, y: float, x: float) -> tuple[float, float]:
        """A point in parts of the plane, in parts of the picture."""
        return (y * self.plane[0] - self.top) / self.height, (x * self.plane[1] - self.left) / self.width

    def box_in_picture(self, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """Top, left, bottom and right in parts of the plane, in parts of the picture."""
        return (*self.in_picture(*box[:2]), *self.in_picture(*box[2:]))

    @property
    def window(self) -> tuple[int, int, int, int]:
        """Rows and columns of the plane that show the picture: top, bottom, left, right."""
        top, left = max(self.top, 0), max(self.left, 0)
        return top, min(self.top + self.height, self.plane[0]), left, min(self.left + self.width, self.plane[1])


def place(picture: tuple[int, int], plane: tuple[int, int], fit: Fit) -> Placement:
    """Where a picture of a size lies in a plane of another."""
    if fit is Fit.STRETCH:
        return Placement(picture, plane, 0, 0, *plane)
    ratios = (plane[0] / picture[0], plane[1] / picture[1])
    scale = min(ratios) if fit is Fit.LETTERBOX else max(ratios)
    height, width = (max(1, round(side * scale)) for side in picture)
    return Placement(picture, plane, (plane[0] - height) // 2, (plane[1] - width) // 2, height, width)
