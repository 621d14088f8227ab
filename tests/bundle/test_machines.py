"""Bundles for other machines, linked with their toolchains and run under emulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY, SHARED

import onert

from . import toys
from .machines import SOUND, Machine, call, every_machine, linked, undefined

MICRO = Machine("cortex-m", "thumbv7em-none-eabihf", ("arm-linux-gnueabihf-gcc",), ())
LIGHT = ("mlperf-tiny/kws_ref_model", "tflite-micro/trained_lstm", "generated-keras/cf_while_cond_fp32")
"""Shared models that run quickly on every machine."""
TRAINED = {name: REPOSITORY / "nnpackage" / "examples" / name for name in ("digits_float", "digits_int8")}
if SHARED.is_dir():
    TRAINED |= {name.partition("/")[2]: SHARED / "models" / f"{name}.tflite" for name in LIGHT}
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
"""Symbols that an object may need from the linker, libc and libm."""


VALID = np.array([4, 3, 2, 0], np.int32)
OUTSIDE = np.array([4, 3, 2, 9], np.int32)


@every_machine
def test_an_object_with_several_models_computes_the_reference_results(tmp_path: Path, machine: Machine) -> None:
    models = {"net": toys.network(), "lookup": toys.lookup()}
    models |= {name: onert.load(path) for name, path in TRAINED.items()}
    files = onert.bundle(models, tmp_path, name="all", target=machine.target, cpu=machine.cpu)
    if machine.target != "wasm32":
        assert undefined(machine, files.paths["o"]) <= LIBRARIES
    program = linked(machine, tmp_path)
    assert program.run([OUTSIDE], "lookup")[0] == 1
    for entry, package in models.items():
        if entry in TRAINED and machine not in SOUND:
            continue
        inputs, wanted = ([VALID], toys.reference(package, [VALID])) if entry == "lookup" else toys.example(package)
        code, outputs = program.run(inputs, entry)
        assert code == 0, entry
        for found, right in zip(outputs, wanted, strict=True):
            toys.require_close(found, right)


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
