"""Draw answers onto pictures: boxes, areas, body points, classes."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .suffixes import FILMS, WRITTEN

if TYPE_CHECKING:
    from .drawing import drawn, write_picture
    from .films import Film

__all__ = ["FILMS", "WRITTEN", "Film", "drawn", "write_picture"]

__getattr__ = later(
    __name__,
    {
        "Film": "onert.tools.drawing.films",
        **dict.fromkeys(("drawn", "write_picture"), "onert.tools.drawing.drawing"),
    },
)
