"""Bundles for other machines, linked with their tool chains and run under emulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert

from . import toys
from .machines import Machine, call, every_machine, run, undefined

MICRO = Machine("cortex-m", "thumbv7em-none-eabihf", ("arm-linux-gnueabihf-gcc",), ())
LIBRARIES = {
    "_GLOBAL_OFFSET_TABLE_",
    "floorf",
    "ceilf",
    "rintf",
    "nearbyintf",
    "fmaf",
    "sqrtf",
    "memcpy",
    "memset",
    "memmove",
    "getauxval",
}
"""What an object may expect of the linker, libc and libm."""


@every_machine
def test_a_network_gives_the_reference_results(tmp_path: Path, machine: Machine) -> None:
    package = toys.network()
    files = onert.bundle(package, tmp_path, target=machine.target, cpu=machine.cpu)
    inputs = toys.random_inputs(onert.compile(package, num_threads=1).inputs)
    code, outputs = run(machine, tmp_path, inputs)
    assert code == 0
    toys.require_close(*outputs, *toys.reference(package, inputs))
    if machine.target != "wasm32":
        assert undefined(machine, files.paths["o"]) <= LIBRARIES


@every_machine
def test_a_bad_index_is_an_error_code(tmp_path: Path, machine: Machine) -> None:
    onert.bundle(toys.lookup(), tmp_path, target=machine.target, cpu=machine.cpu)
    assert run(machine, tmp_path, [np.array([4, 3, 2, 9], np.int32)])[0] == 1
    code, (found,) = run(machine, tmp_path, [np.array([4, 3, 2, 0], np.int32)])
    assert code == 0
    toys.require_close(found, *toys.reference(toys.lookup(), [np.array([4, 3, 2, 0], np.int32)]))


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"])
@pytest.mark.skipif(MICRO.missing is not None, reason=f"{MICRO.missing} is not installed")
def test_microcontrollers_need_no_library(tmp_path: Path, cpu: str) -> None:
    target = "thumbv8m.main-none-eabihf" if cpu in ("cortex-m33", "cortex-m55") else "thumbv7em-none-eabihf"
    files = onert.bundle(toys.network(), tmp_path, target=target, cpu=cpu)
    source = tmp_path / "start.c"
    source.write_text(
        "static uint8_t memory[1] GLOW_MEM_ALIGN(64);\nvoid _start(void) { for (;;) net(memory, memory, memory); }\n"
    )
    header = ("-include", tmp_path / "net.h")
    flags = (f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=hard", "-nostdlib", "-static")
    call(*MICRO.compiler, *flags, *header, source, files.paths["o"], "-o", tmp_path / "rom")
    text = int(call(MICRO.size, tmp_path / "rom").splitlines()[1].split()[0])
    assert 0 < text < 64_000
