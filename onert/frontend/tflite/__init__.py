"""TFLite models."""

from onert.frontend.model import schema_format

FORMAT = schema_format("tflite", b"TFL3")
