"""Every operation has a docstring and cases, and computes what these say."""

from __future__ import annotations

import numpy as np
import pytest
from cases import all_cases
from cases.case import Case
from verdict import check_inference

from onert.backend.alone import Alone
from onert.ir import OPS, Op, evaluate, infer
from onert.ir.analysis.evaluate import is_plain, sized

CASES = list(all_cases())
SHIPPED = sorted((op for op in OPS.values() if op.__module__.startswith("onert.")), key=lambda op: op.__name__)
WITHOUT = {"Python", "Refuse", "Unsupported"}
"""Operations without results of their own: users' functions, and placeholders for operations that cannot run."""


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_results_equal_those_of_the_case(case: Case) -> None:
    """Inferred with only constants known, each dimension is that of the result or unknown."""
    check_inference(case, Alone())


@pytest.mark.parametrize("label", sorted({case.op.label for case in CASES if case.op.evaluate_in is None}))
def test_shapes_are_inferred_from_known_inputs(label: str) -> None:
    for case in (c for c in CASES if c.op.label == label and c.op.evaluate_in is None):
        known = infer(case.op, case.input_types(known=True))
        assert known is not None, case.name
        if case.expected is not None:
            assert [t.shape for t in known] == [np.shape(e) for e in case.expected], case.name


@pytest.mark.parametrize("op", SHIPPED, ids=lambda op: op.__name__)
def test_every_operation_has_a_docstring_and_cases(op: type[Op]) -> None:
    """Operations that run subgraphs or keep state have no cases here; programs with them are run instead."""
    assert op.__doc__
    assert len(op.__doc__) >= 30
    if op.evaluate_in is None and op.__name__ not in WITHOUT:
        assert any(type(case.op) is op for case in CASES), f"{op.__name__} has no case in tests/cases"


@pytest.mark.parametrize("label", sorted({case.op.label for case in CASES if case.op.sized is not None}))
def test_functions_for_known_sizes_compute_what_the_operation_does(label: str) -> None:
    made = 0
    for case in (c for c in CASES if c.op.label == label):
        types = case.types()
        function = (
            sized(case.op, types) if is_plain(case.op, types) and all(t.is_static for t in types.outputs) else None
        )
        if function is None:
            continue
        made += 1
        kept = [None if x is None else x.copy() for x in case.inputs]
        for mine, meant in zip(function(*case.inputs), evaluate(case.op, kept, types), strict=True):
            assert (mine.shape, mine.dtype) == (meant.shape, meant.dtype), case.name
            np.testing.assert_array_equal(mine, meant, err_msg=case.name)
            assert all(mine is not x for x in case.inputs), case.name
    assert made
