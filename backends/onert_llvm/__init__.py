"""The LLVM backend: compiles whole sequences of operations to native code."""

from .backend import Llvm

__all__ = ["Llvm"]
