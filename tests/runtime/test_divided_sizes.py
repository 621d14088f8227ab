"""Sizes from integer division as in C are known for all lengths, whatever the sign of the number that is divided."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.backend.evaluation.evaluating_kernel import EvaluatingKernel
from onert.compiler.rewrite.shape_arithmetic import evaluated
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.symbolic.trace import Trace

TABLE, KEPT = 32, 16


@pytest.mark.parametrize("kind", [BinaryKind.DIV, BinaryKind.REMAINDER], ids=lambda kind: kind.name)
@pytest.mark.parametrize("length", [5, 40], ids=["positive", "negative"])
@pytest.mark.parametrize("by", [1, 2, 3, 7])
def test_quotients_and_remainders_of_lengths_are_those_of_the_operation(by: int, length: int, kind: BinaryKind) -> None:
    op, output, checked = Binary(kind), TensorType(DType.INT64, (1,)), 0
    trace = Trace([length], [100])
    divisor = np.array([by], np.int64)
    found = evaluated(op, [TABLE - np.array(trace.lengths, object), divisor], output)
    assert found is not None
    for other in range(100):
        numbers = trace.at([other])
        if numbers is not None:
            checked += 1
            (expected,) = op.evaluate(np.array([TABLE - other], np.int64), divisor).tolist()
            assert (found[0] if isinstance(found[0], int | np.integer) else numbers[found[0].index]) == expected
    assert checked > 25


@pytest.mark.parametrize("by", [0, -2])
def test_divisions_by_other_than_positive_numbers_are_left_to_the_run(by: int) -> None:
    lengths = np.array(Trace([6], [100]).lengths, object)
    for kind in (BinaryKind.DIV, BinaryKind.REMAINDER):
        assert evaluated(Binary(kind), [lengths, np.array([by])], TensorType(DType.INT64, (1,))) is None


def _centred(table: Array) -> Package:
    """The middle rows of a table, as many as the input has; the exporter halves the negative length for their end."""
    b = Builder()

    def binary(kind: BinaryKind, x: int, y: int) -> int:
        return b.add(Binary(kind), x, y)

    x = b.input(TensorType(DType.FLOAT32, (6, 3)), "x")
    zero, one, two, three, kept, whole, minus = (
        b.constant([n], dtype=DType.INT32) for n in (0, 1, 2, 3, KEPT, TABLE, -1)
    )
    height = b.add(Slice(), b.add(ShapeOf(), x), zero, one)
    begin = binary(BinaryKind.DIV, binary(BinaryKind.SUB, whole, height), two)
    half = binary(BinaryKind.DIV, binary(BinaryKind.MUL, height, minus), two)
    end = binary(BinaryKind.ADD, binary(BinaryKind.ADD, kept, height), half)
    size = binary(BinaryKind.SUB, end, begin)
    rows = b.add(Slice(), b.constant(table), b.add(Concat(0), begin, zero), b.add(Concat(0), size, three))
    return Package((b.model([binary(BinaryKind.ADD, x, rows)]),), "made")


def test_the_middle_of_a_table_is_native_for_all_lengths() -> None:
    table = np.random.default_rng(0).standard_normal((TABLE, 3)).astype(np.float32)
    execution = onert.Execution(onert.compile(_centred(table)))
    for n in (6, 10, 2, 20, 32, 8, 30):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        execution.set_input_shape(0, x.shape)
        (found,) = execution.run([x]).values()
        first = (TABLE - n) // 2
        np.testing.assert_array_equal(found, x + table[first : first + n])
        program = execution.program
        steps = program.routines[program.entry].steps
        assert not any(isinstance(step.kernel, EvaluatingKernel) for step in steps), n
