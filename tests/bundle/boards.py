"""Bare-metal boards: our own start-up code, linked with a bundle and run under QEMU."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from patience import PATIENCE

from onert.bundle.description import Description, read

from .machines import HERE, after, before, call

Array = np.ndarray[Any, Any]

_AEABI = [
    *(f"{t}{name}" for t in "fd" for name in ("add", "sub", "rsub", "mul", "div")),
    *(f"{t}cmp{name}" for t in "fd" for name in ("eq", "lt", "le", "ge", "gt", "un")),
    *(f"{t}2{to}" for t in "fd" for to in ("iz", "uiz", "lz", "ulz")),
    *(f"{of}2{t}" for t in "fd" for of in ("i", "ui", "l", "ul")),
    *("f2d", "d2f", "h2f", "f2h"),
]
_GCC = [
    *(f"{name}{t}f3" for t in "sd" for name in ("add", "sub", "mul", "div")),
    *(f"{name}{t}f2" for t in "sd" for name in ("eq", "ne", "ge", "lt", "le", "gt", "unord")),
    *(f"{name}{t}f{to}i" for t in "sd" for to in "sd" for name in ("fix", "fixuns")),
    *(f"{name}{of}i{t}f" for t in "sd" for of in "sd" for name in ("float", "floatun")),
    *("extendsfdf2", "truncdfsf2", "extendhfsf2", "truncsfhf2"),
]
RUNTIME = {"arm": {f"__aeabi_{name}" for name in _AEABI}, "riscv": {f"__{name}" for name in _GCC}}
"""Functions of the compiler's library for floats that the processor has no instructions for (docs/bundles.md)."""


@frozen
class Board:
    """A machine of QEMU's, its target and memory (origin, kilobytes); `tick` is instructions per count of SysTick."""

    name: str
    target: str
    cpu: str | None
    emulator: tuple[str, ...]
    flags: tuple[str, ...]
    flash: tuple[int, int]
    ram: tuple[int, int]
    tick: int = 40
    features: str | None = None

    @property
    def family(self) -> str:
        return "arm" if "arm" in self.emulator[0] else "riscv"

    @property
    def compiler(self) -> str:
        return {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}[self.family]

    @property
    def hard(self) -> bool:
        """Whether it has a floating-point unit."""
        return self.target.endswith("hf")

    @property
    def missing(self) -> str | None:
        """The first tool that is not installed, or None."""
        return next((tool for tool in (self.compiler, self.emulator[0]) if shutil.which(tool) is None), None)


def _arm(machine: str) -> tuple[str, ...]:
    return ("qemu-system-arm", "-machine", machine)


def _cpu(name: str, hard: bool = False) -> tuple[str, ...]:
    return (f"-mcpu={name}", "-mthumb", f"-mfloat-abi={'hard' if hard else 'soft'}")


_MPS2 = ((0, 4096), (0x20000000, 4096))
_BARE, _HARD = "arm-none-eabi", "arm-none-eabihf"
_RISCV = ("qemu-system-riscv32", "-machine", "virt", "-bios", "none", "-cpu", "rv32,a=false,f=false,d=false")
_RV32 = ("-march=rv32imc", "-mabi=ilp32", "-misa-spec=2.2")
_AN505, _AN547 = ((0x10000000, 4096), (0x38000000, 4096)), ((0, 512), (0x21000000, 2048))
_VIRT = ((0x80000000, 4096), (0x80400000, 4096))
BOARDS = (
    Board("m0", _BARE, "cortex-m0", _arm("microbit"), _cpu("cortex-m0"), (0, 256), (0x20000000, 16), 62),
    Board("m3", _BARE, "cortex-m3", _arm("mps2-an385"), _cpu("cortex-m3"), *_MPS2),
    Board("m4", _HARD, "cortex-m4", _arm("mps2-an386"), _cpu("cortex-m4", True), *_MPS2),
    Board("m4-soft", _BARE, "cortex-m4", _arm("mps2-an386"), _cpu("cortex-m4"), *_MPS2),
    Board("m7", _HARD, "cortex-m7", _arm("mps2-an500"), _cpu("cortex-m7", True), *_MPS2),
    Board("m23", _BARE, "cortex-m23", _arm("mps2-an505"), _cpu("cortex-m23"), *_AN505, 50),
    Board("m33", _HARD, "cortex-m33", _arm("mps2-an505"), _cpu("cortex-m33", True), *_AN505, 50),
    Board("m55", _HARD, "cortex-m55", _arm("mps3-an547"), _cpu("cortex-m55", True), *_AN547, 31),
    Board("rv32imc", "riscv32-none-elf", None, _RISCV, _RV32, *_VIRT),
)


