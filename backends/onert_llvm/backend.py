"""The backend. What it needs only to compile is read when something is compiled: a program may come from the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from onert.backend import Backend, Group, Kernel, Sequence, Settings
from onert.backend.cache import Cache, default_directory
from onert.ir import BackendError, CallTypes, Operation, imports

from .kept import SERIALIZABLE, KeptKernel, revived
from .native_kernel import NativeKernel
from .target import target
from .version import version

if TYPE_CHECKING:
    from onert.backend import Blueprint, ObjectCode


class Llvm(Backend):
    """Native code for sequences of operations, made with LLVM."""

    name = "llvm"
    serializable = SERIALIZABLE

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        wait: Callable[[], object] | None = imports.module("onert_llvm.expected").expect(operations, settings, _store())
        return wait

    def begin(self, settings: Settings) -> None:
        _compiling().begin(settings, _store())

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        reason: str | None = _compiling().why_not(operation, types)
        return reason

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        groups: tuple[Group, ...] = _compiling().fuse(sequence)
        return groups

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        kernel: NativeKernel = _compiling().generate(sequence, settings, _store())
        return kernel

    def emit_object(self, blueprint: Blueprint, settings: Settings) -> ObjectCode:
        """The object of a blueprint: the code that `generate` would load, with entry points that call it."""
        emit = partial(_module("emitting").emit_object, blueprint, settings)
        emitted: ObjectCode = _module("code").submit(emit).result()
        return emitted

    def fingerprint(self, settings: Settings) -> str:
        return f"{version()} {target(settings.target)}"

    def keep(self, kernel: Kernel) -> KeptKernel:
        kept: KeptKernel = _compiling().keep(kernel, _store())
        return kept

    def revive(self, kept: KeptKernel, sequence: Sequence) -> Kernel:
        return revived(kept)


def _compiling() -> Any:
    return _module("compiling")


def _module(name: str) -> Any:
    """A module of this backend that needs LLVM; BackendError where LLVM cannot be loaded."""
    try:
        imports.module("llvmlite.binding")
    except Exception as error:  # a missing package, a missing library, one built for something else
        raise BackendError(
            f"backend 'llvm' cannot be used, for LLVM cannot be loaded ({type(error).__name__}: {error}); repair "
            "llvmlite, or choose other backends, such as BACKENDS=reference"
        ) from error
    return imports.module(f"{__package__}.{name}")


def _store() -> Cache:
    return Cache(default_directory(os.environ))
