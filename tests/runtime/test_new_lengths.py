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
from onert.ir import Subgraphs


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
