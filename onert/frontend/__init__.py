"""Model files to IR."""

from .custom import custom_op
from .registry import Format, formats, load

__all__ = ["Format", "custom_op", "formats", "load"]