def on(boards: Sequence[Board]) -> pytest.MarkDecorator:
    """Run a test for each board, skipped if a tool is missing."""
    found = [(b, pytest.mark.skipif(b.missing is not None, reason=f"{b.missing} is not installed")) for b in boards]
    return pytest.mark.parametrize("board", [pytest.param(b, id=b.name, marks=mark) for b, mark in found])


@frozen
class BoardRun:
    """A run on a board: the entry's return value, instructions, bytes of stack, and outputs."""

    code: int
    instructions: int
    stack: int
    outputs: list[Array]


_LAYOUT = """ENTRY({entry})
MEMORY {{
  flash (rx) : ORIGIN = {flash[0]:#x}, LENGTH = {flash[1]}K
  ram (rwx) : ORIGIN = {ram[0]:#x}, LENGTH = {ram[1]}K
}}
SECTIONS {{
  .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) *(.srodata*) *(.data.rel.ro*) *(.got*) *(.eh_frame*) }} > flash
  .ARM.exidx : {{ *(.ARM.exidx*) }} > flash
  .bss : {{ *(.bss*) *(.sbss*) *(COMMON) . = ALIGN(8); stack_low = .; }} > ram
  .data : {{ *(.data*) *(.sdata*) }} > ram
  stack_top = ORIGIN(ram) + LENGTH(ram);
  ASSERT(SIZEOF(.data) == 0, "a bundle must have no initialised data")
  ASSERT(stack_top - stack_low >= 1024, "no room for a stack")
}}
"""


def run(board: Board, folder: Path, inputs: Mapping[str, Sequence[Array]]) -> dict[str, BoardRun]:
    """Link the bundle in a folder into an image and run its entries in turn. The state starts as after reset."""
    (header,) = folder.glob("*.h")
    description = read(header)
    before(description, inputs).tofile(folder / "given")
    start = "run" if board.family == "arm" else "_start"
    (folder / "board.ld").write_text(_LAYOUT.format(entry=start, flash=board.flash, ram=board.ram))
    facts = {
        "ENTRIES": ",".join(inputs),
        "COUNT": len(inputs),
        "UNIT": int(board.hard),
        "MUTABLES": description.mutables,
        "ACTIVATIONS": description.activations,
        "NANOSECONDS": board.tick,
    }
    defines = [f"-D{name}={value}" for name, value in facts.items()]
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-tree-loop-distribute-patterns"]
    object_file = folder / f"{description.name}.o"
    source = [*board.flags, *flags, *defines, f'-DWEIGHTS="{folder / description.name}.weights"', "-include", header]
    call(board.compiler, *source, "-Wa,-I" + str(folder), "-c", HERE / "board.c", "-o", folder / "board.o")
    linked = ["-nostdlib", "-static", "-T", folder / "board.ld", folder / "board.o", object_file, "-lgcc"]
    call(board.compiler, *board.flags, *linked, "-o", folder / "image")
    return _emulated(board, folder, description, list(inputs))


def _emulated(board: Board, folder: Path, description: Description, entries: Sequence[str]) -> dict[str, BoardRun]:
    quiet = ("-nographic", "-monitor", "none", "-serial", "none", "-icount", "shift=0")
    hosting = ("-semihosting-config", "enable=on,target=native")
    command = [*board.emulator, *quiet, *hosting, "-kernel", "image"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, f"{board.name}: {done.returncode} {done.stderr}"
    told = np.fromfile(folder / "told", np.uint32).reshape(-1, 3).tolist()
    made = np.fromfile(folder / "made", np.uint8)
    return {
        entry: BoardRun(*facts, after(description, made, entry)) for entry, facts in zip(entries, told, strict=True)
    }
