"""The types that kernels compute with, under short names."""

from __future__ import annotations

from llvmlite import ir

I1, I8, I16, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()
VOID = ir.VoidType()


def vec(element: ir.Type, lanes: int) -> ir.Type:
    """A vector of so many elements; the element itself for one lane."""
    return element if lanes == 1 else ir.VectorType(element, lanes)


def element(t: ir.Type) -> ir.Type:
    """The type of a vector's lanes; a scalar is its own element."""
    return t.element if isinstance(t, ir.VectorType) else t


def lanes(t: ir.Type) -> int:
    """How many elements a value of this type holds."""
    return t.count if isinstance(t, ir.VectorType) else 1


def is_float(t: ir.Type) -> bool:
    """Whether the lanes are floating-point numbers."""
    return isinstance(element(t), ir.FloatType | ir.DoubleType)


def size(t: ir.Type) -> int:
    """Bytes of one element in memory."""
    e = element(t)
    if isinstance(e, ir.FloatType):
        return 4
    if isinstance(e, ir.IntType):
        return max(1, int(e.width) // 8)
    return 8


def mangle(t: ir.Type) -> str:
    """The suffix that names a type in an overloaded intrinsic."""
    if isinstance(t, ir.VectorType):
        return f"v{t.count}{mangle(t.element)}"
    if isinstance(t, ir.PointerType):
        return "p0"
    return str(t.intrinsic_name)
