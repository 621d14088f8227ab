"""Layers in a row that have the same input quantise it once, as long as what the first has made is still there."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from attrs import evolve

from onert.backend import Sequence, Settings
from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.compile import lowered
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, check

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
ROWS, FEATURES = 3, 64


class Layers(Builder):
    """Fully connected layers with weights of eight bits, or of four in blocks."""

    def layer(self, x: int, n: int, blocks: bool, asymmetric: bool = False) -> int:
        rng, depth = np.random.default_rng(n), self.type(x).shape[-1] or 0
        bits = 4 if blocks else 8
        w = rng.integers(-(1 << bits - 1) + 1, 1 << bits - 1, (n, depth)).astype(np.int8)
        count = n * depth // 32 if blocks else n
        scales = tuple(rng.uniform(0.01, 0.02, count).astype(np.float32).tolist())
        how = Quantization(scales, (0,) * count, 1 if blocks else 0, 32 if blocks else None)
        weights = self.constant(w, quantization=how, dtype=DType.INT4 if blocks else DType.INT8)
        return self.add(FullyConnected(asymmetric_inputs=asymmetric), x, weights)


def kernels(graph: Subgraph, isa: Isa) -> Counter[str]:
    sequence = Sequence(graph, tuple(range(len(graph.operations))), graph.inputs, graph.outputs)
    sequence = evolve(sequence, groups=BACKEND.fuse(sequence, Settings()))
    return Counter(command.spec.name for command in lowered(sequence, isa, Settings()).commands)


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
def test_what_another_layer_has_overwritten_is_quantised_again(isa: Isa) -> None:
    b = Layers()
    x, y = (b.input(TensorType(DType.FLOAT32, (ROWS, FEATURES))) for _ in range(2))
    graph = b.subgraph([b.layer(x, 32, False), b.layer(y, 32, False), b.layer(x, 33, False)])
    assert kernels(graph, isa)["quantize_dynamic"] == 3
    rng = np.random.default_rng(0)
    check(graph, [rng.standard_normal((ROWS, FEATURES)).astype(np.float32) for _ in range(2)], isa)


@ISAS
def test_layers_that_quantise_otherwise_share_nothing(isa: Isa) -> None:
    b = Layers()
    x = b.input(TensorType(DType.FLOAT32, (ROWS, FEATURES)))
    layers = [b.layer(x, 32, False), b.layer(x, 33, False, asymmetric=True), b.layer(x, 34, True)]
    graph = b.subgraph(layers)
    assert kernels(graph, isa)["quantize_dynamic"] == 3
    check(graph, [np.random.default_rng(0).standard_normal((ROWS, FEATURES)).astype(np.float32)], isa)
