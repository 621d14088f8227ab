"""From IR to machine code: an ELF object for a target, and its readable assembly."""

from __future__ import annotations

import ctypes
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

import llvmlite.binding as llvm
from attrs import frozen
from llvmlite.binding import ffi

from onert.ir import BackendError
from onert_llvm.target.isa import Isa

_LEVEL = 1
"""LLVM's optimisation level of code generation: higher ones take longer and give the same code."""


def _unlock() -> None:
    """Replace the lock of LLVM's interface after a fork, since another thread may have held it."""
    lock: Any = getattr(ffi.lib, "_lock", None)
    if hasattr(lock, "_lock"):
        lock._lock = RLock()


os.register_at_fork(after_in_child=_unlock)


def compile_text(text: str, isa: Isa, opt: int = _LEVEL) -> bytes:
    """The relocatable object of a module: code generation only, without an optimisation pipeline before it.

    Any number of threads may call this at once. Raises BackendError if the text is not a valid module.
    """
    return emitted(prepared(text, isa, opt))


def assembly(text: str, isa: Isa, opt: int = _LEVEL) -> str:
    """What `compile_text` would produce, as assembly text."""
    found = prepared(text, isa, opt)
    with _borrowed_machine(found.isa, found.opt) as machine:
        return str(machine.emit_assembly(found.module))


def link(
    texts: Sequence[str], isa: Isa, exported: Collection[str], relocation: str, listings: Collection[str] = ()
) -> tuple[bytes, Mapping[str, str]]:
    """One relocatable object of several modules, in which symbols that are not `exported` become internal.

    Also returns the wanted listings, "ir" and "asm", as text. Raises BackendError if the modules do not fit together.
    """
    if isa.architecture == "wasm32":
        relocation = "static"  # anything else is for WebAssembly's dynamic linking, which engines do not support
    machine = _machine(isa, _LEVEL, relocation)
    parsed = _linked(texts, isa, machine, exported)
    found = {"ir": str(parsed)} if "ir" in listings else {}
    code = bytes(machine.emit_object(parsed))
    if "asm" in listings:  # from modules of its own: generating code changes them
        found["asm"] = str(machine.emit_assembly(_linked(texts, isa, machine, exported)))
    return code, found


def _linked(texts: Sequence[str], isa: Isa, machine: llvm.TargetMachine, exported: Collection[str]) -> llvm.ModuleRef:
    try:
        whole, *others = (llvm.parse_assembly(text) for text in texts)
        for module in (whole, *others):
            module.triple, module.data_layout = isa.triple, str(machine.target_data)
        for module in others:
            whole.link_in(module)
        whole.verify()
    except RuntimeError as error:
        raise BackendError(f"the modules do not make a valid object: {error}") from error
    for function in whole.functions:
        if not function.is_declaration and function.name not in exported:
            function.linkage = "internal"
    return whole


@frozen(eq=False)
class Prepared:
    """A module in a context of its own, with its target: to generate code from once, in any one thread."""

    module: llvm.ModuleRef
    isa: Isa
    opt: int


def prepared(text: str, isa: Isa, opt: int = _LEVEL) -> Prepared:
    """A module parsed from text. Raises BackendError if the text is not valid IR."""
    layout = _data_layout(isa)
    try:
        parsed = llvm.parse_assembly(text, llvm.create_context())
        parsed.verify()
    except RuntimeError as error:
        raise BackendError(f"the text is not valid IR: {error}") from error
    parsed.triple = isa.triple
    parsed.data_layout = layout
    return Prepared(parsed, isa, opt)


def emitted(given: Prepared) -> bytes:
    """What `machine.emit_object` returns, but without taking llvmlite's lock on all of LLVM.

    LLVM only requires that a context and everything in it are used by one thread at a time; this context is used by
    this thread alone.
    """
    with _borrowed_machine(given.isa, given.opt) as machine, ffi.OutputString() as message:
        buffer = _emit()(machine, given.module, 1, message)
        if not buffer:
            raise BackendError(f"no code can be generated: {message}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _emit() -> Any:
    locked = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    found = ctypes.CDLL(ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
    found.argtypes, found.restype = locked.argtypes, locked.restype
    return found


def _machine(isa: Isa, opt: int, reloc: str = "pic") -> llvm.TargetMachine:
    _initialize(isa.architecture == llvm.get_default_triple().split("-", 1)[0])
    found = llvm.Target.from_triple(isa.triple)
    return found.create_target_machine(isa.cpu, isa.features, opt, reloc=reloc, codemodel="small", abiname=isa.abi)


_IDLE: defaultdict[tuple[Isa, int], list[llvm.TargetMachine]] = defaultdict(list)
"""Idle target machines: setting one up takes longer than generating a small kernel's code."""


@contextmanager
def _borrowed_machine(isa: Isa, opt: int) -> Iterator[llvm.TargetMachine]:
    """A machine for one thread at a time; one whose use failed is not used again."""
    try:
        machine = _IDLE[isa, opt].pop()
    except IndexError:
        machine = _machine(isa, opt)
    yield machine
    _IDLE[isa, opt].append(machine)


@cache
def _data_layout(isa: Isa) -> str:
    with _borrowed_machine(isa, _LEVEL) as machine:
        return str(machine.target_data)


@cache
def _initialize(native: bool) -> None:
    """Register LLVM's code generators: only this machine's if possible, which is much faster than all."""
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
