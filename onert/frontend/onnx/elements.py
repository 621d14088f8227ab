"""The elements of ONNX tensors, stored in the message or in a file beside the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import field, frozen

from onert.frontend.files import open_file, path_beside
from onert.frontend.flatbuffer import Data
from onert.ir import Array, DType, ModelError
from onert.ir.dtype import NARROW_FLOATS, codes_of
from onert.ir.process.budget import Budget
from onert.ir.shape import MAX_ELEMENTS, MAX_RANK

from .element_types import element_type
from .messages import SparseTensor, Tensor

_NARROW = (DType.INT2, DType.UINT2, DType.INT4, DType.UINT4, DType.FLOAT4_E2M1FN)
_BITS = NARROW_FLOATS - {DType.FLOAT4_E2M1FN} | {DType.FLOAT16, DType.BFLOAT16}
"""Types whose bits are stored in int32_data."""


@frozen(eq=False)
class Storage:
    """The source of tensor elements: the model's folder, the files read from it, and the remaining memory budget.

    The caller's `initializers` replace those of the model's graph.
    """

    path: Path | None
    memory: Budget
    initializers: Mapping[str, Array] = field(factory=dict)
    files: dict[Path, Data] = field(factory=dict)

    def array(self, tensor: Tensor) -> tuple[Array, DType]:
        """The elements as a read-only array. Raises ModelError with the tensor's place if their number is wrong."""
        try:
            return self._array(tensor)
        except ModelError as error:
            raise ModelError(f"{tensor.place}: {error}") from error

    def initializer(self, tensor: Tensor) -> tuple[Array, DType]:
        """Like `array`, but the caller's tensor takes precedence. Raises ModelError if it does not match the file's."""
        given = self.initializers.get(tensor.name)
        if given is None:
            return self.array(tensor)
        dtype = element_type(tensor.dtype)
        if given.dtype != dtype.numpy or given.shape != tensor.dims:
            raise ModelError(
                f"{tensor.place} is given {given.dtype}{list(given.shape)}, expected {dtype.text}{list(tensor.dims)}"
            )
        return given.copy(), dtype

    def _array(self, tensor: Tensor) -> tuple[Array, DType]:
        dtype = element_type(tensor.dtype)
        count = _checked(tensor.dims)
        if tensor.external is not None:
            raw: Data | None = self._external(tensor.external)
        else:
            raw = tensor.raw
        if raw is not None:
            if dtype is DType.STRING:
                raise ModelError("strings are stored as raw bytes")
            return self._from_raw(raw, dtype, count).reshape(tensor.dims), dtype
        return self._from_fields(tensor, dtype, count).reshape(tensor.dims), dtype

    def _from_raw(self, raw: Data, dtype: DType, count: int) -> Array:
        wanted = -(-count * dtype.bits // 8)
        if len(raw) != wanted:
            raise ModelError(f"has {len(raw)} bytes, expected {wanted} for {count} elements of {dtype.text}")
        if dtype in _NARROW:
            self.memory.spend(count, "unpacking constants")
            return unpacked(np.frombuffer(raw, np.uint8), dtype, count)
        if dtype is DType.BOOL:
            self.memory.spend(count, "reading booleans")
            return np.asarray(np.frombuffer(raw, np.uint8) != 0)
        return np.frombuffer(raw, dtype.numpy.newbyteorder("<"))

    def _from_fields(self, tensor: Tensor, dtype: DType, count: int) -> Array:
        fields = tensor.fields
        if isinstance(fields, tuple):
            found: Array = np.array(fields, object)
        elif dtype is DType.STRING:
            found = np.array(fields.strings(6), object)
        elif dtype in (DType.FLOAT32, DType.COMPLEX64):
            found = fields.reals(4)
        elif dtype in (DType.FLOAT64, DType.COMPLEX128):
            found = fields.reals(10, "<f8")
        elif dtype is DType.INT64:
            found = fields.integers(7)
        elif dtype in (DType.UINT32, DType.UINT64):
            found = fields.integers(11)
        else:
            found = fields.integers(5)
        if dtype.is_complex and not len(found) % 2:
            found = found.view(dtype.numpy)
        if dtype in _NARROW:
            found = unpacked(found.astype(np.uint8), dtype, count)
        elif dtype in _BITS:
            found = found.astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)
        elif dtype.is_integer or dtype is DType.BOOL:
            found = found.astype(dtype.numpy)
        if len(found) != count:
            raise ModelError(f"has {len(found)} elements, expected {count}")
        self.memory.spend(found.nbytes, "unpacking constants")
        return found

    def _external(self, where: object) -> Data:
        """The bytes of a tensor stored in a file in the model's folder."""
        entries = dict(where) if isinstance(where, dict) else {}
        location = str(entries.get("location", ""))
        content = self._file(location)
        offset, length = (_number(entries.get(key), key) for key in ("offset", "length"))
        start = offset or 0
        stop = len(content) if length is None else start + length
        if start > len(content) or stop > len(content):
            raise ModelError(f"lies in bytes {start} to {stop} of '{location}', which has {len(content)}")
        return content[start:stop]

    def _file(self, location: str) -> Data:
        if self.path is None:
            raise ModelError(f"its elements are in the file '{location}', but the model was not loaded from a file")
        path = path_beside(self.path, location)
        if path not in self.files:
            try:
                self.files[path] = open_file(path).data
            except ModelError as error:
                raise ModelError(f"the file '{location}' {error}") from error
        return self.files[path]

    def dense(self, tensor: SparseTensor) -> tuple[Array, DType]:
        """A sparse tensor as a dense array."""
        values, dtype = self.array(tensor.values)
        places, _ = self.array(tensor.indices)
        count = _checked(tensor.dims)
        if dtype.is_handle:
            raise ModelError(f"{tensor.values.place}: a sparse tensor of strings is not supported")
        self.memory.spend(count * dtype.itemsize, "unpacking sparse constants")
        flat = places if places.ndim == 1 else _flattened(places, tensor)
        if len(flat) != values.size or (len(flat) and (flat.min() < 0 or flat.max() >= count)):
            raise ModelError(f"{tensor.indices.place}: its indices do not fit {values.size} values of {count} elements")
        out = np.zeros(count, dtype.numpy)
        out[flat] = values.reshape(-1)
        return out.reshape(tensor.dims), dtype


