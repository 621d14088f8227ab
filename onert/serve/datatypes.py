"""Convert tensors from and to the protocol's two forms: bytes, and lists of values.

Source: Open Inference Protocol, "Tensor Data Types" and the extension for binary data. Bytes are little-endian and in
row-major order. An element of BYTES is its length in four bytes, then its bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from struct import Struct
from typing import Any

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array, DType

from .errors import bad

NAMES = {
    DType.BOOL: "BOOL",
    DType.UINT8: "UINT8",
    DType.UINT16: "UINT16",
    DType.UINT32: "UINT32",
    DType.UINT64: "UINT64",
    DType.INT8: "INT8",
    DType.INT16: "INT16",
    DType.INT32: "INT32",
    DType.INT64: "INT64",
    DType.FLOAT16: "FP16",
    DType.BFLOAT16: "BF16",
    DType.FLOAT32: "FP32",
    DType.FLOAT64: "FP64",
    DType.STRING: "BYTES",
    DType.INT4: "INT8",
    DType.INT2: "INT8",
    DType.UINT4: "UINT8",
}
"""The protocol's names of element types. Packed types are whole bytes here, as in memory."""
TYPES = {name: dtype for dtype, name in reversed(NAMES.items())}
_UNKNOWN = -1
"""The protocol's value for a dynamic dimension."""
_LENGTH = Struct("<I")
_SWAPPED = sys.byteorder == "big"


def name_of(dtype: DType) -> str:
    """The protocol's name of an element type. Raises ServeError if it has none."""
    found = NAMES.get(dtype)
    if found is None:
        raise bad(f"the protocol has no name for elements of type {dtype!r}")
    return found


def dimensions(info: TensorInfo) -> list[int]:
    """A tensor's shape in the protocol's form."""
    return [_UNKNOWN if d is None else d for d in info.open_shape]


def from_bytes(place: str, datatype: str, shape: Sequence[int], data: Any) -> Array:
    """The array in some bytes, if possible as a view. Raises ServeError if they do not match the type and shape."""
    dtype = TYPES[datatype]
    if dtype is DType.STRING:
        return _array_of_strings(place, shape, _strings(place, bytes(data), prod(shape)))
    expected = prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise bad(f"{place}: {len(data)} bytes are given for {datatype} of shape {list(shape)}, expected {expected}")
    found = np.frombuffer(data, dtype.numpy)
    if dtype is DType.BOOL and found.size and found.view(np.uint8).max() > 1:
        raise bad(f"{place}: a byte of BOOL is {found.view(np.uint8).max()}, expected 0 or 1")
    return (found.byteswap() if _SWAPPED else found).reshape(shape)


def to_bytes(array: Array) -> bytes:
    """An array's elements as bytes."""
    if array.dtype.kind == "O":
        return b"".join(_LENGTH.pack(len(each)) + each for each in array.ravel().tolist())
    return (array.byteswap() if _SWAPPED else array).tobytes()


def _strings(place: str, data: bytes, count: int) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at < len(data):
        start = at + _LENGTH.size
        if start > len(data):
            raise bad(f"{place}: only {len(data) - at} bytes are left for the length of element {len(found)}")
        at = start + _LENGTH.unpack_from(data, at)[0]
        if at > len(data):
            raise bad(
                f"{place}: element {len(found)} is {at - start} bytes long, but only {len(data) - start} are left"
            )
        found.append(data[start:at])
        if len(found) > count:
            break
    if len(found) != count:
        raise bad(
            f"{place}: the bytes hold {'more than ' * (len(found) > count)}{min(len(found), count)} elements, "
            f"expected {count}"
        )
    return found


def _array_of_strings(place: str, shape: Sequence[int], elements: Sequence[bytes]) -> Array:
    found = np.empty(len(elements), object)
    found[:] = elements
    return found.reshape(shape)


def from_list(place: str, datatype: str, shape: Sequence[int], data: Any) -> Array:
    """The array in a list of numbers, strings or booleans, flat or nested. Raises ServeError for invalid elements."""
    dtype = TYPES[datatype]
    if not isinstance(data, list):
        raise bad(f"{place}: data is {_kind(data)}, expected a list")
    count = prod(shape)
    if dtype is DType.STRING:
        texts = _flat(place, data, count)
        wrong = next((each for each in texts if not isinstance(each, str)), None)
        if wrong is not None:
            raise bad(f"{place}: an element of BYTES is {_kind(wrong)}, expected a string")
        try:
            return _array_of_strings(place, shape, [each.encode() for each in texts])
        except UnicodeEncodeError as error:
            raise bad(f"{place}: a string is not valid Unicode: {error.reason}") from error
    try:
        found = np.asarray(data)
    except (ValueError, OverflowError, RecursionError):
        found = np.empty(0, object)
    if found.dtype.kind not in "biuf" or (found.ndim != 1 and found.shape != tuple(shape)):
        found = np.asarray(_numbers(place, _flat(place, data, count)))  # raises an error for invalid elements
    if found.size != count:
        raise bad(f"{place}: data has {found.size} elements, expected {count} for shape {list(shape)}")
    return _converted(place, datatype, dtype, found).reshape(shape)


def _converted(place: str, datatype: str, dtype: DType, found: Array) -> Array:
    if not found.size:
        return found.astype(dtype.numpy)
    if dtype is DType.BOOL:
        if found.dtype.kind != "b" and not np.isin(found, (0, 1)).all():
            raise bad(f"{place}: an element of BOOL is neither true nor false")
        return found.astype(np.bool_)
    if not dtype.is_integer:
        with np.errstate(over="ignore"):
            return found.astype(dtype.numpy)
    if found.dtype.kind == "f":
        wrong = found[found != np.trunc(found)] if np.isfinite(found).all() else found[~np.isfinite(found)]
        if wrong.size:
            raise bad(f"{place}: an element of {datatype} is {wrong[0]}, expected a whole number")
    least, most = dtype.limits
    outside = found[(found < least) | (found > most)] if found.dtype.kind != "b" else found[:0]
    if outside.size or (found.dtype.kind == "f" and float(np.abs(found).max()) >= 2.0**63):
        wrong = outside if outside.size else found
        raise bad(f"{place}: an element of {datatype} is {wrong.flat[0]}, expected {least} to {most}")
    return found.astype(dtype.numpy)


def _flat(place: str, data: list[Any], count: int) -> list[Any]:
    """The elements of nested lists. Raises ServeError unless there are `count`; stops at the first one too many."""
    found: list[Any] = []
    stack = [iter(data)]
    while stack:
        for each in stack[-1]:
            if isinstance(each, list):
                stack.append(iter(each))
                break
            found.append(each)
            if len(found) > count:
                raise bad(f"{place}: data has more than {count} elements")
        else:
            stack.pop()
    if len(found) != count:
        raise bad(f"{place}: data has {len(found)} elements, expected {count}")
    return found


def _numbers(place: str, elements: list[Any]) -> list[Any]:
    for each in elements:
        if not isinstance(each, int | float):
            raise bad(f"{place}: an element is {_kind(each)}, expected a number")
        if isinstance(each, int) and not -(1 << 63) <= each < 1 << 64:
            raise bad(f"{place}: an element has more than 64 bits")
    if any(isinstance(each, int) and each >= 1 << 63 for each in elements) and any(each < 0 for each in elements):
        raise bad(f"{place}: no integer type holds both negative elements and elements above 2^63 - 1")
    return elements


def _kind(value: Any) -> str:
    """The name of a JSON value's type, with its article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
