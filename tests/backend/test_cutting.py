"""Tensors cut to counts that a run computes, along one axis or several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, OnertError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

X = np.arange(24, dtype=np.float32).reshape(4, 6)
COUNTS = [(0, 0), (2, 3), (4, 6), (1, 6), (4, 0)]


def _cut(b: Builder) -> tuple[int, int]:
    x = b.input(TensorType(DType.FLOAT32, X.shape), "x")
    rows, columns = (b.input(TensorType(DType.INT32, ()), name) for name in ("rows", "columns"))
    first = b.add(FirstEntries(0), x, rows)
    return first, b.add(FirstEntries(1), first, columns)


def _alone(b: Builder) -> list[int]:
    return [_cut(b)[1]]


def _with_what_is_between(b: Builder) -> list[int]:
    return [*_cut(b)]


def _with_its_negative(b: Builder) -> list[int]:
    first, both = _cut(b)
    return [b.add(Unary(UnaryKind.NEG), first), both]


WANTED: list[tuple[Callable[[Builder], list[int]], Callable[[int, int], list[Array]]]] = [
    (_alone, lambda rows, columns: [X[:rows, :columns]]),
    (_with_what_is_between, lambda rows, columns: [X[:rows], X[:rows, :columns]]),
    (_with_its_negative, lambda rows, columns: [-X[:rows], X[:rows, :columns]]),
]


def _execution(outputs: Callable[[Builder], list[int]]) -> onert.Execution:
    b = Builder()
    package = Package((Subgraphs((b.subgraph(outputs(b)),)),), "m")
    return onert.Execution(onert.compile(package, backends=("reference",)))


@pytest.mark.parametrize(("outputs", "wanted"), WANTED)
def test_a_tensor_is_cut_along_several_axes(
    outputs: Callable[[Builder], list[int]], wanted: Callable[[int, int], list[Array]]
) -> None:
    execution = _execution(outputs)
    for rows, columns in COUNTS:
        found = execution.run([X, np.int32(rows), np.int32(columns)]).values()
        for mine, theirs in zip(found, wanted(rows, columns), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("counts", [(5, 1), (1, 7), (-1, 1), (1, -1), (2**31 - 1, 1)])
@pytest.mark.parametrize(("outputs", "_"), WANTED)
def test_a_count_beyond_the_dimension_is_an_error(
    outputs: Callable[[Builder], list[int]], _: object, counts: tuple[int, int]
) -> None:
    execution = _execution(outputs)
    with pytest.raises(OnertError, match=r"count is -?\d+, expected 0 to the dimension"):
        execution.run([X, *map(np.int32, counts)])
    assert len(execution.run([X, np.int32(1), np.int32(1)])) == len(outputs(Builder()))
