"""Constants that are computed for each length."""

from __future__ import annotations

import numpy as np
import pytest

from onert.compiler.rewrite.per_length import Folded, folded
from onert.ir import CallTypes, Constant, DType, ExecutionError, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import Fill, PerLength
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
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
