"""CMake finds the package that is installed; the applications for Zephyr and Arduino are what their compilers take."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from shared_material import REPOSITORY

import onert
from onert.tools.bundle import main

from .machines import call, needs_compiler

pytestmark = needs_compiler
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
EXAMPLES = REPOSITORY / "docs" / "examples"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
ZEPHYR = {"zephyr/kernel.h": "#include <stdint.h>\n", "zephyr/sys/printk.h": "void printk(const char *text, ...);\n"}
ARDUINO = {
    "Arduino.h": "#include <stdint.h>\n#include <stddef.h>\nvoid delay(unsigned long);\n"
    "struct Port { void begin(long); void println(int); void println(const char *); };\nextern Port Serial;\n"
}


def _cmake_folder(capsys: pytest.CaptureFixture[str]) -> Path:
    with pytest.raises(SystemExit) as ended:
        main(["--cmake-dir"])
    assert ended.value.code == 0
    return Path(capsys.readouterr().out.strip())


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_finds_the_package_and_builds_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = ":".join(str(folder) for folder in (REPOSITORY, REPOSITORY / "backends"))
    tool = tmp_path / "onert_bundle"
    tool.write_text(f"#!/bin/sh\nPYTHONPATH='{paths}' exec '{sys.executable}' -m onert.tools.bundle \"$@\"\n")
    tool.chmod(0o755)
    (tmp_path / "main.c").write_text(
        '#include "inside.h"\n#include "beside.h"\n'
        "static GLOW_MEM_ALIGN(64) uint8_t m[INSIDE_MUTABLE_MEM_SIZE], a[INSIDE_ACTIVATIONS_MEM_SIZE];\n"
        "static GLOW_MEM_ALIGN(64) uint8_t nothing[BESIDE_CONSTANT_MEM_SIZE];\n"
        "int main(void) { return inside(inside_weights, m, a) || beside(nothing, m, a) != BESIDE_ERROR_CONTENT; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(digits C)\nfind_package(onert REQUIRED)\n"
        f"onert_bundle(inside {DIGITS} --embed-weights --cpu x86-64)\nonert_bundle(beside {DIGITS} --cpu multi)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE inside beside)\n"
        "get_target_property(weights beside ONERT_WEIGHTS)\n"
        'file(GENERATE OUTPUT weights.txt CONTENT "${weights}")\n'
    )
    defined = [f"-Donert_DIR={_cmake_folder(capsys)}", f"-DONERT_BUNDLE={tool}"]
    call("cmake", "-S", tmp_path, "-B", tmp_path / "out", *defined)
    call("cmake", "--build", tmp_path / "out")
    call(tmp_path / "out" / "main")
    assert Path((tmp_path / "out" / "weights.txt").read_text()).is_file()


@pytest.mark.parametrize(
    ("source", "compiler", "declarations"),
    [
        (EXAMPLES / "zephyr" / "src" / "main.c", ("gcc", "-std=gnu11", "-xc"), ZEPHYR),
        (EXAMPLES / "arduino" / "examples" / "classify" / "classify.ino", ("g++", "-std=gnu++11", "-xc++"), ARDUINO),
    ],
    ids=["zephyr", "arduino"],
)
def test_the_application_compiles(
    tmp_path: Path, source: Path, compiler: tuple[str, ...], declarations: dict[str, str]
) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    onert.bundle(
        onert.load(DIGITS), tmp_path, name="digits", target="thumbv7em-none-eabihf", embed_weights=True, api="static"
    )
    for name, text in declarations.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    call(*compiler, *STRICT, f"-I{tmp_path}", "-fsyntax-only", source)