def _flattened(places: Array, tensor: SparseTensor) -> Array:
    """Convert rows of indices to flat indices."""
    dims = np.array(tensor.dims, np.int64)
    if places.ndim != 2 or places.shape[1] != len(dims) or (places < 0).any() or (places >= dims).any():
        raise ModelError(f"{tensor.indices.place}: its indices do not fit the shape {list(tensor.dims)}")
    out: Array = np.ravel_multi_index(tuple(places.T), tensor.dims)
    return out


def unpacked(octets: Array, dtype: DType, count: int) -> Array:
    """Unpack elements of 2 or 4 bits, the first in a byte's lowest bits, to one byte each."""
    parts = codes_of(octets, dtype.bits)[:count]
    if dtype is DType.FLOAT4_E2M1FN:
        return np.asarray(parts.view(dtype.numpy))
    if dtype in (DType.UINT4, DType.UINT2):
        return np.asarray(parts)
    half = np.uint8(1 << (dtype.bits - 1))
    out: Array = ((parts ^ half).astype(np.int16) - int(half)).astype(np.int8)
    return out


def _checked(dims: tuple[int, ...]) -> int:
    """The number of elements of a shape. Raises ModelError if the shape is not allowed."""
    if len(dims) > MAX_RANK or any(d < 0 for d in dims) or math.prod(max(d, 1) for d in dims) > MAX_ELEMENTS:
        raise ModelError(f"its shape is {list(dims)}, expected at most {MAX_RANK} dimensions, none negative")
    return math.prod(dims)


def _number(text: str | None, key: str) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ModelError(f"the {key} of its external data is {text!r}, expected a number")
    return int(text)
