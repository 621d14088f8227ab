"""Layer norms and similar functions, decomposed into operations, run as one kernel and match their definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from onert.backend import Sequence, Settings
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, check

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPES = [(3, 7), (1, 128, 256), (2, 5, 1, 33), (1, 16), (9, 2)]
ADD, SUB, MUL, DIV = (Binary(kind) for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV))
SQUARED = Binary(BinaryKind.SQUARED_DIFFERENCE)
RSQRT, EXP, NEG = (Unary(kind) for kind in (UnaryKind.RSQRT, UnaryKind.EXP, UnaryKind.NEG))


class Norm(Builder):
    """A subgraph that processes the rows of one input."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        self.x = self.input(TensorType(DType.FLOAT32, shape), "x")

    def reduce(self, kind: Reduction, x: int, keep: bool = True, axes: tuple[int, ...] = (-1,)) -> int:
        return self.add(Reduce(kind, keep_dims=keep), x, self.constant(np.array(axes, np.int32)))

    def number(self, value: float) -> int:
        return self.constant(np.float32(value))

    def vector(self, seed: int) -> int:
        return self.constant(np.random.default_rng(seed).standard_normal(self.shape[-1]).astype(np.float32))


def _factored(shape: tuple[int, ...]) -> Subgraph:
    """A layer norm as Keras writes it: x * s + (beta - mean * s), s = gamma / sqrt(variance + e)."""
    b = Norm(shape)
    mean = b.reduce(Reduction.MEAN, b.x)
    variance = b.reduce(Reduction.MEAN, b.add(SQUARED, b.x, mean))
    scale = b.add(MUL, b.add(RSQRT, b.add(ADD, variance, b.number(1e-3))), b.vector(1))
    shift = b.add(SUB, b.vector(2), b.add(MUL, mean, scale))
    return b.subgraph([b.add(ADD, b.add(MUL, b.x, scale), shift)])


def _centred(shape: tuple[int, ...]) -> Subgraph:
    """A layer norm as exporters write it: the centred rows, used twice, divided by the root of their mean square."""
    b = Norm(shape)
    centred = b.add(SUB, b.x, b.reduce(Reduction.MEAN, b.x))
    variance = b.reduce(Reduction.MEAN, b.add(MUL, centred, centred))
    root = b.add(Unary(UnaryKind.SQRT), b.add(ADD, variance, b.number(1e-5)))
    scaled = b.add(MUL, b.add(DIV, centred, root), b.vector(3))
    return b.subgraph([b.add(Binary(BinaryKind.ADD, Activation.RELU), scaled, b.vector(4))])


def _planes(shape: tuple[int, ...]) -> Subgraph:
    """An instance norm of planes, with a scale for each channel and an offset for each pixel."""
    b, axes = Norm(shape), tuple(range(2, len(shape)))
    rng = np.random.default_rng(5)
    factor, offset = (b.constant(rng.standard_normal(s).astype(np.float32)) for s in ((shape[1], 1, 1), shape[2:]))
    centred = b.add(SUB, b.x, b.reduce(Reduction.MEAN, b.x, axes=axes))
    variance = b.reduce(Reduction.MEAN, b.add(Unary(UnaryKind.SQUARE), centred), axes=axes)
    scaled = b.add(MUL, centred, b.add(RSQRT, b.add(ADD, variance, b.number(1e-5))))
    return b.subgraph([b.add(ADD, b.add(MUL, scaled, factor), offset)])


def _residual(shape: tuple[int, ...]) -> Subgraph:
    """Also reads a second tensor of the same shape, and one with a number per row."""
    b = Norm(shape)
    y = b.input(TensorType(DType.FLOAT32, shape), "y")
    z = b.input(TensorType(DType.FLOAT32, (*shape[:-1], 1)), "z")
    top = b.reduce(Reduction.MAX, b.x)
    low = b.reduce(Reduction.MIN, b.add(SUB, y, top))
    return b.subgraph([b.add(MUL, b.add(ADD, b.add(SUB, b.x, low), y), b.add(ADD, z, b.add(NEG, top)))])


FUSED: list[Callable[[tuple[int, ...]], Subgraph]] = [_factored, _centred, _residual]


def _groups(subgraph: Subgraph) -> list[tuple[int, ...]]:
    every = tuple(range(len(subgraph.operations)))
    sequence = Sequence(subgraph, every, subgraph.inputs, subgraph.outputs)
    return [group.operations for group in BACKEND.fuse(sequence, Settings())]


def _inputs(subgraph: Subgraph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [tuple(d or 1 for d in subgraph.type(i).shape) for i in subgraph.inputs]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _check_one_kernel(isa: Isa, subgraph: Subgraph) -> None:
    assert _groups(subgraph) == [tuple(range(len(subgraph.operations)))]
    for threads in (1, 2):
        check(subgraph, _inputs(subgraph), isa, 1e-5, threads=threads)


@ISAS
@pytest.mark.parametrize("make", FUSED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm_is_one_kernel(
    isa: Isa, make: Callable[[tuple[int, ...]], Subgraph], shape: tuple[int, ...]
) -> None:
    _check_one_kernel(isa, make(shape))


@ISAS
@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (1, 9, 16, 16)], ids=str)
def test_instance_norm_is_one_kernel(isa: Isa, shape: tuple[int, ...]) -> None:
    _check_one_kernel(isa, _planes(shape))


def _read_outside(shape: tuple[int, ...]) -> Subgraph:
    """The mean is an output of the subgraph."""
    b = Norm(shape)
    mean = b.reduce(Reduction.MEAN, b.x)
    return b.subgraph([b.add(MUL, b.add(NEG, b.add(SUB, b.x, mean)), b.vector(1)), mean])


def _softmax(shape: tuple[int, ...]) -> Subgraph:
    """An expensive intermediate is used twice, once in a sum."""
    b = Norm(shape)
    power = b.add(EXP, b.add(SUB, b.x, b.reduce(Reduction.MAX, b.x)))
    return b.subgraph([b.add(DIV, power, b.reduce(Reduction.SUM, power))])


def _across(shape: tuple[int, ...]) -> Subgraph:
    """Reduces columns, and rows without keeping the dimension."""
    b = Norm((shape[-1], shape[-1]))
    first = b.constant(np.array([0], np.int32))
    columns = b.add(SUB, b.x, b.add(Reduce(Reduction.MEAN, keep_dims=True), b.x, first))
    return b.subgraph([b.add(NEG, b.add(MUL, columns, b.reduce(Reduction.MEAN, b.x, keep=False)))])


@pytest.mark.parametrize("make", [_read_outside, _softmax, _across])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_other_chains_are_several_kernels(make: Callable[[tuple[int, ...]], Subgraph], shape: tuple[int, ...]) -> None:
    subgraph = make(shape)
    assert len(_groups(subgraph)) > 1
    check(subgraph, _inputs(subgraph), runnable()[-1])
