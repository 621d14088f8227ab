"""Loads LLVM when code is generated, and not earlier: a program, or some of its kernels, may come from elsewhere."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from onert.ir import BackendError
from onert.ir.process import imports
from onert.ir.process.forks import NoFork

from .fingerprint import llvm_folder


def llvm_codegen() -> Any:
    """The module that generates code. Raises BackendError if LLVM cannot be loaded."""
    return module("onert_llvm.codegen.llvm_codegen")


def module(name: str) -> Any:
    """A module of this backend that needs LLVM. Raises BackendError if LLVM cannot be loaded."""
    try:
        imports.module("llvmlite.binding")
    except Exception as error:  # a missing package or library, or one built for something else
        raise BackendError(
            f"backend 'llvm' cannot be used because LLVM cannot be loaded ({type(error).__name__}: {error}); repair "
            "llvmlite, or choose other backends, such as BACKENDS=reference"
        ) from error
    return imports.module(name)


def read_library() -> None:
    """Load the library that llvmlite is about to load, without holding the interpreter lock for 20 ms as llvmlite does.

    If it is missing, llvmlite reports that.
    """
    llvm = llvm_folder()
    if llvm is not None and sys.platform == "linux":
        with NoFork():
            ctypes.CDLL(None).dlopen(os.fsencode(llvm / "binding" / "libllvmlite.so"), os.RTLD_NOW)
