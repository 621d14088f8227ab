"""Serialise functions and errors for devices in other processes."""

from __future__ import annotations

from collections.abc import Sequence

from onert.backend import Backend
from onert.compiler.program_cache.transport import serialise
from onert.exec import RunTimeoutError
from onert.host.device_manager import CompiledFunction
from onert.ir import BackendError, CompileError, ExecutionError, OnertError
from onert.ir.process import imports

_ERRORS: dict[str, type[OnertError]] = {
    kind.__name__: kind for kind in (BackendError, CompileError, ExecutionError, RunTimeoutError)
}
"""The errors that another process may raise, by name."""


def pieces(function: CompiledFunction, backends: Sequence[Backend]) -> list[bytes | memoryview]:
    """The program as bytes. One from the cache may no longer have its code as data and is compiled again, and so is one
    with parts that are compiled when it runs."""
    try:
        return serialise(function.program, backends)
    except BackendError:
        options = function.options.with_config(function.package.config)
        options = options.choose(disabled_passes=options.disabled_passes | {"cut"})
        compiler = imports.module("onert.compiler.compiler")
        return serialise(compiler.compilation(function.package, options, backends).first(), backends)


def told(error: BaseException) -> dict[str, str]:
    """Serialise an error."""
    if isinstance(error, OnertError):
        return {"error": type(error).__name__, "text": str(error)}
    return {"error": "BackendError", "text": f"{type(error).__name__}: {error}"}


def raised(answer: dict[str, str]) -> OnertError:
    """Restore an error from another process."""
    return _ERRORS.get(answer["error"], BackendError)(answer["text"])
