"""The functions that callers see: each checks its constants and calls a version of the code.

The first call chooses the version from what the processor and the operating system report. Several threads may do that
at once, since all arrive at the same version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir
from llvmlite.ir.instructions import StoreAtomicInstr

from onert.backend import Code
from onert_llvm.target.isa import Isa
from onert_llvm.target.versions import NEEDS

from .constant_layout import CONTENT_BYTES

I8, I32, I64, PTR = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()

_REGISTERS = ("eax", "ebx", "ecx", "edx")

_V2_V3 = (0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29)
"""Bits of leaf 1, ecx: SSE3, SSSE3, FMA, CX16, SSE4.1, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C."""

_X86: Mapping[str, Sequence[tuple[tuple[int, int, str], Sequence[int]]]] = {
    "v3": (
        ((0x1, 0, "ecx"), _V2_V3),
        ((0x7, 0, "ebx"), (3, 5, 8)),  # BMI1, AVX2, BMI2
        ((0x80000001, 0, "ecx"), (0, 5)),  # LAHF, LZCNT
    ),
    "v4": (((0x7, 0, "ebx"), (16, 17, 28, 30, 31)),),  # AVX512F, DQ, CD, BW, VL
    "avxvnni": (((0x7, 1, "eax"), (4,)),),
    "avx512vnni": (((0x7, 0, "ecx"), (11,)),),
    "avx512vbmi": (((0x7, 0, "ecx"), (1,)),),
}
"""The bits that cpuid must set, by leaf, subleaf and register, for each feature that versions need. From the x86-64
psABI's levels and the manuals of Intel and AMD."""

_STATES = {"v3": 0x06, "v4": 0xE6}
"""Bits of XCR0: the registers that the operating system must save."""

_SYSTEM_V = "x86_64_sysvcc"
"""The calling convention of `codegen/native/cpuid.ll`."""

_AT_HWCAP, _DOTPROD = 16, 20
"""Linux's getauxval key for AArch64 features, and the bit of byte dot products in its value."""


