"""Loads what a model's compilation will need ahead of time: LLVM, and the modules behind the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onert.backend import Settings
from onert.backend.cache import Cache
from onert.backend.tasks import Pool, Task
from onert.ir import CallTypes, Operation
from onert.ir.process import imports
from onert_llvm.codegen.fingerprint import version
from onert_llvm.codegen.library import library
from onert_llvm.codegen.loading import llvm_codegen, read_library
from onert_llvm.target.isa import target


def expect(
    operations: Iterable[tuple[Operation, CallTypes]], settings: Settings, store: Cache
) -> Callable[[], object] | None:
    """Import what compiling these operations needs, and start generating the code that runs kernels.

    LLVM is loaded in another thread meanwhile, unless this package ships kernels; then LLVM may never be needed.
    Returns a function that waits for the generated code, or None if there is nothing to generate.
    """
    isa = target(settings.target, settings.precision)
    loading = None if library(isa.name) else _begun()
    imports.module("onert_llvm.rules.float_rules")
    version()  # stats every source file; done here, where no other thread waits for it
    compiler = imports.module("onert_llvm.codegen.kernel_compiler")
    if loading is not None:
        loading.result()
        llvm_codegen()
    generating: Task[object] | None = compiler.begin(isa, settings.num_threads, store)
    compile_ = imports.module("onert_llvm.compile")
    for operation, types in operations:
        compile_.import_lowering(operation, types)
    return None if generating is None else generating.wait


def _begun() -> Task[None]:
    """The task that loads LLVM's library."""
    task = Task(read_library)
    try:
        return Pool(1, "onert-library").give(task)
    except RuntimeError:  # the system has no thread to spare
        task.run()
        return task
