"""Modules written as LLVM IR text, with their substitutions for a target."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

from onert.ir import BackendError
from onert_llvm.target.isa import Isa

_PAUSE = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    "riscv64": ("", ""),
}
"""The hint to the processor that a thread is spinning, and its declaration."""


def jump_text() -> str:
    """`jump.ll`, which is the same for every target."""
    return _text("jump.ll")


def run_text() -> str:
    """`run.ll` with `jump.ll`, the same for every 64-bit target."""
    return jump_text() + _text("run.ll")


def numbers_text() -> str:
    """`numbers.ll`, the same for every 64-bit target."""
    return _text("numbers.ll")


def pool_texts(isa: Isa) -> tuple[str, str]:
    """The texts of the thread pool for a target, which call one another: `pool.ll`, which walks commands, and
    `workers.ll` with `lend.ll` and `adapt.ll`, which run rarely or while a thread has nothing else to do.

    Raises BackendError for a target with another word size or system.
    """
    if isa.architecture not in _PAUSE or "linux" not in isa.triple:
        raise BackendError(f"several threads need Linux on {', '.join(_PAUSE)}, expected 1 thread for {isa.triple}")
    call, declaration = _PAUSE[isa.architecture]
    types, workers = _text("pool_types.ll"), _text("workers.ll").replace("@PAUSE@", call)
    return types + _text("pool.ll"), f"{types}{workers}{_text('lend.ll')}{_text('adapt.ll')}{declaration}\n"


def together_text(name: str, threads: int) -> str:
    """`together.ll` for a bundle."""
    return _text("together.ll").replace("@THREADS@", str(threads)).replace("@NAME@", name)


def cpuid_text() -> str:
    """`cpuid.ll`, for x86-64."""
    return _text("cpuid.ll")


def support_texts(isa: Isa) -> tuple[str, ...]:
    """Modules that define what the code generator calls for missing instructions, so that no library is needed."""
    if isa.pointer_bytes == 8 or isa.architecture == "wasm32":
        return ()
    division = Template(_text("division.ll"))
    if not isa.architecture.startswith(("arm", "thumb")):
        return (
            division.substitute(bits=64, last=63, unsigned="divided", signed="divided_signed")
            + _text("division_64.ll"),
        )
    # Run-time ABI for the Arm Architecture, section 4.3. Quotient and remainder are returned in r0 to r3, where the
    # code generator puts a struct of them.
    wide = division.substitute(bits=64, last=63, unsigned="__aeabi_uldivmod", signed="__aeabi_ldivmod")
    word = division.substitute(bits=32, last=31, unsigned="__aeabi_uidivmod", signed="__aeabi_idivmod")
    small = isa.architecture.startswith(("thumbv6m", "thumbv8m.base"))
    return (wide + word + _text("division_arm.ll"), *((_text("wide_armv6m.ll"),) if small else ()))


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
