"""The types that kernels compute with, under short names."""

from __future__ import annotations

from enum import Enum
from functools import cache

from attrs import frozen

from onert.ir.value import ByIdentity


class Sort(Enum):
    """The kinds of types."""

    INTEGER = "integer"
    FLOAT = "float"
    POINTER = "pointer"
    VOID = "void"
    VECTOR = "vector"


@frozen(eq=False)
class Type(ByIdentity):
    """An LLVM type: its text, its suffix in names of intrinsics, the bits of an element, and its lanes.

    There is one object for each type, so types are compared by identity.
    """

    text: str
    suffix: str
    sort: Sort
    width: int
    lanes: int = 1
    of: Type | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def element(self) -> Type:
        """The type of the lanes; a scalar is its own element."""
        return self if self.of is None else self.of


I1, I8, I16, I32, I64 = (Type(f"i{n}", f"i{n}", Sort.INTEGER, n) for n in (1, 8, 16, 32, 64))
F32, F64 = Type("float", "f32", Sort.FLOAT, 32), Type("double", "f64", Sort.FLOAT, 64)
F16, BF16 = Type("half", "f16", Sort.FLOAT, 16), Type("bfloat", "bf16", Sort.FLOAT, 16)
PTR = Type("ptr", "p0", Sort.POINTER, 64)
VOID = Type("void", "isVoid", Sort.VOID, 0)


@cache
def vec(element: Type, lanes: int) -> Type:
    """A vector type with this many lanes; the element type itself for one lane."""
    if lanes == 1:
        return element
    text = f"<{lanes} x {element.text}>"
    return Type(text, f"v{lanes}{element.suffix}", Sort.VECTOR, element.width, lanes, element)


def is_float(t: Type) -> bool:
    """Whether the lanes are floating-point numbers."""
    return t.element.sort is Sort.FLOAT


def size(t: Type) -> int:
    """The size of an element in memory, in bytes."""
    return max(1, t.width // 8)
