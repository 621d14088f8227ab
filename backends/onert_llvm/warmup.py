"""Reading, ahead of its compilation, what a model will need: LLVM, and the modules behind the rules."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable

from onert.backend import Settings
from onert.backend.cache import Cache
from onert.backend.tasks import Pool, Task
from onert.ir import CallTypes, Operation
from onert.ir.process import imports
from onert.ir.process.forks import Section
from onert_llvm.codegen.fingerprint import llvm_folder, version
from onert_llvm.target.isa import target


def expect(
    operations: Iterable[tuple[Operation, CallTypes]], settings: Settings, store: Cache
) -> Callable[[], object] | None:
    """Read what compiling operations of these kinds needs, and begin to generate what runs kernels.

    The library is loaded beside the modules that do without it. What is given back waits for the code.
    """
    library = Task(_library)
    try:
        Pool(1, "onert-library").give(library)
    except RuntimeError:  # the system has no thread to spare
        library.run()
    imports.module("onert_llvm.rules.float_rules")
    version()  # which asks the system of every file, here where no thread waits for another at each
    library.result()
    compiler = imports.module("onert_llvm.codegen.kernel_compiler")
    generating: Task[object] | None = compiler.begin(
        target(settings.target, settings.precision), settings.num_threads, store
    )
    compile_ = imports.module("onert_llvm.compile")
    for operation, types in operations:
        compile_.read(operation, types)
    return None if generating is None else generating.wait


def _library() -> None:
    """Load the library that llvmlite is about to load: 20 ms, in which Python's lock is held if llvmlite does it.

    Where it is not found, llvmlite says so.
    """
    llvm = llvm_folder()
    if llvm is not None and sys.platform == "linux":
        with Section():
            ctypes.CDLL(None).dlopen(os.fsencode(llvm / "binding" / "libllvmlite.so"), os.RTLD_NOW)
