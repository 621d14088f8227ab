"""Branches that one operation joins again run in one kernel, and match their definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from onert.backend import Sequence, Settings
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, check

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPE = (1, 5, 7, 12)


def _draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _silu(b: Builder, x: int) -> int:
    return b.add(Binary(BinaryKind.MUL), x, b.add(Unary(UnaryKind.LOGISTIC), x))


def _gelu(b: Builder, x: int) -> int:
    scaled = b.add(Binary(BinaryKind.DIV), x, b.constant(np.float32(2**0.5)))
    more = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.ERF), scaled), b.constant(np.float32(1)))
    return b.add(Binary(BinaryKind.MUL), b.add(Binary(BinaryKind.MUL), x, more), b.constant(np.float32(0.5)))


def _hard_swish(b: Builder, x: int) -> int:
    gate = b.add(Unary(UnaryKind.RELU6), b.add(Binary(BinaryKind.ADD), x, b.constant(np.float32(3))))
    return b.add(Binary(BinaryKind.DIV), b.add(Binary(BinaryKind.MUL), x, gate), b.constant(np.float32(6)))


def _twice(b: Builder, x: int) -> int:
    """A diamond after another, with a vector and a tensor as other operands."""
    y = b.add(Binary(BinaryKind.MUL), _silu(b, x), b.constant(_draw(12)))
    z = b.add(Binary(BinaryKind.ADD), y, b.constant(_draw(*SHAPE)))
    return b.add(Binary(BinaryKind.MAXIMUM), z, b.add(Unary(UnaryKind.TANH), z))


DIAMONDS = [_silu, _gelu, _hard_swish, _twice]


def _convolved(after: Callable[[Builder, int], int], kept: bool = False) -> Subgraph:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, SHAPE))
    y = b.add(Conv2D(Padding.SAME), x, b.constant(_draw(12, 3, 3, 12)), b.constant(_draw(12)))
    out = after(b, y)
    return b.subgraph([out, y] if kept else [out])


@ISAS
@pytest.mark.parametrize("after", DIAMONDS)
def test_a_diamond_after_a_convolution_becomes_its_epilogue(isa: Isa, after: Callable[[Builder, int], int]) -> None:
    graph = _convolved(after)
    sequence = Sequence(graph, tuple(range(len(graph.operations))), graph.inputs, graph.outputs)
    assert len(BACKEND.fuse(sequence, Settings())) == 1
    check(graph, [_draw(*SHAPE)], isa, threads=2)


@ISAS
@pytest.mark.parametrize("after", DIAMONDS)
def test_a_diamond_whose_root_is_an_output_is_not_fused(isa: Isa, after: Callable[[Builder, int], int]) -> None:
    graph = _convolved(after, kept=True)
    sequence = Sequence(graph, tuple(range(len(graph.operations))), graph.inputs, graph.outputs)
    assert len(BACKEND.fuse(sequence, Settings())) > 1
    check(graph, [_draw(*SHAPE)], isa)


@ISAS
def test_a_branch_with_other_readers_is_exact(isa: Isa) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, SHAPE))
    y = b.add(Conv2D(Padding.SAME), x, b.constant(_draw(12, 3, 3, 12)))
    gate = b.add(Unary(UnaryKind.LOGISTIC), y)
    out = b.add(Binary(BinaryKind.MUL), y, gate)
    other = b.add(Conv2D(Padding.SAME), gate, b.constant(_draw(3, 1, 1, 12)))
    check(b.subgraph([out, other]), [_draw(*SHAPE)], isa)


@ISAS
def test_a_diamond_of_a_broadcast_sum_is_exact(isa: Isa) -> None:
    b = Builder()
    x, y = b.input(TensorType(DType.FLOAT32, (3, 1, 5))), b.input(TensorType(DType.FLOAT32, (4, 1)))
    check(b.subgraph([_silu(b, b.add(Binary(BinaryKind.ADD), x, y))]), [_draw(3, 1, 5), _draw(4, 1)], isa)


@ISAS
@pytest.mark.parametrize(("kept", "count"), [(False, 1), (True, 2)])
def test_chains_joined_by_one_operation_become_one_loop(isa: Isa, kept: bool, count: int) -> None:
    b = Builder()
    x, y, z = (b.input(TensorType(DType.FLOAT32, SHAPE)) for _ in range(3))
    one = b.add(Binary(BinaryKind.MUL), x, b.add(Unary(UnaryKind.TANH), y))
    other = b.add(Binary(BinaryKind.SUB), z, b.add(Binary(BinaryKind.MUL), x, y))
    small = b.add(Unary(UnaryKind.ABS), b.constant(_draw(12)))
    out = b.add(Binary(BinaryKind.ADD), b.add(Binary(BinaryKind.DIV), one, other), small)
    graph = b.subgraph([out, other] if kept else [out])
    sequence = Sequence(graph, tuple(range(len(graph.operations))), graph.inputs, graph.outputs)
    assert len(BACKEND.fuse(sequence, Settings())) == count + 1  # plus one for the vector
    check(graph, [_draw(*SHAPE) + i for i in range(3)], isa, threads=2)
