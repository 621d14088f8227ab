"""Conversion of other models to flows."""

from .packages import from_package

__all__ = ["from_package"]
