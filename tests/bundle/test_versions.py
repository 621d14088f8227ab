"""Objects with several versions of their code: the first call chooses one for the processor it runs on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from onert_llvm.target.isa import runnable
from onert_llvm.target.versions import MULTI, NEEDS, instructions, versions

from . import toys
from .machines import HOST, Machine, compile_program, defined, linked, needs_compiler, undefined

X86 = runnable()[0].architecture == "x86_64"
ALL_X86 = ",".join(name for name in NEEDS if name.startswith("x86-64"))


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "names"),
    [
        ("x86_64-linux-gnu", None, None, MULTI["x86_64"]),
        ("x86_64-linux-gnu", "multi", None, MULTI["x86_64"]),
        ("aarch64-linux-gnu", None, None, MULTI["aarch64"]),
        ("x86_64-linux-gnu", "x86-64-v4,x86-64", None, ("x86-64", "x86-64-v4")),
        ("x86_64-linux-gnu", "x86-64-v3,x86-64-v3", None, ("x86-64-v3",)),
        ("x86_64-linux-gnu", "x86-64", None, ("x86-64",)),
        ("x86_64-linux-gnu", None, "+avx2", ("x86-64+avx2",)),
        ("x86-64", None, None, ("x86-64",)),
        ("aarch64-none-elf", None, None, ("aarch64",)),
        ("riscv64-linux-gnu", None, None, ("riscv64",)),
        ("thumbv7em-none-eabihf", None, None, ("cortex-m4",)),
    ],
)
def test_versions_are_those_requested_ordered_from_least_to_most_capable(
    triple: str, cpu: str | None, features: str | None, names: tuple[str, ...]
) -> None:
    assert tuple(isa.name for isa in versions(triple, cpu, features)) == names


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "message"),
    [
        ("riscv64-linux-gnu", "multi", None, "only one version of code for riscv64, expected one of x86_64, aarch64"),
        ("aarch64-none-elf", "multi", None, "only Linux tells a program which features its processor has"),
        (
            "x86_64",
            "x86-64,haswell",
            None,
            "can detect the processor 'haswell', expected some of x86-64, x86-64-v3",
        ),
        ("x86_64", "x86-64,x86-64-v3", "+avx2", r"the features '+avx2' are given with the processors"),
        ("x86_64", "x86-64,pentium", None, "the processor 'pentium' is not known"),
    ],
)
def test_indistinguishable_versions_are_rejected(triple: str, cpu: str, features: str | None, message: str) -> None:
    with pytest.raises(onert.BackendError) as raised:
        versions(triple, cpu, features)
    assert message in str(raised.value)


def test_generic_code_needs_more_instructions_than_the_best_version() -> None:
    costs = [instructions(isa) for isa in versions("x86_64", ALL_X86, None)]
    assert costs == [(16, 8), (8, 2), (2, 2), (4, 1), (1, 1), (1, 1)]


RANGE = np.array([0, 4, 2, 2], np.int32)
_QEMU = ("qemu-x86_64", "-cpu")
_ON = {
    "qemu64": ("qemu64", 0),
    "Nehalem": ("Nehalem", 0),
    "AVX2, but the system does not save its registers": ("max,-xsave", 0),
    "AVX2 without FMA": ("max,-fma", 0),
    "Haswell": ("Haswell", 1),
    "max": ("max", 1),
}
"""Processors emulated by QEMU, which lacks AVX-512, and the index of the version that runs on each."""


@needs_compiler
@pytest.mark.skipif(not X86, reason="the machine is no x86-64")
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-x86_64 is not installed")
def test_one_object_runs_on_processors_with_and_without_avx2(tmp_path: Path) -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    onert.bundle(package, tmp_path, name="net")
    machine = Machine("emulated", HOST.target, ("gcc", "-static"), _QEMU)
    program = linked(machine, tmp_path)
    asks = _version_program(tmp_path, machine)
    inputs, wanted = toys.example(package)
    for name, (cpu, number) in _ON.items():
        code, (found,) = evolve(program, command=(*_QEMU, cpu, *program.command[len(_QEMU) :])).run(inputs)
        assert code == 0, name
        toys.require_close(found, *wanted)
        assert _status([*_QEMU, cpu, asks]) == number, name


def _version_program(folder: Path, machine: Machine) -> Path:
    """A program that exits with the index of the version that runs, queried by many threads at once."""
    source = folder / "version.c"
    source.write_text(
        "#include <pthread.h>\n"
        "static void *ask(void *found) { *(int *)found = net_version(); return 0; }\n"
        "int main(void) {\n"
        "  pthread_t threads[8]; int found[8], i, first = -1;\n"
        "  static const char *const names[NET_VERSIONS] = NET_VERSION_NAMES;\n"
        "  for (i = 0; i < 8; ++i) pthread_create(&threads[i], 0, ask, &found[i]);\n"
        "  for (i = 0; i < 8; ++i) pthread_join(threads[i], 0);\n"
        "  for (i = 0; i < 8; ++i) first = i == 0 || found[i] == first ? found[i] : 99;\n"
        "  return first >= NET_VERSIONS || names[first][0] == 0 ? 99 : first;\n"
        "}\n"
    )
    compile_program(machine, folder, "net", source, folder / "version", "-lpthread")
    return folder / "version"


def _status(command: Sequence[str | Path]) -> int:
    return subprocess.run(command, check=False, timeout=PATIENCE).returncode


@needs_compiler
def test_the_most_capable_version_runs_on_this_machine(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path)
    names = [isa.name for isa in runnable()]
    wanted = max(at for at, version in enumerate(files.versions) if version.target in names)
    assert _status([_version_program(tmp_path, HOST)]) == wanted
    assert files.target == ",".join(version.target for version in files.versions)


@needs_compiler
def test_every_version_computes_the_reference_results(tmp_path: Path) -> None:
    models = {package.name: package for package in (toys.network(), toys.lookup(), toys.counter())}
    example = {
        name: ([RANGE], toys.reference(package, [RANGE])) if name == "lookup" else toys.example(package)
        for name, package in models.items()
    }
    for isa in runnable():
        onert.bundle(models, tmp_path / isa.name, name="all", cpu=f"{runnable()[0].name},{isa.name}")
        loaded = onert.load_bundle(tmp_path / isa.name)
        for name, (inputs, outputs) in example.items():
            for found, wanted in zip(loaded.run(inputs, name).values(), outputs, strict=True):
                toys.require_close(found, wanted)


def test_versions_share_equal_constants_and_report_their_size(tmp_path: Path) -> None:
    alone = onert.bundle(toys.lookup(), tmp_path / "alone", target="x86_64", cpu="x86-64")
    both = onert.bundle(toys.lookup(), tmp_path / "both", target="x86_64", cpu="x86-64,x86-64-v3")
    assert both.constants == alone.constants
    assert [version.constants for version in both.versions] == [alone.versions[0].constants] * 2
    packed = onert.bundle(toys.network(), tmp_path / "packed", target="x86_64", cpu="x86-64,x86-64-v4")
    assert packed.constants < sum(version.constants for version in packed.versions) + 1024


def test_version_detection_on_bare_metal_needs_no_library(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path, target="x86_64-none-elf", cpu="multi")
    assert undefined(HOST, files.paths["o"]) <= {"floorf", "ceilf", "rintf"}
    assert "net_version" in defined(HOST, files.paths["o"])
