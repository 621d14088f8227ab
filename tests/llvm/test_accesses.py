"""Loops declare the memory they touch, for all threads, when they run beside others and after other operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from control.loops import ONE, floats, loop, one_more

from onert.backend import Settings
from onert.ir import Quantization, Subgraph
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.compile import lowered
from onert_llvm.target.isa import Isa, runnable

from .accesses import check
from .natively import enclosed, natively, sequence_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
THREADS = 3
"""More than take part in any group."""


def _convolution(b: Builder, x: int, weight: int = 1) -> int:
    return b.add(Conv2D(Padding.SAME), x, b.constant(np.full((16, 3, 3, 16), weight, np.float32)))


def _dynamic_range(b: Builder, x: int, weight: int = 1) -> int:
    return b.add(FullyConnected(), x, b.constant(np.full((16, 16), weight, np.int8), Quantization((0.1,), (0,))))


def _resize(b: Builder, x: int, weight: int = 1) -> int:
    larger = b.add(ResizeBilinear(), x, b.constant(np.int32([12 * weight, 24])))
    return b.add(ResizeBilinear(), larger, b.constant(np.int32([12, 12])))


LAYERS = {"convolution": _convolution, "dynamic range": _dynamic_range, "resize": _resize}
"""Layers that use a thread's own memory on some targets."""


def _graphs(layer: Any) -> Subgraph:
    """Two loops over the layer, and the layer before each of them: what it quantised may be retained until then."""
    top = Builder()
    x, one, last = top.input(floats(1, 12, 12, 16)), top.constant(np.int32(0)), top.constant(np.int32(2))

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, rows = given
        return [one_more(b, i), n, layer(b, rows)]

    types = [ONE, ONE, floats(1, 12, 12, 16)]
    before = [layer(top, x, 2), layer(top, x, 3)]
    loops = [top.add_many(While(1, 2, tuple(types)), one, last, each)[2] for each in before]
    _, *inner = loop(types, body)
    return enclosed((top.subgraph([*loops, layer(top, x, 4)]), *inner))


@ISAS
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_loops_declare_what_they_touch(layer: Any, together: bool, isa: Isa) -> None:
    graph, settings = _graphs(layer), Settings(num_threads=THREADS, target=isa.name)
    sequence = sequence_of(graph, settings)
    if together:
        groups = [evolve(g, threads=(i % THREADS, 1)) for i, g in enumerate(sequence.groups)]
        sequence = evolve(sequence, groups=tuple(groups))
    made = lowered(sequence, isa, settings)
    assert any(command.program for command in made.commands)
    check(made, graph, THREADS)


@ISAS
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_loops_after_other_layers_compute_the_same_with_several_threads(layer: Any, isa: Isa) -> None:
    graph = _graphs(layer)
    x = np.random.default_rng(0).uniform(-1, 1, (1, 12, 12, 16)).astype(np.float32)
    alone, *more = (natively(graph, [x], isa, threads=threads, runs=3) for threads in (1, 2, THREADS))
    for found in more:
        for mine, theirs in zip(found, alone, strict=True):
            np.testing.assert_array_equal(mine, theirs)
