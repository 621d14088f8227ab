"""Model files to IR."""

from .registry import Format, formats, load

__all__ = ["Format", "formats", "load"]
