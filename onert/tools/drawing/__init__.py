"""Answers drawn onto pictures: boxes, areas, points of bodies, classes."""

from .drawing import drawn, write_picture

__all__ = ["drawn", "write_picture"]
