"""Every operation is described, has cases, and gives what they say."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import cases
import numpy as np
import pytest
from cases.case import Case
from verdict import Alone, check_case, check_inference

from onert.ir import OPS, Op, infer

CASES: list[Case] = [
    case
    for module in pkgutil.iter_modules(cases.__path__)
    if module.name != "case"
    for case in import_module(f"cases.{module.name}").CASES
]
SHIPPED = sorted((op for op in OPS.values() if op.__module__.startswith("onert.")), key=lambda op: op.__name__)
WITHOUT = {"Python", "Refuse", "Unsupported"}
"""What gives nothing of its own: users' functions, and what stands for operations that nothing can run."""


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_elements_are_those_of_the_case(case: Case) -> None:
    check_case(case, Alone())


@pytest.mark.parametrize("case", [c for c in CASES if c.op.evaluate_in is None], ids=_name)
def test_known_shapes_are_inferred(case: Case) -> None:
    known = infer(case.op, case.input_types(known=True))
    assert known is not None
    if case.expected is not None:
        assert [t.shape for t in known] == [np.shape(e) for e in case.expected]


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_nothing_is_inferred_that_the_run_contradicts(case: Case) -> None:
    """With only constants known, each inferred dimension is unknown or right."""
    check_inference(case, Alone())


@pytest.mark.parametrize("op", SHIPPED, ids=lambda op: op.__name__)
def test_every_operation_is_described_and_has_cases(op: type[Op]) -> None:
    """Those that run subgraphs or keep state have no elements to compare; programs of them are run instead."""
    assert op.__doc__
    assert len(op.__doc__) >= 30
    if op.evaluate_in is None and op.__name__ not in WITHOUT:
        assert any(type(case.op) is op for case in CASES), f"{op.__name__} has no case in tests/cases"
