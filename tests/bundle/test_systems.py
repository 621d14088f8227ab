"""Bundles for Windows and macOS: objects that their linkers accept, run where possible."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from onert.bundle.description import read
from onert.bundle.variables import Role

from . import toys
from .machines import HERE, call

MINGW = "x86_64-w64-mingw32-gcc"
MICROSOFT = 'int _fltused;\n__asm__(".globl __chkstk\\n__chkstk: jmp ___chkstk_ms");\n'
"""Symbols that Microsoft's library defines, for GCC's linker."""
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"


def _needs(*tools: str) -> pytest.MarkDecorator:
    missing = next((tool for tool in tools if shutil.which(tool) is None), None)
    return pytest.mark.skipif(missing is not None, reason=f"{missing} is not installed")


@pytest.mark.long
@_needs(MINGW, "wine")
@pytest.mark.parametrize("target", ["x86_64-w64-mingw32", "x86_64-pc-windows-msvc"])
def test_a_windows_program_computes_the_reference_results(tmp_path: Path, target: str) -> None:
    package = onert.load(DIGITS)
    onert.bundle(package, tmp_path, name="net", target=target)
    main = (HERE / "run.c").read_text().replace("clock_gettime(CLOCK_MONOTONIC,", "timespec_get_(")
    (tmp_path / "main.c").write_text(
        "#include <time.h>\n"
        "static int timespec_get_(struct timespec *now) { now->tv_sec = 0; now->tv_nsec = 0; return 0; }\n"
        + (MICROSOFT if target.endswith("msvc") else "")
        + main
    )
    flags = ["-O1", "-static", "-DENTRY=net", "-DCONFIG=net_config", "-include", tmp_path / "net.h"]
    call(MINGW, *flags, tmp_path / "main.c", tmp_path / "net.o", "-o", tmp_path / "run.exe")
    description = read(tmp_path / "net.h")
    inputs = toys.random_inputs(onert.compile(package, num_threads=1).inputs)
    area = np.zeros(description.mutables, np.uint8)
    area[: inputs[0].nbytes] = inputs[0].reshape(-1).view(np.uint8)
    area.tofile(tmp_path / "given")
    environment = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all", "HOME": str(tmp_path)}
    command = ["wine", "run.exe", "net.weights", "given", "made"]
    done = subprocess.run(
        command, check=False, timeout=PATIENCE, env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (output,) = (v for v in description.variables if v.role is Role.OUTPUT)
    made = np.fromfile(tmp_path / "made", np.uint8)[output.offset :][: output.info.type.nbytes]
    (wanted,) = toys.reference(package, inputs)
    toys.require_close(made.view(wanted.dtype).reshape(wanted.shape), wanted)


@_needs("llvm-objdump")
@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("x86_64-apple-darwin", "mach-o 64-bit x86-64"),
        ("arm64-apple-macos11", "mach-o arm64"),
        ("x86_64-windows-gnu", "coff-x86-64"),
        ("x86_64-pc-windows-msvc", "coff-x86-64"),
        ("aarch64-pc-windows-msvc", "coff-arm64"),
    ],
)
def test_an_object_has_the_system_s_file_format_and_symbols(tmp_path: Path, target: str, form: str) -> None:
    options = {"steps": True, "instrument": True, "embed_weights": True, "report": True}
    files = onert.bundle(toys.counter(), tmp_path, target=target, **options)  # type: ignore[arg-type]
    dump = call("llvm-objdump", "-t", "-h", files.paths["o"])
    assert f"file format {form}" in dump
    prefix = "_" if "mach-o" in form else ""
    names = {line.split()[-1] for line in dump.splitlines() if line.strip()}
    for symbol in ("counter", "counter_step", "counter_hook", "counter_config", "counter_weights"):
        assert f"{prefix}{symbol}" in names
    assert files.footprint is not None
    assert files.footprint.flash > files.constants


def test_mac_bundles_use_int8_dot_products(tmp_path: Path) -> None:
    assert onert.bundle(toys.counter(), tmp_path, target="arm64-apple-darwin").target == "apple-m1"
