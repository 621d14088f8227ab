"""circle models: ONE's own form of TFLite's schema, with further operators and element types."""

from onert.frontend.tflite_schema.schema_format import schema_format

FORMAT = schema_format("circle", b"CIR0")
