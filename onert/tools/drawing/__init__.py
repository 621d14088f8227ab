"""Answers drawn onto pictures: boxes, areas, points of bodies, classes."""

from .drawing import drawn, write_picture
from .films import FILMS, Film

__all__ = ["FILMS", "Film", "drawn", "write_picture"]