def define_hook(module: ir.Module, symbol: str) -> ir.Function:
    """Define a weak function of a layer's number and 0 before it, 1 after it; it does nothing unless overridden."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I32, I32]), symbol)
    function.linkage = "weak"
    ir.IRBuilder(function.append_basic_block("entry")).ret_void()
    return function


class Public:
    """Public functions of a module whose code has a version for each target, the least capable first.

    `content` is the symbol of the content ID, `constants` the size of the constants in bytes (content ID included), and
    `version` the symbol of the function that returns the chosen version.
    """

    def __init__(self, module: ir.Module, versions: Sequence[Isa], content: str, constants: int, version: str) -> None:
        self._module = module
        self._content = ir.GlobalVariable(module, ir.ArrayType(I8, CONTENT_BYTES), content)
        self._content.global_constant, self._content.type = True, PTR
        self._constants = constants
        self._chosen = _define_chosen(module, versions, version) if len(versions) > 1 else None

    def define(self, symbol: str, versions: Sequence[ir.Function]) -> None:
        """Define the function that calls the chosen version, if the given constants belong to the object."""
        t = versions[0].function_type
        function = ir.Function(self._module, t, symbol)
        function.attributes.add("nounwind")
        b = ir.IRBuilder(function.append_basic_block("entry"))
        constants = function.args[0]
        same = None
        for at in range(0, CONTENT_BYTES, 8):
            theirs = b.gep(constants, [I64(self._constants - CONTENT_BYTES + at)], source_etype=I8)
            ours = b.gep(self._content, [I64(at)], source_etype=I8)
            equal = b.icmp_unsigned("==", *(b.load(side, typ=I64, align=8) for side in (theirs, ours)))
            same = equal if same is None else b.and_(same, equal)
        with b.if_then(b.not_(same), likely=False):
            b.ret(I32(Code.CONTENT.value))
        if self._chosen is None:
            b.ret(b.call(versions[0], function.args))
            return
        least, *others = (function.append_basic_block("version") for _ in versions)
        switch = b.switch(b.call(self._chosen, []), least)
        for number, block in enumerate(others, 1):
            switch.add_case(I32(number), block)
        for block, version in zip((least, *others), versions, strict=True):
            b.position_at_end(block)
            b.ret(b.call(version, function.args))


def _define_chosen(module: ir.Module, versions: Sequence[Isa], symbol: str) -> ir.Function:
    """Define `int symbol(void)`: the number of the most capable version that can run here, determined once."""
    known = ir.GlobalVariable(module, I32, "onert.version")
    known.initializer, known.linkage = I32(-1), "internal"
    known.type = PTR
    function = ir.Function(module, ir.FunctionType(I32, []), symbol)
    function.attributes.add("nounwind")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    found = b.load_atomic(known, "monotonic", 4, typ=I32)
    with b.if_then(b.icmp_signed(">=", found, I32(0)), likely=True):
        b.ret(found)
    has = _x86(module, b) if versions[0].architecture == "x86_64" else _aarch64(module, b)
    best: ir.Value = I32(0)
    for number, isa in enumerate(versions):
        able: ir.Value = ir.Constant(ir.IntType(1), 1)
        for need in NEEDS[isa.name]:
            able = b.and_(able, has[need])
        best = b.select(able, I32(number), best)
    b._insert(StoreAtomicInstr(b.block, best, known, "monotonic", 4))  # the builder's own method wants a typed pointer
    b.ret(best)
    return function


def _x86(module: ir.Module, b: ir.IRBuilder) -> Mapping[str, ir.Value]:
    """Whether the processor has what versions need, by name."""
    cpuid = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, I32, I32]), "onert.cpuid")
    xgetbv = ir.Function(module, ir.FunctionType(I32, []), "onert.xgetbv")
    cpuid.calling_convention = xgetbv.calling_convention = _SYSTEM_V
    words = b.alloca(ir.ArrayType(I32, len(_REGISTERS)))
    words.type = PTR

    def query(leaf: int, subleaf: int) -> dict[str, ir.Value]:
        b.call(cpuid, [words, I32(leaf), I32(subleaf)], cconv=_SYSTEM_V)
        return {name: b.load(b.gep(words, [I32(at)], source_etype=I32), typ=I32) for at, name in enumerate(_REGISTERS)}

    last = query(0, 0)["eax"]
    reported: dict[tuple[int, int], dict[str, ir.Value]] = {}
    for leaf, subleaf in dict.fromkeys(word[:2] for tests in _X86.values() for word, _ in tests):
        there = b.icmp_unsigned(">=", last, I32(leaf if leaf < 0x80000000 else 1))
        reported[leaf, subleaf] = {name: b.select(there, v, I32(0)) for name, v in query(leaf, subleaf).items()}
    saves = b.icmp_unsigned("!=", b.and_(reported[1, 0]["ecx"], I32(1 << 27)), I32(0))
    before = b.block
    with b.if_then(saves):
        inside, states = b.block, b.call(xgetbv, [], cconv=_SYSTEM_V)
    saved = b.phi(I32)
    saved.add_incoming(I32(0), before)
    saved.add_incoming(states, inside)
    found = {}
    for name, tests in _X86.items():
        able = _all_set(b, saved, _STATES.get(name, 0))
        for (leaf, subleaf, register), bits in tests:
            able = b.and_(able, _all_set(b, reported[leaf, subleaf][register], sum(1 << bit for bit in bits)))
        found[name] = able
    return found


def _aarch64(module: ir.Module, b: ir.IRBuilder) -> Mapping[str, ir.Value]:
    getauxval = ir.Function(module, ir.FunctionType(I64, [I64]), "getauxval")
    reported = b.trunc(b.call(getauxval, [I64(_AT_HWCAP)]), I32)
    return {"dotprod": _all_set(b, reported, 1 << _DOTPROD)}


def _all_set(b: ir.IRBuilder, word: ir.Value, bits: int) -> ir.Value:
    return b.icmp_unsigned("==", b.and_(word, I32(bits)), I32(bits))
