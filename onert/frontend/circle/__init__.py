"""circle models: ONE's own form of TFLite's schema, with further operators and element types."""

from onert.frontend.model import schema_format
from onert.frontend.tensors import Details

FORMAT = schema_format("circle", b"CIR0", Details(blockwise=3))
