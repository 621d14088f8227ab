"""A new length needs no program of its own, whatever depends on it, and has the bits of a program for it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from length_counts import COUNTS
from length_models import opened, weights
from length_positions import MIXED_USES

import onert
from onert.ir import DType, ExecutionError, Op, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.element_indices import GatherElements
from onert.ir.ops.data_movement.gather import Gather, GatherNd


def _given(shapes: list[tuple[int, ...]]) -> dict[str, Any]:
    return {name: weights(*shape) for name, shape in zip("xy", shapes, strict=False)}


@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in (*COUNTS, *MIXED_USES)])
def test_a_new_length_needs_no_program_of_its_own(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = opened(model())
    execution = onert.Execution(onert.compile(package))
    for n in (5, 6, 7, 8, 30, 9):
        execution.run(_given(shapes(n)))
    assert execution.program.stretch is not None
    bound, made = [], onert.Execution._made
    monkeypatch.setattr(onert.Execution, "_made", lambda *given: bound.append(given) or made(*given))
    for n in range(10, 30):
        given = _given(shapes(n))
        alone = onert.compile(package, input_shapes={name: array.shape for name, array in given.items()})
        expected = onert.Execution(alone).run(given)
        bound.clear()
        found = execution.run(given)
        assert not bound
        assert [info.shape for info in execution.outputs] == [info.shape for info in alone.outputs]
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(("op", "index"), [(Gather(0, 0), (2,)), (GatherNd(), (2, 1)), (GatherElements(0), (2, 4))])
def test_an_error_names_no_other_length_s_size(op: Op, index: tuple[int, ...]) -> None:
    b = Builder()
    x, i = b.input(TensorType(DType.FLOAT32, (None, 4)), "x"), b.input(TensorType(DType.INT64, index), "i")
    package = opened(Subgraphs((b.subgraph([b.add(op, x, i)]),)))
    execution = onert.Execution(onert.compile(package))
    for n in (3, 5, 7, 9):
        table = np.zeros((n, 4), np.float32)
        execution.run([table, np.zeros(index, np.int64)])
        with pytest.raises(ExecutionError, match=rf"index {n} is outside of dimension 0( of {n})?$"):
            execution.run([table, np.full(index, n)])
    assert execution.program.stretch is not None
