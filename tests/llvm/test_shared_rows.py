"""Layers with the same input quantise it once, even with other layers in between, unless memory is minimised."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import DType, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, check, evaluated, kernels, natively

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
ROWS, FEATURES = 3, 64


class Layers(Builder):
    """Fully connected layers with int8 weights, or with int4 weights in blocks."""

    def layer(self, x: int, n: int, blocks: bool, asymmetric: bool = False) -> int:
        rng, depth = np.random.default_rng(n), self.type(x).shape[-1] or 0
        bits = 4 if blocks else 8
        w = rng.integers(-(1 << bits - 1) + 1, 1 << bits - 1, (n, depth)).astype(np.int8)
        count = n * depth // 32 if blocks else n
        scales = tuple(rng.uniform(0.01, 0.02, count).astype(np.float32).tolist())
        how = Quantization(scales, (0,) * count, 1 if blocks else 0, 32 if blocks else None)
        weights = self.constant(w, quantization=how, dtype=DType.INT4 if blocks else DType.INT8)
        return self.add(FullyConnected(asymmetric_inputs=asymmetric), x, weights)


@ISAS
@pytest.mark.parametrize("blocks", [False, True], ids=["rows", "blocks"])
def test_layers_with_one_input_quantise_it_once(isa: Isa, blocks: bool) -> None:
    b = Layers()
    x = b.input(TensorType(DType.FLOAT32, (ROWS, FEATURES)))
    graph = b.subgraph([b.layer(x, n, blocks) for n in (32, 70, 5)])
    assert kernels(graph, isa)["quantize_dynamic"] == 1
    given = np.random.default_rng(0).standard_normal((ROWS, FEATURES)).astype(np.float32)
    check(graph, [given], isa, threads=2)


@ISAS
def test_quantised_inputs_are_kept_for_later_layers_unless_memory_is_minimised(isa: Isa) -> None:
    b = Layers()
    x, y = (b.input(TensorType(DType.FLOAT32, (ROWS, FEATURES))) for _ in range(2))
    graph = b.subgraph([b.layer(each, n, False) for each, n in ((x, 32), (y, 32), (x, 33), (y, 35), (y, 32), (x, 34))])
    assert kernels(graph, isa)["quantize_dynamic"] == 2
    assert kernels(graph, isa, compact=True)["quantize_dynamic"] == 5  # consecutive ones share it in any case
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((ROWS, FEATURES)).astype(np.float32) for _ in range(2)]
    for threads in (1, 3):
        assert_close(natively(graph, given, isa, threads), evaluated(graph, given), tolerance=0.0)


@ISAS
@pytest.mark.parametrize("images", [1, 2])
def test_branches_with_one_input_quantise_its_images_once(isa: Isa, images: int) -> None:
    b, rng = Builder(), np.random.default_rng(0)
    x = b.input(TensorType(DType.FLOAT32, (images, 12, 13, 16)))

    def convolution(x: int, n: int, window: int) -> int:
        w = rng.integers(-127, 128, (n, window, window, 16)).astype(np.int8)
        scales = Quantization(tuple(0.01 + 0.001 * i for i in range(n)), (0,) * n, 0)
        return b.add(Conv2D(Padding.SAME), x, b.constant(w, quantization=scales))

    inner = convolution(convolution(x, 16, 1), 20, 3)
    graph = b.subgraph([inner, convolution(x, 24, 3), convolution(x, 7, 1), convolution(x, 33, 5)])
    assert kernels(graph, isa)["quantize_dynamic"] == 2
    given = rng.standard_normal((images, 12, 13, 16)).astype(np.float32)
    for threads in (1, 3):
        assert_close(natively(graph, [given], isa, threads), evaluated(graph, [given]), tolerance=0.0)


@ISAS
@pytest.mark.parametrize(("window", "groups"), [(3, 1), (3, 2), (5, 4)])
def test_compact_branches_leave_the_bytes_that_they_share(isa: Isa, window: int, groups: int) -> None:
    b, rng = Builder(), np.random.default_rng(0)
    x = b.input(TensorType(DType.FLOAT32, (1, 8, 9, 32)))
    found = []
    for size, count in ((1, 1), (window, groups)):
        w = rng.integers(-127, 128, (32, size, size, 32 // count)).astype(np.int8)
        scales = Quantization(tuple(0.01 + 0.001 * i for i in range(32)), (0,) * 32, 0)
        found.append(b.add(Conv2D(Padding.SAME), x, b.constant(w, quantization=scales)))
    graph = b.subgraph(found)
    assert kernels(graph, isa, compact=True)["quantize_dynamic"] == 1
    given = rng.standard_normal((1, 8, 9, 32)).astype(np.float32)
    assert_close(natively(graph, [given], isa, compact=True), evaluated(graph, [given]), tolerance=0.0)


@ISAS
def test_layers_with_different_quantisation_do_not_share_it(isa: Isa) -> None:
    b = Layers()
    x = b.input(TensorType(DType.FLOAT32, (ROWS, FEATURES)))
    layers = [b.layer(x, 32, False), b.layer(x, 33, False, asymmetric=True), b.layer(x, 34, True)]
    graph = b.subgraph(layers)
    assert kernels(graph, isa)["quantize_dynamic"] == 3
    check(graph, [np.random.default_rng(0).standard_normal((ROWS, FEATURES)).astype(np.float32)], isa)
