"""Machines that bundles are made for, and how tests link and run them here."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from patience import PATIENCE

from onert.bundle.description import read
from onert.bundle.variables import Role

HERE = Path(__file__).parent
Array = np.ndarray[Any, Any]


@frozen
class Machine:
    """A target, the C compiler that links for it, and what runs its programs; for wasm32 without a C program."""

    name: str
    target: str
    compiler: tuple[str, ...]
    runner: tuple[str, ...]
    cpu: str | None = None

    @property
    def missing(self) -> str | None:
        """The first tool that is not installed."""
        tools = (self.compiler[0], *self.runner[:1])
        return next((tool for tool in tools if shutil.which(tool) is None), None)

    @property
    def nm(self) -> str:
        return self.compiler[0].replace("gcc", "nm")

    @property
    def size(self) -> str:
        return self.compiler[0].replace("gcc", "size")


_ARM = ("arm-linux-gnueabihf-gcc", "-static")
_RISCV = ("riscv64-linux-gnu-gcc", "-static")
HOST = Machine("host", f"{platform.machine()}-linux-gnu", ("gcc",), ())
MACHINES = (
    HOST,
    Machine("i386", "i386-linux-gnu", ("i686-linux-gnu-gcc", "-static"), ("qemu-i386",)),
    Machine("aarch64", "aarch64-linux-gnu", ("aarch64-linux-gnu-gcc", "-static"), ("qemu-aarch64",)),
    Machine("aarch64-dotprod", "aarch64-dotprod", ("aarch64-linux-gnu-gcc", "-static"), ("qemu-aarch64",)),
    Machine("armv7", "armv7-linux-gnueabihf", _ARM, ("qemu-arm",)),
    Machine("thumbv7", "thumbv7-linux-gnueabihf", _ARM, ("qemu-arm",), "cortex-a7"),
    Machine("riscv64", "riscv64-linux-gnu", _RISCV, ("qemu-riscv64",)),
    Machine("riscv64-v", "riscv64-v", _RISCV, ("qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0")),
    Machine("wasm32", "wasm32", ("wasm-ld",), ("node",)),
)


def _on(machines: Sequence[Machine]) -> pytest.MarkDecorator:
    """A test for each machine, skipped where a tool is missing."""
    found = [(m, pytest.mark.skipif(m.missing is not None, reason=f"{m.missing} is not installed")) for m in machines]
    return pytest.mark.parametrize("machine", [pytest.param(m, id=m.name, marks=mark) for m, mark in found])


every_machine = _on(MACHINES)
every_sound_machine = _on([m for m in MACHINES if m.name != "riscv64-v"])
"""Those that run any code: QEMU 7.2 aborts in its own translator (decode_save_opc) on some of RISC-V's vector code."""

needs_compiler = pytest.mark.skipif(HOST.missing is not None, reason="gcc is not installed")


def run(machine: Machine, folder: Path, inputs: Sequence[Array]) -> tuple[int, list[Array]]:
    """Link the bundle in a folder into a program for the machine and run it: its exit status, and the outputs.

    State begins as the bundle's reset leaves it.
    """
    (header,) = folder.glob("*.h")
    description = read(header)
    area = np.zeros(description.mutables, np.uint8)
    given = [v for v in description.variables if v.role is Role.INPUT]
    for variable, array in zip(given, inputs, strict=True):
        area[variable.offset : variable.offset + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for variable in description.variables:
        if variable.role is Role.STATE:
            t = variable.info.type
            area[variable.offset : variable.offset + t.nbytes].view(t.dtype.numpy)[...] = t.cleared
    area.tofile(folder / "given")
    command = [*machine.runner, *_linked(machine, folder, description.name)]
    files = [str(folder / f"{description.name}.weights"), str(folder / "given"), str(folder / "made")]
    code = subprocess.run([*command, *files], check=False, timeout=PATIENCE).returncode
    made = np.fromfile(folder / "made", np.uint8)
    outputs = []
    for variable in description.variables:
        if variable.role is Role.OUTPUT:
            t = variable.info.type
            raw = made[variable.offset : variable.offset + t.nbytes]
            outputs.append(raw.view(t.dtype.numpy).reshape([d or 0 for d in t.shape]))
    return code, outputs


def _linked(machine: Machine, folder: Path, name: str) -> list[str]:
    """The program, and its arguments before those of files."""
    if machine.target == "wasm32":
        module = folder / f"{name}.wasm"
        exports = [f"--export={symbol}" for symbol in (name, f"{name}_config", "__heap_base")]
        call("wasm-ld", "--no-entry", *exports, folder / f"{name}.o", "-o", module)
        return [str(HERE / "run.mjs"), str(module), name]
    compile_program(machine, folder, name, HERE / "run.c", folder / "run")
    return [str(folder / "run")]


def compile_program(machine: Machine, folder: Path, name: str, source: Path, program: Path, *more: str) -> None:
    """A C program with a bundle, warnings being errors; in it ENTRY and CONFIG are the bundle's symbols."""
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", f"-DENTRY={name}", f"-DCONFIG={name}_config"]
    header = ["-include", folder / f"{name}.h"]
    call(*machine.compiler, *flags, *header, source, folder / f"{name}.o", "-o", program, "-lm", *more)


def call(*command: str | Path) -> str:
    """Run a command that must succeed; what it wrote."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}"
    return done.stdout


def undefined(machine: Machine, path: Path) -> set[str]:
    """The symbols that an object expects from libraries."""
    return {line.split()[-1] for line in call(machine.nm, "-u", path).splitlines()}


def defined(machine: Machine, path: Path) -> set[str]:
    """The symbols that an object offers to others."""
    return {line.split()[-1] for line in call(machine.nm, "-g", "--defined-only", path).splitlines()}
