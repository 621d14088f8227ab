"""Element types in files: their numbers, and how elements are packed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onert.frontend.flatbuffer import Data
from onert.ir import Array, DType, ModelError

DTYPES: Mapping[int, DType] = {
    0: DType.FLOAT32,
    1: DType.FLOAT16,
    2: DType.INT32,
    3: DType.UINT8,
    4: DType.INT64,
    5: DType.STRING,
    6: DType.BOOL,
    7: DType.INT16,
    8: DType.COMPLEX64,
    9: DType.INT8,
    10: DType.FLOAT64,
    11: DType.COMPLEX128,
    12: DType.UINT64,
    13: DType.RESOURCE,
    14: DType.VARIANT,
    15: DType.UINT32,
    16: DType.UINT16,
    17: DType.INT4,
    18: DType.BFLOAT16,
    19: DType.INT2,
    20: DType.UINT4,
    21: DType.FLOAT8_E4M3FN,
    22: DType.FLOAT8_E5M2,
    -1: DType.UINT4,
}
"""By number in the TFLite schema's TensorType; -1 is circle's number for UINT4."""


def packed_bytes(dtype: DType, count: int) -> int:
    """The size in a file of `count` elements, in bytes; not defined for STRING."""
    return (count * dtype.bits + 7) // 8


def unpack(raw: Data, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The elements in `raw`, which must hold exactly as many as the shape; a view if an element is at least one byte.

    Two 4-bit or four 2-bit elements share a byte, the first in the low bits.
    """
    if dtype.bits >= 8:
        return np.frombuffer(raw, dtype.numpy).reshape(shape)
    count = int(np.prod(shape, dtype=np.int64))
    packed = np.frombuffer(raw, np.uint8)
    kind = np.int8 if dtype.limits[0] < 0 else np.uint8
    fields = np.empty((len(packed), 8 // dtype.bits), dtype.numpy)
    for at in range(fields.shape[1]):
        top = packed << np.uint8(8 - dtype.bits * (at + 1))  # shifting right then extends the sign of signed types
        fields[:, at] = top.view(kind) >> kind(8 - dtype.bits)
    return fields.reshape(-1)[:count].reshape(shape)


def strings(raw: Data, shape: tuple[int, ...]) -> Array:
    """Decode a tensor of strings: their count, one more offset than strings, and the bytes.

    Raises ModelError if they do not fit. Source: TFLite's string_util.h; numbers are 32 bits, little-endian.
    """
    count = int(np.prod(shape, dtype=np.int64))
    header = 4 * (count + 2)
    if len(raw) < header:
        raise ModelError(f"{len(raw)} bytes are too few for {count} strings")
    found, *offsets = np.frombuffer(raw[:header], "<i4").tolist()
    if found != count:
        raise ModelError(f"the buffer holds {found} strings, the shape says {count}")
    ends = offsets[1:]
    if offsets[0] != header or any(b < a for a, b in zip(offsets, ends, strict=False)) or offsets[-1] > len(raw):
        raise ModelError("the offsets of strings are out of order or outside of their buffer")
    flat = np.empty(count, object)
    flat[:] = [bytes(raw[a:b]) for a, b in zip(offsets, ends, strict=False)]
    return flat.reshape(shape)
