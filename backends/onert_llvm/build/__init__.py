"""A typed building layer over LLVM IR: a Python `for` unrolls, a `with k.loop(n)` stays a loop."""

from .kernel import Kernel, Var
from .types import F32, F64, I1, I8, I16, I32, I64, PTR, vec
from .value import Number, Val, intrinsic
from .view import View

__all__ = [
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "Kernel",
    "Number",
    "Val",
    "Var",
    "View",
    "intrinsic",
    "vec",
]
