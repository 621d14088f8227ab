"""Read model files into the IR."""

from onert.frontend.tflite_schema.custom_ops import custom_op

from .format import Format
from .registry import formats, load

__all__ = ["Format", "custom_op", "formats", "load"]
