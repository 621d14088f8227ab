"""Draw answers onto pictures: boxes, areas, body points, classes."""

from .drawing import drawn, write_picture
from .films import FILMS, Film

__all__ = ["FILMS", "Film", "drawn", "write_picture"]
