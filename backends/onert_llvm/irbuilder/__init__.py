"""A typed layer for building LLVM IR: a Python `for` unrolls, a `with k.loop(n)` stays a loop."""

from .kernel import Kernel, Var
from .text import Block, Module, Number
from .types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, PTR, Type, vec
from .value import Val, deinterleave, interleave, intrinsic, transposed
from .view import View

__all__ = [
    "BF16",
    "F16",
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "Block",
    "Kernel",
    "Module",
    "Number",
    "Type",
    "Val",
    "Var",
    "View",
    "deinterleave",
    "interleave",
    "intrinsic",
    "transposed",
    "vec",
]
