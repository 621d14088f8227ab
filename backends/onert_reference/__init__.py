"""The reference backend: evaluates every operation in NumPy."""

from .backend import Reference

__all__ = ["Reference"]
