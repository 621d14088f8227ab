"""From IR to machine code: an ELF object for a target, and its text for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm

from onert.ir import BackendError

from .target import Isa

_LEVEL = 2
"""How hard the code generator of a whole object tries; that of kernels alone is the same."""


def compile_text(text: str, isa: Isa, opt: int = _LEVEL) -> bytes:
    """The relocatable object of a module: code generation alone, no optimisation pipeline before it.

    BackendError for text that is no valid module.
    """
    parsed, machine = _prepared(text, isa, opt)
    return bytes(machine.emit_object(parsed))


def assembly(text: str, isa: Isa, opt: int = _LEVEL) -> str:
    """What `compile_text` would produce, as assembler text."""
    parsed, machine = _prepared(text, isa, opt)
    return str(machine.emit_assembly(parsed))


def link(
    texts: Sequence[str], isa: Isa, exported: Collection[str], relocation: str, listings: Collection[str] = ()
) -> tuple[bytes, Mapping[str, str]]:
    """One relocatable object of several modules: what is not `exported` is visible in it alone.

    Beside it the wanted listings: "ir" and "asm" as text. BackendError where modules do not fit together.
    """
    if isa.architecture == "wasm32":
        relocation = "static"  # anything else is for WebAssembly's dynamic linking, which engines do not know
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


def code_generator() -> str:
    """Names the version of the code generator: objects of different ones are not interchangeable."""
    return "llvm-" + ".".join(str(part) for part in llvm.llvm_version_info)


def _prepared(text: str, isa: Isa, opt: int) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _machine(isa, opt)
    try:
        parsed = llvm.parse_assembly(text)
        parsed.verify()
    except RuntimeError as error:
        raise BackendError(f"the text is not valid IR: {error}") from error
    parsed.triple = isa.triple
    parsed.data_layout = _data_layout(isa, opt)
    return parsed, machine


@cache
def _data_layout(isa: Isa, opt: int) -> str:
    return str(_machine(isa, opt).target_data)


@cache
def _machine(isa: Isa, opt: int, reloc: str = "pic") -> llvm.TargetMachine:
    _initialize()
    found = llvm.Target.from_triple(isa.triple)
    return found.create_target_machine(isa.cpu, isa.features, opt, reloc=reloc, codemodel="small", abiname=isa.abi)


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
