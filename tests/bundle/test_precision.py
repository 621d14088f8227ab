"""Winograd convolutions and 16-bit float products in bundles are as accurate as documented."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected

from .machines import MACHINES, needs_compiler, run

SIZE, CHANNELS = 40, 32


def _network() -> Package:
    """Two convolutions, the first computed by Winograd's algorithm and the second by a plain product."""
    rng, b = np.random.default_rng(0), Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, SIZE, SIZE, CHANNELS)), "x")
    windows = rng.standard_normal((64, 3, 3, CHANNELS), np.float32) / np.float32(17)
    pixels = rng.standard_normal((48, 1, 1, 64), np.float32) / np.float32(8)
    y = b.add(Conv2D(Padding.SAME), b.add(Conv2D(Padding.SAME), x, b.constant(windows)), b.constant(pixels))
    return Package((b.model([y]),), "net")


@needs_compiler
@pytest.mark.parametrize("precision", ["exact", "fast", "bf16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_precision_computes_the_same_as_in_process(tmp_path: Path, precision: str, threads: int) -> None:
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


ARM = next(machine for machine in MACHINES if machine.name == "aarch64")


@pytest.mark.skipif(ARM.missing is not None, reason=f"{ARM.missing} is not installed")
def test_float16_products_stay_within_their_error_bound(tmp_path: Path) -> None:
    """A fully connected layer of odd sizes, and a convolution with windows at the edges, on an Arm processor."""
    rng, b = np.random.default_rng(0), Builder()
    x = rng.standard_normal((7, 45), np.float32)
    image = rng.standard_normal((1, 5, 6, 23), np.float32)
    matrix = rng.standard_normal((21, 45), np.float32)
    filters = rng.standard_normal((13, 3, 2, 23), np.float32)
    inputs = [b.input(TensorType(DType.FLOAT32, each.shape), name) for each, name in ((x, "x"), (image, "image"))]
    window = Conv2D(Padding.SAME, stride_width=2)
    outputs = [
        b.add(FullyConnected(), inputs[0], b.constant(matrix)),
        b.add(window, inputs[1], b.constant(filters)),
    ]
    package = Package((b.model(outputs),), "net")
    found = {}
    for precision in ("exact", "fp16"):
        folder = tmp_path / precision
        onert.bundle(package, folder, name="net", target=ARM.target, features="+fullfp16", precision=precision)
        status, found[precision] = run(ARM, folder, [x, image])
        assert status == 0
    assert all((a != e).any() for a, e in zip(found["fp16"], found["exact"], strict=True))
    magnitudes = [
        FullyConnected().evaluate(abs(x), abs(matrix)),
        window.evaluate(abs(image), abs(filters)),
    ]
    for half, exact, most in zip(found["fp16"], found["exact"], magnitudes, strict=True):
        assert (abs(half - exact) <= 2.0**-7 * most).all()


@pytest.mark.skipif(ARM.missing is not None, reason=f"{ARM.missing} is not installed")
def test_float16_weights_stay_float16_in_a_bundle(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((1, 301), np.float32), rng.standard_normal((333, 301), np.float32)
    found, sizes = [], []
    for number, matrix in enumerate((weights, weights.astype(np.float16).astype(np.float32))):
        b = Builder()
        given = b.input(TensorType(DType.FLOAT32, x.shape), "x")
        package = Package((b.model([b.add(FullyConnected(), given, b.constant(matrix))]),), "net")
        folder = tmp_path / str(number)
        onert.bundle(package, folder, name="net", target=ARM.target)
        status, results = run(ARM, folder, [x])
        assert status == 0
        found.append(results[0])
        sizes.append((folder / "net.weights").stat().st_size)
    assert sizes[1] < 0.52 * sizes[0]
    np.testing.assert_allclose(found[1], x @ weights.astype(np.float16).astype(np.float32).T, rtol=1e-4, atol=1e-4)
