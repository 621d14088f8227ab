"""Products of floats with many terms are added in parts, so that a part's weights stay in the cache for all rows."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import assert_close, evaluated, kernels, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TERMS, COLUMNS = 4099, 37
PARTS = 4


def _draw(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(0, 0.25, shape).astype(np.float32)


def _layer(m: int, activation: Activation = Activation.NONE) -> tuple[Subgraph, list[Array]]:
    operands = _draw(m, TERMS), _draw(COLUMNS, TERMS), _draw(COLUMNS)
    return single(FullyConnected(activation), *operands, constant=(1, 2))


@ISAS
@pytest.mark.parametrize(("m", "calls"), [(15, 1), (16, PARTS), (64, PARTS)])
def test_long_sums_of_many_rows_are_added_in_parts(isa: Isa, m: int, calls: int) -> None:
    graph, _ = _layer(m)
    assert sum(kernels(graph, isa).values()) == calls


@ISAS
@pytest.mark.parametrize("m", [16, 17, 64, 71])  # tiles that end at the last row compute earlier rows again
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU, Activation.TANH])
def test_long_sums_are_those_of_the_definition_for_any_number_of_rows(isa: Isa, m: int, activation: Activation) -> None:
    graph, inputs = _layer(m, activation)
    found = natively(graph, inputs, isa)
    assert_close(found, evaluated(graph, inputs))
    np.testing.assert_array_equal(found, natively(graph, inputs, isa, 2))


@ISAS
def test_long_sums_may_be_followed_by_what_reads_them_twice_and_by_other_tensors(isa: Isa) -> None:
    m = 29
    b = Builder()
    x, other = b.input(TensorType(DType.FLOAT32, (m, TERMS))), b.input(TensorType(DType.FLOAT32, (m, COLUMNS)))
    y = b.add(FullyConnected(), x, b.constant(_draw(COLUMNS, TERMS)), b.constant(_draw(COLUMNS)))
    gated = b.add(Binary(BinaryKind.MUL), y, b.add(Unary(UnaryKind.LOGISTIC), y))
    graph = b.subgraph([b.add(Binary(BinaryKind.ADD), gated, other)])
    assert sum(kernels(graph, isa).values()) == PARTS
    given = [_draw(m, TERMS), _draw(m, COLUMNS)]
    assert_close(natively(graph, given, isa, 2), evaluated(graph, given))


@ISAS
def test_long_sums_of_a_matmul_with_constants_are_added_in_parts(isa: Isa) -> None:
    graph, inputs = single(BatchMatMul(), _draw(2, 19, TERMS), _draw(TERMS, COLUMNS), constant=(1,))
    assert sum(kernels(graph, isa).values()) == PARTS
    assert_close(natively(graph, inputs, isa, 2), evaluated(graph, inputs))


def test_a_new_number_of_rows_has_the_bits_of_a_program_compiled_for_it_alone() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (40, TERMS)), "x")
    model = b.model([b.add(FullyConnected(), x, b.constant(_draw(COLUMNS, TERMS)))])
    package = Package((model,), "made")
    program = onert.compile(package)
    for m in (64, 20, 15, 3, 16, 17, 100):
        given = {"x": _draw(m, TERMS)}
        (expected,) = onert.Execution(onert.compile(package, input_shapes={"x": (m, TERMS)})).run(given).values()
        (found,) = onert.Execution(program.specialize({0: (m, TERMS)})).run(given).values()
        np.testing.assert_array_equal(found, expected)
        assert_close([found], evaluated(model[0], [given["x"]]))
