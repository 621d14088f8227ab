"""Data in a bundle's object: its configuration (sizes and the symbol table), the content ID that it shares with the
files beside it, and its weights if they are embedded.

struct SymbolTableEntry { const char *name; size_t offset; size_t size; char kind; };
struct BundleConfig { size_t constantWeightVarsMemSize, mutableWeightVarsMemSize, activationsMemSize, alignment,
                      numSymbols; const SymbolTableEntry *symbolTable; };
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from onert.backend import Blueprint, Region, Symbol
from onert_llvm.target.isa import Isa

I8, PTR = ir.IntType(8), ir.PointerType()


def define_configuration(
    module: ir.Module, isa: Isa, blueprint: Blueprint, symbols: Sequence[Symbol], constants: int, activations: int
) -> None:
    """Define `NAME_config`, given the bytes of constants and activations; `kind` is 1 for mutables, else 0."""
    size = ir.IntType(8 * isa.pointer_bytes)
    row = ir.LiteralStructType([PTR, size, size, I8])
    rows = [
        row(
            [
                _text(module, f"{blueprint.name}Name{number}", symbol.name),
                size(symbol.place.offset),
                size(symbol.elements),
                I8(0 if symbol.place.region is Region.CONSTANTS else 1),
            ]
        )
        for number, symbol in enumerate(symbols)
    ]
    table = _constant(module, f"{blueprint.name}SymbolTable", ir.Constant(ir.ArrayType(row, len(rows)), rows))
    table.linkage = "internal"
    sizes = (constants, blueprint.mutable_bytes, activations, blueprint.alignment, len(rows))
    whole = ir.LiteralStructType([*[size] * len(sizes), PTR])
    _constant(module, f"{blueprint.name}_config", ir.Constant(whole, [*map(size, sizes), table]))


def content_text(symbol: str, content: bytes) -> str:
    """A module with the content ID, which the object shares with its constants and header."""
    data = "".join(f"\\{byte:02x}" for byte in content)
    return f'@"{symbol}" = constant [{len(content)} x i8] c"{data}", align 8\n'


def define_weights(module: ir.Module, symbol: str, data: bytes, alignment: int) -> str:
    """Define all constants in the object; returns their symbol."""
    found = _constant(module, symbol, ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data)))
    found.align = alignment
    return symbol


def _text(module: ir.Module, label: str, text: str) -> ir.GlobalVariable:
    raw = bytearray(text.encode()) + b"\0"
    found = _constant(module, label, ir.Constant(ir.ArrayType(I8, len(raw)), raw))
    found.linkage, found.unnamed_addr = "private", True
    return found


def _constant(module: ir.Module, name: str, value: ir.Constant) -> ir.GlobalVariable:
    made = ir.GlobalVariable(module, value.type, name)
    made.initializer, made.global_constant = value, True
    made.type = PTR
    return made
