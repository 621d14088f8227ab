"""circle models: ONE's variant of the TFLite schema, with additional operators and element types."""

from onert.frontend.tflite_schema.schema_format import schema_format

FORMAT = schema_format("circle", b"CIR0")
