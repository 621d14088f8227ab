"""Convolutions by Winograd's filtering, and products of bfloat16, in bundles give what they give in process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D

from .machines import needs_compiler

pytestmark = needs_compiler
SIZE, CHANNELS = 40, 32


def _network() -> Package:
    """Two convolutions, the first of which Winograd's filtering computes and the second a plain product."""
    rng, b = np.random.default_rng(0), Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, SIZE, SIZE, CHANNELS)), "x")
    windows = rng.standard_normal((64, 3, 3, CHANNELS), np.float32) / np.float32(17)
    pixels = rng.standard_normal((48, 1, 1, 64), np.float32) / np.float32(8)
    y = b.add(Conv2D(Padding.SAME), b.add(Conv2D(Padding.SAME), x, b.constant(windows)), b.constant(pixels))
    return Package((b.model([y]),), "net")


@pytest.mark.parametrize("precision", ["exact", "fast", "bf16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_precision_gives_what_it_gives_in_process(tmp_path: Path, precision: str, threads: int) -> None:
    package = _network()
    onert.bundle(package, tmp_path, name="net", cpu="native", threads=threads, precision=precision)
    x = np.random.default_rng(1).standard_normal((1, SIZE, SIZE, CHANNELS), np.float32)
    (found,) = onert.load_bundle(tmp_path).run({"x": x}).values()
    expected = []
    for chosen in (precision, "exact"):
        program = onert.compile(package, num_threads=1, target="native", precision=chosen, backends=("llvm",))
        execution = onert.Execution(program)
        execution.set_input(0, x)
        execution.execute()
        expected.append(np.array(execution.get_output(0)))
    np.testing.assert_array_equal(found, expected[0])
    assert np.abs(found - expected[1]).max() <= 1e-2 * np.abs(expected[1]).max()
