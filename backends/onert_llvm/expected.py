"""Reading, ahead of its compilation, what a model will need: LLVM, and the modules behind the rules."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from attrs import evolve

from onert.backend import Settings
from onert.backend.cache import Cache
from onert.ir import CallTypes, Op


def expect(operations: Iterable[tuple[Op, CallTypes]], settings: Settings, store: Cache) -> None:
    """Read what compiling operations of these kinds needs; all of it is there, and no thread is left, on return.

    The library is loaded beside the modules, and what runs kernels is generated beside the rest of them.
    """
    library = Thread(target=_library, name="onert-library")
    library.start()
    for module in ("float_rules", "lower.builder", "lower.command", "native_kernel"):
        importlib.import_module(f"{__package__}.{module}")
    library.join()
    compiling = importlib.import_module(f"{__package__}.compiling")
    generating = compiling.begin(evolve(settings, num_threads=1), store)  # what any number of threads takes
    for op, types in operations:
        if types.outputs and all(t is None or t.is_static for t in (*types.inputs, *types.outputs)):
            compiling.rule(op, types).read()
    if generating is not None:
        generating.join()


def _library() -> None:
    """Load the library that llvmlite is about to load: 20 ms, in which Python's lock is held if llvmlite does it.

    Where it is not found, llvmlite says so.
    """
    llvmlite = find_spec("llvmlite")
    if llvmlite is not None and llvmlite.origin is not None and sys.platform == "linux":
        path = Path(llvmlite.origin).parent / "binding" / "libllvmlite.so"
        ctypes.CDLL(None).dlopen(os.fsencode(path), os.RTLD_NOW)
