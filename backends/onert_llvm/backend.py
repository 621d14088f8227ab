"""The LLVM backend. Modules that only compilation needs are imported on first use: a program may be cached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from onert.backend import Backend, Group, Kernel, Sequence, Settings, StretchedKernel
from onert.backend.cache import Cache, default_directory
from onert.ir import CallTypes, Operation
from onert.ir.process import imports
from onert_llvm.codegen.fingerprint import version
from onert_llvm.runtime.native_kernel import NativeKernel
from onert_llvm.runtime.serialized_kernel import SERIALIZABLE, SerializedKernel, SerializedStretch, deserialized
from onert_llvm.target.isa import target

if TYPE_CHECKING:
    from pathlib import Path

    from onert.backend import Blueprint, ObjectCode
    from onert.ir.symbolic.trace import Trace


class Llvm(Backend):
    """Compiles sequences of operations to native code with LLVM."""

    api_version = 2
    name = "llvm"
    serializable = SERIALIZABLE
    side_by_side = True
    updates_in_place = True

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        wait: Callable[[], object] | None = imports.module("onert_llvm.warmup").expect(operations, settings, _store())
        return wait

    def begin(self, settings: Settings) -> None:
        _compile().begin(settings, _store())

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        reason: str | None = _compile().why_not(operation, types)
        return reason

    def most_threads(self, operation: Operation, types: CallTypes) -> int | None:
        most: int | None = _compile().most_threads(operation, types)
        return most

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        groups: tuple[Group, ...] = _compile().fuse(sequence)
        return groups

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        kernel: NativeKernel
        if settings.tune is None:
            kernel = _compile().generate(sequence, settings, _store())
        else:
            kernel = _loading().module("onert_llvm.tune").generate(sequence, settings, self.fingerprint(settings))
        return kernel

    def stretched(self, kernel: Kernel, trace: Trace) -> StretchedKernel | None:
        made: StretchedKernel | None = _compile().stretch(kernel, trace, _store())
        return made

    def emit_object(self, blueprint: Blueprint, settings: Settings) -> ObjectCode:
        """The object file of a blueprint: the code that `generate` would load, with entry points that call it."""
        emit = partial(_loading().module("onert_llvm.aot.emit_object").emit_object, blueprint, settings)
        emitted: ObjectCode = _loading().module("onert_llvm.codegen.kernel_compiler").submit(emit).result()
        return emitted

    def shown(self, kernel: Kernel, form: str) -> str:
        """The distinct kernels of a sequence as LLVM IR or as the target's assembly language."""
        show = partial(_compile().shown, kernel, form)
        text: str = _loading().module("onert_llvm.codegen.kernel_compiler").submit(show).result()
        return text

    def ship(self, sequences: Iterable[tuple[Sequence, Settings]], target: str) -> Path:
        path: Path = _loading().module("onert_llvm.ship").ship(sequences, target)
        return path

    def fingerprint(self, settings: Settings) -> str:
        return f"{version()} {target(settings.target, settings.precision)}"

    def calibrate(self, figures: Mapping[str, float]) -> bool:
        imports.module("onert_llvm.target.machines").calibrate(figures)
        return True

    def keep(self, kernel: Kernel) -> SerializedKernel | None:
        kept: SerializedKernel | None = _compile().serialize(kernel, _store())
        return kept

    def revive(self, kept: SerializedKernel, sequence: Sequence) -> Kernel:
        return deserialized(kept)

    def keep_stretched(self, kernel: StretchedKernel) -> SerializedStretch | None:
        kept: SerializedStretch | None = _compile().serialize_stretch(kernel, _store())
        return kept

    def revive_stretched(self, kept: SerializedStretch, kernel: Kernel) -> StretchedKernel:
        made: StretchedKernel = imports.module("onert_llvm.runtime.serialized_stretch").deserialized(kept, kernel)
        return made


@cache
def _compile() -> Any:
    """The module that compiles, cached as it is used several times per operation. Raises BackendError if LLVM cannot be
    loaded; if this package ships kernels, only the first kernel that is not among them does so."""
    name = "onert_llvm.compile"
    there = imports.module("onert_llvm.codegen.library").library(target("native").name)
    return imports.module(name) if there else _loading().module(name)


def _loading() -> Any:
    return imports.module("onert_llvm.codegen.loading")


def _store() -> Cache:
    return Cache(default_directory(os.environ))
