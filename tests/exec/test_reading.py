"""Inputs that a run reads only once are used in place from a smaller size on, which spares a copy."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction

SHAPE = (1, 128, 128, 4)


def _relu(b: Builder, x: int) -> int:
    return b.add(Unary(UnaryKind.RELU), x)


def _sums(b: Builder, x: int) -> int:
    return b.add(Reduce(Reduction.SUM), x, b.constant(np.int32([3])))


def _halves(b: Builder, x: int) -> int:
    return b.add(Unary(UnaryKind.ROUND), b.add(Binary(BinaryKind.MUL), x, b.constant(np.float32(0.5))))


def _filtered(b: Builder, x: int) -> int:
    return b.add(Conv2D(), x, b.constant(np.ones((8, 3, 3, 4), np.float32)), b.constant(np.zeros(8, np.float32)))


def _turned(b: Builder, x: int) -> int:
    return b.add(Transpose(), x, b.constant(np.int32([0, 3, 1, 2])))


def _joined(b: Builder, x: int) -> int:
    return b.add(Concat(1), x, b.constant(np.ones((1, 1, 128, 4), np.float32)))


def _twice(b: Builder, x: int) -> int:
    return b.add(Binary(BinaryKind.ADD), _filtered(b, x), b.add(Unary(UnaryKind.RELU), _filtered(b, x)))


CASES = [
    (_relu, True),
    (_sums, True),
    (_halves, True),
    (_joined, True),
    (_filtered, False),
    (_turned, False),
    (_twice, False),
]


@pytest.mark.parametrize(("made", "once"), CASES)
def test_inputs_that_a_kernel_reads_once_are_not_copied(made: object, once: bool) -> None:
    assert callable(made)
    b = Builder()
    graph = b.subgraph([made(b, b.input(TensorType(DType.FLOAT32, SHAPE), "x"))])
    program = onert.compile(Package((Subgraphs((graph,)),), "m"), num_threads=1)
    assert (program.main.subgraph.inputs[0] in program.main.read_once) is once
    execution = onert.Execution(program)
    given = [np.full(SHAPE, n, np.float32) for n in range(4)]
    found: list[Array] = [next(iter(execution.run([x]).values())) for x in given]
    read = execution._frame.tensors[program.main.subgraph.inputs[0]].array
    assert np.shares_memory(read, given[-1]) is once
    again = onert.Execution(program)
    assert [y.tobytes() for y in found] == [next(iter(again.run([x.copy()]).values())).tobytes() for x in given]
