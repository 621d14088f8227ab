"""Element types."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, Self

import numpy as np

from onert.ir.process.cached import cached

from .errors import RuleError
from .process import imports

Array = np.ndarray[Any, Any]


_HEAD: int = object.__basicsize__
"""Where NumPy's arrays have the address of their elements: behind what all objects of CPython begin with (PyArrayObject
in NumPy's C API)."""
_pointer = ctypes.c_void_p.from_address


def _described(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _read(array: Array) -> int:
    return _pointer(id(array) + _HEAD).value or 0


def _fastest() -> Callable[[Array], int]:
    """`_read`, which takes an eighth of the time, if the interpreter's objects are where it reads."""
    trial = np.zeros(1)
    in_place = sys.implementation.name == "cpython" and _read(trial) == _described(trial)
    return _read if in_place else _described


address = _fastest()
"""The address of an array's first element."""


class DType(Enum):
    """An element type: its name in the text form, the NumPy type that stores one element, and its width in bits.

    Elements of less than 8 bits are packed only in files; in memory one element is one byte.
    STRING elements are Python `bytes`; RESOURCE and VARIANT elements are handles. NumPy stores these as objects.
    """

    FLOAT32 = ("f32", np.float32, 32)
    FLOAT16 = ("f16", np.float16, 16)
    BFLOAT16 = ("bf16", "bfloat16", 16)
    FLOAT64 = ("f64", np.float64, 64)
    FLOAT8_E4M3FN = ("f8e4m3fn", "float8_e4m3fn", 8)
    FLOAT8_E5M2 = ("f8e5m2", "float8_e5m2", 8)
    FLOAT8_E4M3FNUZ = ("f8e4m3fnuz", "float8_e4m3fnuz", 8)
    FLOAT8_E5M2FNUZ = ("f8e5m2fnuz", "float8_e5m2fnuz", 8)
    FLOAT8_E8M0FNU = ("f8e8m0fnu", "float8_e8m0fnu", 8)
    FLOAT4_E2M1FN = ("f4e2m1fn", "float4_e2m1fn", 4)
    INT2 = ("i2", np.int8, 2)
    INT4 = ("i4", np.int8, 4)
    INT8 = ("i8", np.int8, 8)
    INT16 = ("i16", np.int16, 16)
    INT32 = ("i32", np.int32, 32)
    INT64 = ("i64", np.int64, 64)
    UINT2 = ("u2", np.uint8, 2)
    UINT4 = ("u4", np.uint8, 4)
    UINT8 = ("u8", np.uint8, 8)
    UINT16 = ("u16", np.uint16, 16)
    UINT32 = ("u32", np.uint32, 32)
    UINT64 = ("u64", np.uint64, 64)
    BOOL = ("bool", np.bool_, 8)
    COMPLEX64 = ("c64", np.complex64, 64)
    COMPLEX128 = ("c128", np.complex128, 128)
    STRING = ("str", np.object_, 0)
    RESOURCE = ("resource", np.object_, 0)
    VARIANT = ("variant", np.object_, 0)

    def __init__(self, text: str, storage: type[Any] | str, bits: int) -> None:
        self.text = text
        self._storage = storage
        self.bits = bits

    @cached
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type. Types that NumPy lacks come from ml_dtypes, which is imported when one of them is used."""
        storage = self._storage
        found: np.dtype[Any] = np.dtype(
            getattr(imports.module("ml_dtypes"), storage) if isinstance(storage, str) else storage
        )
        return found

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is Python code

    def __repr__(self) -> str:
        return self.text

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The type with this name in the text form. Raises ValueError if there is none."""
        for member in cls:
            if member.text == text:
                return member
        raise ValueError(f"{text!r} names no element type")

    @classmethod
    def from_numpy(cls, dtype: np.dtype[Any] | type[Any]) -> Self:
        """The type whose elements NumPy stores as `dtype`. Raises ValueError if there is none.

        Byte and text strings map to STRING; a one-byte integer maps to INT8 or UINT8, never to a packed type.
        """
        wanted = np.dtype(dtype)
        if wanted.kind in "SUOT":
            return cls.STRING
        for member in _NATIVE_FIRST:
            own = isinstance(member._storage, str)  # has its own NumPy type, whatever its width
            if member.numpy == wanted and (own or member.bits == wanted.itemsize * 8):
                return member
        raise ValueError(f"no element type of a model corresponds to NumPy's {wanted}")

    @property
    def itemsize(self) -> int:
        """The size of one element in memory, in bytes (1 for packed types)."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        return self.numpy.kind in "iu"

    @property
    def is_complex(self) -> bool:
        return self.numpy.kind == "c"

    @property
    def is_numeric(self) -> bool:
        """Whether elements are numbers with arithmetic: floats, integers or complex numbers, but not booleans."""
        return self.is_float or self.is_integer or self.is_complex

    @property
    def is_handle(self) -> bool:
        """Whether elements are Python objects instead of plain bytes of fixed size."""
        return self.numpy.kind == "O"

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and largest value of an integer type (for packed types the logical one). Otherwise RuleError."""
        if not self.is_integer:
            raise RuleError(f"elements are {self.text}, expected integers")
        if self.numpy.kind == "u":
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


NARROW_FLOATS = frozenset(
    {
        DType.FLOAT8_E4M3FN,
        DType.FLOAT8_E5M2,
        DType.FLOAT8_E4M3FNUZ,
        DType.FLOAT8_E5M2FNUZ,
        DType.FLOAT8_E8M0FNU,
        DType.FLOAT4_E2M1FN,
    }
)
"""Floating-point types of at most 8 bits."""
_FLOATS = NARROW_FLOATS | {DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64}
_NATIVE_FIRST = sorted(DType, key=lambda dtype: isinstance(dtype._storage, str))


def codes_of(octets: Array, bits: int) -> Array:
    """Unpack codes of `bits` bits from bytes along the last axis, lowest bits first; uint8, one code per element."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (octets[..., None].astype(np.uint8) >> shifts) & np.uint8((1 << bits) - 1)
    out: Array = parts.reshape(*octets.shape[:-1], octets.shape[-1] * (8 // bits))
    return out


def packed_codes(codes: Array, bits: int) -> Array:
    """The inverse of `codes_of`; the codes along the last axis must fill whole bytes."""
    parts = codes.astype(np.uint8).reshape(*codes.shape[:-1], -1, 8 // bits)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    out: Array = np.bitwise_or.reduce(parts << shifts, axis=-1)
    return out
