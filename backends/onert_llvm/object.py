"""From IR to machine code: an ELF object for a target, and its text for people."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from onert.ir import BackendError

from .target import Isa


def new_module(isa: Isa, name: str = "") -> ir.Module:
    """An empty module for a target."""
    module = ir.Module(name)
    module.triple = isa.triple
    return module


def compile_object(module: ir.Module, isa: Isa, opt: int = 2) -> bytes:
    """The relocatable object of a module: code generation alone, no optimisation pipeline before it."""
    parsed, machine = _prepare(module, isa, opt)
    return bytes(machine.emit_object(parsed))


def compile_text(text: str, isa: Isa, opt: int = 2) -> bytes:
    """The relocatable object of a module written as LLVM's own text."""
    machine = _machine(isa, opt)
    try:
        parsed = llvm.parse_assembly(text)
        parsed.verify()
    except RuntimeError as error:
        raise BackendError(f"the text is not valid IR: {error}") from error
    parsed.triple = isa.triple
    parsed.data_layout = str(machine.target_data)
    return bytes(machine.emit_object(parsed))


def assembly(module: ir.Module, isa: Isa, opt: int = 2) -> str:
    """What `compile_object` would produce, as assembler text."""
    parsed, machine = _prepare(module, isa, opt)
    return str(machine.emit_assembly(parsed))


def code_generator() -> str:
    """Names the version of the code generator: objects of different ones are not interchangeable."""
    return "llvm-" + ".".join(str(part) for part in llvm.llvm_version_info)


def _prepare(module: ir.Module, isa: Isa, opt: int) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _machine(isa, opt)
    module.data_layout = str(machine.target_data)
    try:
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
    except RuntimeError as error:
        raise BackendError(f"the module {module.name!r} is not valid IR: {error}") from error
    return parsed, machine


@cache
def _machine(isa: Isa, opt: int) -> llvm.TargetMachine:
    _initialize()
    found = llvm.Target.from_triple(isa.triple)
    return found.create_target_machine(isa.cpu, isa.features, opt, reloc="pic", codemodel="small", printmc=False)


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
