"""Conversions between element types, and between stored integers and real numbers."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Table, read, result_dtype
from onert.ir.ops.elementwise.convert import Bitcast, Cast, Dequantize, FakeQuant, Quantize

TABLE: Table = {
    "CAST": read(Cast, to=result_dtype),
    "QUANTIZE": read(Quantize, to=result_dtype),
    "DEQUANTIZE": read(Dequantize, to=result_dtype),
    "BITCAST": read(Bitcast, to=result_dtype),
    "FAKE_QUANT": read(FakeQuant, low="min", high="max", bits="num_bits", narrow="narrow_range"),
    "STABLEHLO_CONVERT": read(Cast, to=result_dtype),
}
CUSTOM: Table = {}
