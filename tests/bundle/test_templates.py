"""CMake finds the installed package, and the Zephyr and Arduino applications compile and run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.tools.bundle import main

from . import toys
from .machines import HERE, call, needs_compiler

pytestmark = needs_compiler
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
EXAMPLES = REPOSITORY / "docs" / "examples"
SKETCH = EXAMPLES / "arduino" / "examples" / "classify" / "classify.ino"
CORE = Path("/usr/share/arduino/hardware/arduino/avr")
"""The core's folder in Debian's package arduino-core-avr."""
BOARD = HERE / "arduino"
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


@pytest.fixture
def defined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """CMake options with the locations of the package and the command."""
    with pytest.raises(SystemExit) as ended:
        main(["--cmake-dir"])
    assert ended.value.code == 0
    paths = ":".join(str(folder) for folder in (REPOSITORY, REPOSITORY / "backends"))
    tool = tmp_path / "onert_bundle"
    tool.write_text(f"#!/bin/sh\nPYTHONPATH='{paths}' exec '{sys.executable}' -m onert.tools.bundle \"$@\"\n")
    tool.chmod(0o755)
    return [f"-Donert_DIR={capsys.readouterr().out.strip()}", f"-DONERT_BUNDLE={tool}"]


@needs_cmake
def test_cmake_finds_the_package_and_builds_the_lenet_example(tmp_path: Path, defined: list[str]) -> None:
    (tmp_path / "main.c").write_text(
        '#include "inside.h"\n'
        "static GLOW_MEM_ALIGN(64) uint8_t m[INSIDE_MUTABLE_MEM_SIZE], a[INSIDE_ACTIVATIONS_MEM_SIZE];\n"
        "int main(void) { return inside(inside_weights, m, a); }\n"
    )
    lenet = EXAMPLES / "lenet"
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.16)\nproject(digits C)\nadd_subdirectory({lenet} lenet)\n"
        f"find_package(onert REQUIRED)\nonert_bundle(inside {DIGITS} --embed-weights --cpu native)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE inside)\n"
        "get_target_property(weights lenet_mnist ONERT_WEIGHTS)\n"
        'file(GENERATE OUTPUT weights.txt CONTENT "${weights}")\n'
    )
    out = tmp_path / "out"
    call("cmake", "-S", tmp_path, "-B", out, *defined)
    call("cmake", "--build", out, "-j2")
    call(out / "main")
    weights = (out / "weights.txt").read_text()
    assert "Result: 5" in call(out / "lenet" / "lenet_mnist_standalone", weights, lenet / "images" / "5.png")


@needs_cmake
def test_the_zephyr_application_runs_in_a_native_simulation(tmp_path: Path, defined: list[str]) -> None:
    out = tmp_path / "out"
    call("cmake", "-S", EXAMPLES / "zephyr", "-B", out, f"-DZephyr_DIR={HERE / 'zephyr'}", *defined)
    call("cmake", "--build", out)
    assert call(out / "zephyr.elf") == f"class {_wanted()}\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as an Arduino library precompiled for a Cortex-M4, by the command in the example's README."""
    folder = tmp_path_factory.mktemp("library")
    page = (EXAMPLES / "arduino" / "README.md").read_text()
    (made,) = (line for line in page.splitlines() if line.startswith("onert_bundle "))
    words = made.replace("../../../nnpackage", str(REPOSITORY / "nnpackage")).replace(" src ", f" {folder} ").split()
    assert main(words[1:]) == 0
    return folder


@pytest.mark.skipif(shutil.which("avr-g++") is None, reason="avr-g++ is not installed")
@pytest.mark.skipif(not CORE.is_dir(), reason="arduino-core-avr is not installed")
def test_the_arduino_sketch_compiles_with_the_core_of_a_board(tmp_path: Path, library: Path) -> None:
    board = ("-mmcu=atmega2560", "-DF_CPU=16000000L", "-DARDUINO=10807", "-DARDUINO_AVR_MEGA2560", "-DARDUINO_ARCH_AVR")
    seen = [f"-I{folder}" for folder in (CORE / "cores" / "arduino", CORE / "variants" / "mega", library)]
    flags = ("-std=gnu++11", "-Os", "-Wall", "-Wextra", "-Werror", "-xc++")
    call("avr-g++", *flags, *board, *seen, "-c", SKETCH, "-o", tmp_path / "sketch.o")


@pytest.mark.skipif(shutil.which("arm-none-eabi-g++") is None, reason="arm-none-eabi-g++ is not installed")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.skipif(not CORE.is_dir(), reason="arduino-core-avr is not installed")
def test_the_arduino_sketch_runs_on_a_cortex_m4(tmp_path: Path, library: Path) -> None:
    if not Path(call("arm-none-eabi-gcc", "-print-file-name=libc.a").strip()).is_absolute():
        pytest.skip("libnewlib-arm-none-eabi is not installed")
    processor = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard")
    flags = ("-std=gnu++11", "-Os", "-fno-exceptions", "-fno-rtti", "-ffunction-sections", "-DARDUINO=10807")
    core = CORE / "cores" / "arduino"
    seen = (f"-I{BOARD}", f"-I{core}", f"-I{library}")
    sources = {"board": BOARD / "board.cpp", "sketch": SKETCH, "main": core / "main.cpp", "Print": core / "Print.cpp"}
    objects = []
    for name, source in sources.items():
        objects.append(tmp_path / f"{name}.o")
        strict = ("-Wall", "-Wextra", "-Werror") if name == "sketch" else ()
        call("arm-none-eabi-g++", *processor, *flags, *strict, *seen, "-xc++", "-c", source, "-o", objects[-1])
    call("arm-none-eabi-ar", "rcs", tmp_path / "libdigits.a", library / "digits.o")
    linked = ("-nostartfiles", "-static", "-Wl,--gc-sections", "-T", BOARD / "board.ld", f"-L{tmp_path}")
    call("arm-none-eabi-gcc", *processor, *linked, *objects, "-ldigits", "-o", tmp_path / "image")
    quiet = ("-nographic", "-monitor", "none", "-serial", "none", "-chardev", "stdio,id=host")
    hosting = ("-semihosting-config", "enable=on,target=native,chardev=host")
    printed = call("qemu-system-arm", "-machine", "mps2-an386", *quiet, *hosting, "-kernel", tmp_path / "image")
    assert printed.splitlines() == [str(_wanted())]


def _wanted() -> int:
    """The class of the examples' image."""
    package = onert.load(DIGITS)
    picture = (np.arange(64) % 16).astype(np.int8).reshape(1, 8, 8, 1)
    (scores,) = toys.reference(package, [picture])
    return int(scores.argmax())
