"""TFLite models."""

from onert.frontend.tflite_schema.schema_format import schema_format

FORMAT = schema_format("tflite", b"TFL3")
