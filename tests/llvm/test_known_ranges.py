"""Layers report the range of their output to layers that quantise it; all results match the operations' definitions."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, kernels, natively

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
HEIGHT, WIDTH, CHANNELS = 20, 21, 48
"""More elements than are quantised in one piece."""


class Layers(Builder):
    """Dynamic-range convolutions (float inputs, int8 filters) whose biases start with a given number."""

    def picture(self, images: int = 1) -> int:
        return self.input(TensorType(DType.FLOAT32, (images, HEIGHT, WIDTH, CHANNELS)))

    def layer(self, x: int, n: int, window: int = 1, groups: int = 1, first: float = 0.0, each: bool = True) -> int:
        rng, inner = np.random.default_rng(n + window), (self.type(x).shape[3] or 0) // groups
        w = self._filter(rng.integers(-127, 128, (n, window, window, inner)), 0, each)
        return self.add(Conv2D(Padding.SAME), x, w, self._bias(n, first))

    def depthwise(self, x: int, stride: int = 1, first: float = 0.0) -> int:
        n = self.type(x).shape[3] or 0
        w = self._filter(np.random.default_rng(n).integers(-127, 128, (1, 3, 3, n)), 3, True)
        op = DepthwiseConv2D(Padding.SAME, stride, stride, activation=Activation.RELU)
        return self.add(op, x, w, self._bias(n, first))

    def _filter(self, w: np.ndarray, axis: int, each: bool) -> int:
        count = w.shape[axis] if each else 1
        scales = tuple(float(np.float32(0.001 * (1 + i % 7))) for i in range(count))
        how = Quantization(scales, (0,) * count, axis) if each else Quantization(scales, (0,))
        return self.constant(w.astype(np.int8), quantization=how)

    def _bias(self, n: int, first: float) -> int:
        bias = np.linspace(-1, 1, n).astype(np.float32)
        bias[0] = first
        return self.constant(bias)


def require_exact(graph: Subgraph, isa: Isa, images: int = 1) -> None:
    given = np.random.default_rng(0).standard_normal((images, HEIGHT, WIDTH, CHANNELS)).astype(np.float32)
    expected = evaluated(graph, [given])
    for threads in (1, 3):
        assert_close(natively(graph, [given], isa, threads), expected, tolerance=0.0)


@ISAS
@pytest.mark.parametrize("first", [0.0, -0.0, -900.0, np.inf, -np.inf, np.nan, -np.nan])
@pytest.mark.parametrize("each", [True, False])
def test_a_layer_computes_the_range_of_its_output_while_storing_it(isa: Isa, first: float, each: bool) -> None:
    b = Layers()
    x = b.layer(b.picture(), 50, first=first, each=each)
    graph = b.subgraph([b.layer(b.layer(x, 48, 3, each=each), 5, each=each)])
    assert kernels(graph, isa)["extent"] == 1  # for the input
    assert kernels(graph, isa, compact=True)["extent"] == 3
    with np.errstate(invalid="ignore", over="ignore"):
        require_exact(graph, isa)


@ISAS
@pytest.mark.parametrize("first", [0.0, np.inf, np.nan])
def test_depthwise_and_grouped_layers_compute_the_ranges_of_their_outputs(isa: Isa, first: float) -> None:
    b = Layers()
    x = b.depthwise(b.layer(b.picture(), 64, 3, first=first), first=first)
    x = b.depthwise(b.layer(b.layer(x, 64, 3, groups=4), 40, 3, groups=2, first=first), stride=2)
    graph = b.subgraph([b.layer(x, 7)])
    assert kernels(graph, isa)["extent"] == 1
    with np.errstate(invalid="ignore", over="ignore"):
        require_exact(graph, isa)


@ISAS
def test_all_consumers_of_a_layer_reuse_its_range(isa: Isa) -> None:
    b = Layers()
    x = b.layer(b.picture(), 48)
    y = b.layer(x, 64, 3)
    z = b.layer(b.layer(x, 44, 3), 40)
    graph = b.subgraph([b.depthwise(x), b.layer(y, 8), b.layer(z, 9, 3), b.depthwise(y)])
    assert kernels(graph, isa)["extent"] == 1
    require_exact(graph, isa)


@ISAS
@pytest.mark.parametrize("moved", [-1e6, 1e6])
def test_padding_lanes_do_not_contribute_to_the_range(isa: Isa, moved: float) -> None:
    b = Layers()
    x = b.add(Binary(BinaryKind.SUB), b.layer(b.picture(), 50, each=False), b.constant(np.float32(moved)))
    x = b.add(Binary(BinaryKind.ADD), x, b.constant(np.full(50, moved, np.float32)))
    graph = b.subgraph([b.layer(x, 5, each=False)])
    assert kernels(graph, isa)["extent"] == 1
    require_exact(graph, isa)


@ISAS
def test_each_of_several_images_has_its_own_range(isa: Isa) -> None:
    b = Layers()
    graph = b.subgraph([b.layer(b.layer(b.picture(2), 48), 5)])
    assert kernels(graph, isa)["extent"] == 2
    require_exact(graph, isa, 2)


@ISAS
def test_scratch_memory_of_a_later_layer_does_not_overlap_quantised_inputs(isa: Isa) -> None:
    """Scratch memory of the first two layers is free when the third is lowered, whose own memory follows it."""
    b = Layers()
    x = b.picture()
    y = b.layer(x, 64)
    graph = b.subgraph([b.layer(x, 5), b.layer(y, 64, 3)])
    require_exact(graph, isa)
