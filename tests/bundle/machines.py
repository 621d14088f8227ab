"""Machines that bundles are built for, and how the tests link and run bundles on them."""

from __future__ import annotations

import platform
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
from onert.bundle.variables import Role

HERE = Path(__file__).parent
Array = np.ndarray[Any, Any]


@frozen
class Machine:
    """A target, the C compiler that links for it, and the program that runs the result (wasm32: no C program)."""

    name: str
    target: str
    compiler: tuple[str, ...]
    runner: tuple[str, ...]
    cpu: str | None = None

    @property
    def missing(self) -> str | None:
        """The first tool that is not installed, or None."""
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
    """Run a test for each machine, skipped if a tool is missing."""
    found = [(m, pytest.mark.skipif(m.missing is not None, reason=f"{m.missing} is not installed")) for m in machines]
    return pytest.mark.parametrize("machine", [pytest.param(m, id=m.name, marks=mark) for m, mark in found])


SOUND = tuple(m for m in MACHINES if m.name != "riscv64-v")
"""Machines that run any code: QEMU 7.2's translator aborts (decode_save_opc) on some of RISC-V's vector code."""

every_machine = _on(MACHINES)
every_sound_machine = _on(SOUND)

needs_compiler = pytest.mark.skipif(HOST.missing is not None, reason="gcc is not installed")


@frozen
class Linked:
    """A bundle in a folder, linked as a program for a machine; `command` is completed with the arguments of one run."""

    folder: Path
    description: Description
    command: tuple[str, ...]

    def run(self, inputs: Sequence[Array], entry: str | None = None) -> tuple[int, list[Array]]:
        """Run an entry on state as after reset. Returns the exit status (the entry's return value) and the outputs."""
        entry = entry or self.description.entries[0]
        before(self.description, {entry: inputs}).tofile(self.folder / "given")
        files = [
            str(self.folder / f"{self.description.name}.weights"),
            *(str(self.folder / x) for x in ("given", "made")),
        ]
        chosen = str(self.description.entries.index(entry))
        code = subprocess.run(
            [*self.command, *files, "1", chosen], check=False, timeout=PATIENCE, stdout=subprocess.DEVNULL
        )
        return code.returncode, after(self.description, np.fromfile(self.folder / "made", np.uint8), entry)


def run(machine: Machine, folder: Path, inputs: Sequence[Array]) -> tuple[int, list[Array]]:
    """Link the bundle in a folder into a program for the machine and run it. Returns its exit status and outputs."""
    return linked(machine, folder).run(inputs)


def before(description: Description, inputs: Mapping[str, Sequence[Array]]) -> Array:
    """The mutables before a call: the entries' inputs, and the state as the bundle's reset function leaves it."""
    area = np.zeros(description.mutables, np.uint8)
    for entry, arrays in inputs.items():
        given = [v for v in description.variables if v.role is Role.INPUT and v.entry == entry]
        for variable, array in zip(given, arrays, strict=True):
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            area[variable.offset : variable.offset + array.nbytes] = raw
    for variable in description.variables:
        if variable.role is Role.STATE:
            t = variable.info.type
            area[variable.offset : variable.offset + t.nbytes].view(t.dtype.numpy)[...] = t.cleared
    return area


def after(description: Description, made: Array, entry: str) -> list[Array]:
    """An entry's outputs, read from the mutables after a call."""
    outputs = []
    for variable in description.variables:
        if variable.role is Role.OUTPUT and variable.entry == entry:
            t = variable.info.type
            raw = made[variable.offset : variable.offset + t.nbytes]
            outputs.append(raw.view(t.dtype.numpy).reshape([d or 0 for d in t.shape]))
    return outputs


def linked(machine: Machine, folder: Path) -> Linked:
    """Link the bundle in a folder into a program for the machine."""
    (header,) = folder.glob("*.h")
    description = read(header)
    name = description.name
    if machine.target == "wasm32":
        module = folder / f"{name}.wasm"
        exports = [f"--export={symbol}" for symbol in (*description.entries, f"{name}_config", "__heap_base")]
        call("wasm-ld", "--no-entry", *exports, folder / f"{name}.o", "-o", module)
        names = ",".join(description.entries)
        return Linked(folder, description, (*machine.runner, str(HERE / "run.mjs"), str(module), name, names))
    entries = "-DENTRIES=" + ",".join(description.entries)
    compile_program(machine, folder, name, HERE / "run.c", folder / "run", entries)
    return Linked(folder, description, (*machine.runner, str(folder / "run")))


def compile_program(machine: Machine, folder: Path, name: str, source: Path, program: Path, *more: str) -> None:
    """Compile a C program with a bundle, warnings as errors; ENTRY and CONFIG are defined as the bundle's symbols."""
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", f"-DENTRY={name}", f"-DCONFIG={name}_config"]
    header = ["-include", folder / f"{name}.h"]
    call(*machine.compiler, *flags, *header, source, folder / f"{name}.o", "-o", program, "-lm", *more)


def call(*command: str | Path) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}"
    return done.stdout


def undefined(machine: Machine, path: Path) -> set[str]:
    """The undefined symbols of an object file."""
    return {line.split()[-1] for line in call(machine.nm, "-u", path).splitlines()}


def defined(machine: Machine, path: Path) -> set[str]:
    """The global symbols that an object file defines."""
    return {line.split()[-1] for line in call(machine.nm, "-g", "--defined-only", path).splitlines()}
