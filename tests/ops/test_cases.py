"""Every operation has a docstring and cases, and computes what these say."""

from __future__ import annotations

import numpy as np
import pytest
from cases import all_cases
from cases.case import Case
from verdict import Alone, check_case, check_inference

from onert.ir import OPS, Op, infer

CASES = list(all_cases())
SHIPPED = sorted((op for op in OPS.values() if op.__module__.startswith("onert.")), key=lambda op: op.__name__)
WITHOUT = {"Python", "Refuse", "Unsupported"}
"""Operations without results of their own: users' functions, and placeholders for operations that cannot run."""


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_results_equal_those_of_the_case(case: Case) -> None:
    check_case(case, Alone())


@pytest.mark.parametrize("case", [c for c in CASES if c.op.evaluate_in is None], ids=_name)
def test_shapes_are_inferred_from_known_inputs(case: Case) -> None:
    known = infer(case.op, case.input_types(known=True))
    assert known is not None
    if case.expected is not None:
        assert [t.shape for t in known] == [np.shape(e) for e in case.expected]


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_inferred_dimensions_match_the_results(case: Case) -> None:
    """With only constants known, each inferred dimension is unknown or right."""
    check_inference(case, Alone())


@pytest.mark.parametrize("op", SHIPPED, ids=lambda op: op.__name__)
def test_every_operation_has_a_docstring_and_cases(op: type[Op]) -> None:
    """Operations that run subgraphs or keep state have no cases here; programs with them are run instead."""
    assert op.__doc__
    assert len(op.__doc__) >= 30
    if op.evaluate_in is None and op.__name__ not in WITHOUT:
        assert any(type(case.op) is op for case in CASES), f"{op.__name__} has no case in tests/cases"
