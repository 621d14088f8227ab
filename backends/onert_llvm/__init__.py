"""The LLVM backend: whole sequences of operations as native code."""

from .backend import Llvm

__all__ = ["Llvm"]
