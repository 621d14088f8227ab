"""Constants that are computed for each length."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.compiler.rewrite.per_length import Folded, folded
from onert.ir import CallTypes, Constant, DType, ExecutionError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import Fill, PerLength
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.symbolic.trace import Computed, Trace


def _pairs() -> Folded:
    """Pairs of sines: a function of the number of sines and of pairs."""
    (length,) = Trace((6,), (24,), ()).lengths
    b = Builder()
    dims, value = b.input(TensorType(DType.INT32, (1,))), b.constant(np.float32(0.5))
    filled = b.add(Fill(), dims, value)
    rows = b.add(Reshape((-1, 2)), filled)
    graph = b.subgraph([b.add(Unary(UnaryKind.SIN), rows)])
    graph = graph.with_types({i: graph.type(i).with_shape((length // 2, 2)) for i in (rows, *graph.outputs)})
    known = graph.type(dims).with_data(Constant(np.array([length], object)))
    types = [graph.type(i) for i in range(len(graph.operands))]
    producers = {
        filled: (0, CallTypes((known, graph.operands[value].known), (types[filled].with_shape((6,)),))),
        rows: (1, CallTypes((types[filled].with_shape((6,)),), (types[rows].with_shape((3, 2)),))),
        graph.outputs[0]: (2, CallTypes((types[rows].with_shape((3, 2)),), (types[rows].with_shape((3, 2)),))),
    }
    (made,) = folded(graph, graph.outputs, producers)
    assert isinstance(made.op, PerLength)
    assert isinstance(made.op.elements, Computed)
    function: Folded = made.op.elements.function
    return function


@pytest.mark.parametrize("length", [0, 2, 6, 24])
def test_elements_are_those_that_evaluation_gives_for_the_length(length: int) -> None:
    expected = np.sin(np.full((length // 2, 2), 0.5, np.float32))
    np.testing.assert_array_equal(_pairs()(length, length // 2), expected)


def test_an_operation_that_rejects_a_length_is_named() -> None:
    with pytest.raises(ExecutionError, match=r"Reshape: .* 7 elements"):
        _pairs()(7, 3)


def test_elements_of_another_shape_than_native_code_expects_are_refused() -> None:
    with pytest.raises(ExecutionError, match=r"has shape \(3, 2\), expected \(4, 2\)"):
        _pairs()(6, 4)


def _shortened() -> Package:
    """An image, resized so that its shorter side has 8 pixels, as detectors begin."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 3, None, None)), "x")
    begin, count = b.constant([2], dtype=DType.INT32), b.constant([2], dtype=DType.INT32)
    sides = b.add(Cast(DType.FLOAT32), b.add(Slice(), b.add(ShapeOf(DType.INT64), x), begin, count))
    shorter = b.add(Reduce(Reduction.MIN, keep_dims=True), sides, b.constant([0], dtype=DType.INT32))
    factor = b.add(Binary(BinaryKind.DIV), b.constant(np.float32([8.3])), shorter)
    sizes = b.add(Cast(DType.INT64), b.add(Unary(UnaryKind.FLOOR), b.add(Binary(BinaryKind.MUL), sides, factor)))
    small = b.add(Interpolate(Interpolation.LINEAR, (2, 3)), x, sizes)
    return Package((b.model([b.add(Unary(UnaryKind.TANH), small)]),), "shortened")


def test_sizes_that_only_floats_of_several_lengths_give_are_known_to_native_code_at_every_length() -> None:
    program = onert.compile(_shortened(), num_threads=1)
    for sides, expected in (((16, 20), (8, 10)), ((24, 17), (11, 8)), ((10, 30), (8, 24)), ((24, 17), (11, 8))):
        program = program.specialize({0: (1, 3, *sides)})
        assert set(program.backends) == {"llvm"}, sides
        assert program.outputs[0].shape == (1, 3, *expected), sides
