"""Reading, ahead of its compilation, what a model will need: LLVM, and the modules behind the rules."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from onert.backend import Settings
from onert.backend.cache import Cache
from onert.ir import CallTypes, Op

from .target import target
from .version import version


def expect(operations: Iterable[tuple[Op, CallTypes]], settings: Settings, store: Cache) -> Callable[[], object] | None:
    """Read what compiling operations of these kinds needs, and begin to generate what runs kernels.

    The library is loaded beside the modules that do without it. What is given back waits for the code.
    """
    library = Thread(target=_library, name="onert-library")
    library.start()
    importlib.import_module(f"{__package__}.float_rules")
    version()  # which asks the system of every file, here where no thread waits for another at each
    library.join()
    code = importlib.import_module(f"{__package__}.code")
    generating: Thread | None = code.begin(target(settings.target), settings.num_threads, store)
    compiling = importlib.import_module(f"{__package__}.compiling")
    for op, types in operations:
        if types.outputs and all(t is None or t.is_static for t in (*types.inputs, *types.outputs)):
            compiling.rule(op, types).read()
    return None if generating is None else generating.join


def _library() -> None:
    """Load the library that llvmlite is about to load: 20 ms, in which Python's lock is held if llvmlite does it.

    Where it is not found, llvmlite says so.
    """
    llvmlite = find_spec("llvmlite")
    if llvmlite is not None and llvmlite.origin is not None and sys.platform == "linux":
        path = Path(llvmlite.origin).parent / "binding" / "libllvmlite.so"
        ctypes.CDLL(None).dlopen(os.fsencode(path), os.RTLD_NOW)
