"""Reading, ahead of its compilation, what a model will need: LLVM, and the modules behind the rules."""

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
    """Read what compiling operations of these kinds needs, and begin to generate what runs kernels.

    LLVM's library is loaded beside the modules that do without it, unless kernels were generated before this package
    was installed: then maybe nothing needs it. What is given back waits for the code.
    """
    isa = target(settings.target, settings.precision)
    loading = None if library(isa.name) else _begun()
    imports.module("onert_llvm.rules.float_rules")
    version()  # which asks the system of every file, here where no thread waits for another at each
    compiler = imports.module("onert_llvm.codegen.kernel_compiler")
    if loading is not None:
        loading.result()
        llvm_codegen()
    generating: Task[object] | None = compiler.begin(isa, settings.num_threads, store)
    compile_ = imports.module("onert_llvm.compile")
    for operation, types in operations:
        compile_.read(operation, types)
    return None if generating is None else generating.wait


def _begun() -> Task[None]:
    """LLVM's library, being loaded."""
    task = Task(read_library)
    try:
        return Pool(1, "onert-library").give(task)
    except RuntimeError:  # the system has no thread to spare
        task.run()
        return task
