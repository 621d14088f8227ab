"""The reference backend: every operation by its meaning in NumPy."""

from .backend import Reference

__all__ = ["Reference"]
