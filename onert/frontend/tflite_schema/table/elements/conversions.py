"""Operators between element types and between stored integers and real numbers."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Table, result_dtype
from onert.ir.ops.elementwise.convert import Bitcast, Cast, Dequantize, FakeQuant, Quantize

TABLE: Table = {
    "CAST": lambda operator: Cast(result_dtype(operator)),
    "QUANTIZE": lambda operator: Quantize(result_dtype(operator)),
    "DEQUANTIZE": lambda operator: Dequantize(result_dtype(operator)),
    "BITCAST": lambda operator: Bitcast(result_dtype(operator)),
    "FAKE_QUANT": lambda operator: FakeQuant(
        operator.number("min"), operator.number("max"), operator.integer("num_bits"), operator.flag("narrow_range")
    ),
    "STABLEHLO_CONVERT": lambda operator: Cast(result_dtype(operator)),
}
CUSTOM: Table = {}
