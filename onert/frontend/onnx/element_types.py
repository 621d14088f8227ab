"""ONNX's element type numbers."""

from __future__ import annotations

from onert.ir import DType, ModelError

ELEMENT_TYPES = {
    1: DType.FLOAT32,
    2: DType.UINT8,
    3: DType.INT8,
    4: DType.UINT16,
    5: DType.INT16,
    6: DType.INT32,
    7: DType.INT64,
    8: DType.STRING,
    9: DType.BOOL,
    10: DType.FLOAT16,
    11: DType.FLOAT64,
    12: DType.UINT32,
    13: DType.UINT64,
    14: DType.COMPLEX64,
    15: DType.COMPLEX128,
    16: DType.BFLOAT16,
    17: DType.FLOAT8_E4M3FN,
    18: DType.FLOAT8_E4M3FNUZ,
    19: DType.FLOAT8_E5M2,
    20: DType.FLOAT8_E5M2FNUZ,
    21: DType.UINT4,
    22: DType.INT4,
    23: DType.FLOAT4_E2M1FN,
    24: DType.FLOAT8_E8M0FNU,
    25: DType.UINT2,
    26: DType.INT2,
}


_NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.items()}


def element_number(dtype: DType) -> int:
    """The number of an element type; 0 if ONNX does not have it."""
    return _NUMBERS.get(dtype, 0)


def element_type(number: int) -> DType:
    """The element type for a number in TensorProto.DataType. Raises ModelError if there is none."""
    if number in ELEMENT_TYPES:
        return ELEMENT_TYPES[number]
    raise ModelError(f"element type {number} is not one of ONNX's")
