"""TFLite models."""

from onert.frontend.model import schema_format
from onert.frontend.tensors import Details

FORMAT = schema_format("tflite", b"TFL3", Details(blockwise=2))
