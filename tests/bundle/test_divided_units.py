"""Bundles divide the units of recurrent layers among their threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.recurrent.gru import GRU

from . import toys
from .machines import HOST, MACHINES, Machine, run


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(m, id=m.name, marks=pytest.mark.skipif(m.missing is not None, reason=f"{m.missing} is missing"))
        for m in MACHINES
        if m is HOST or m.name == "aarch64"
    ],
)
def test_two_threads_compute_the_steps_of_one_sequence(tmp_path: Path, machine: Machine) -> None:
    rng, b, units = np.random.default_rng(0), Builder(), 130
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) / 8 for shape in ((390, 5), (390,), (390, units), (390,))]
    given = [b.input(TensorType(DType.FLOAT32, shape), name) for name, shape in (("x", (9, 1, 5)), ("h", (1, units)))]
    y = b.add(GRU(), given[0], *map(b.constant, arrays), given[1])
    package = Package((b.model([y]),), "net")
    onert.bundle(package, tmp_path, name="net", target=machine.target, threads=2)
    inputs = toys.random_inputs(onert.compile(package, num_threads=1).inputs)
    (wanted,) = toys.reference(package, inputs)
    status, (found,) = run(machine, tmp_path, inputs)
    assert status == 0
    toys.require_close(found, wanted)
