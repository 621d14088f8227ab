"""Sets of element types used throughout lowering."""

from __future__ import annotations

from collections.abc import Mapping

from onert.ir import DType
from onert_llvm.kernels.arithmetic.expression import Kind

BYTES = (DType.INT8, DType.UINT8)
"""The one-byte types of quantised activations."""

QUANTIZED = (*BYTES, DType.INT16)
"""The types of quantised activations."""

KINDS: Mapping[DType, Kind] = {
    DType.FLOAT32: Kind.F32,
    DType.FLOAT64: Kind.F64,
    DType.INT64: Kind.I64,
    DType.INT32: Kind.I32,
    DType.INT16: Kind.I16,
    DType.INT8: Kind.I8,
    DType.UINT8: Kind.U8,
    DType.UINT16: Kind.U16,
    DType.UINT32: Kind.U32,
    DType.UINT64: Kind.U64,
    DType.BOOL: Kind.BOOL,
}
"""The element types that loops support."""
