"""Every operation is described, has cases, and gives what they say."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import cases
import numpy as np
import pytest
from cases.case import Case

from onert.ir import OPS, Op, evaluate, infer

CASES: list[Case] = [
    case
    for module in pkgutil.iter_modules(cases.__path__)
    if module.name != "case"
    for case in import_module(f"cases.{module.name}").CASES
]
SHIPPED = sorted((op for op in OPS.values() if op.__module__.startswith("onert.")), key=lambda op: op.__name__)
WITHOUT = {"Python", "Unsupported"}
"""What models do not bring along: users' own functions, and what stands for an operation that nothing can run."""


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_elements_are_those_of_the_case(case: Case) -> None:
    results = evaluate(case.op, case.inputs, case.types())
    assert case.expected is not None
    for result, expected in zip(results, case.expected, strict=True):
        assert result.shape == np.shape(expected)
        assert result.dtype == expected.dtype
        if result.dtype.kind in "fc":
            largest = np.abs(expected).max(initial=0.0, where=np.isfinite(expected))
            np.testing.assert_allclose(result, expected, rtol=0, atol=case.tolerance * max(largest, 1e-30))
        else:
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_known_shapes_are_inferred(case: Case) -> None:
    known = infer(case.op, case.input_types(known=True))
    assert known is not None
    assert case.expected is not None
    assert [t.shape for t in known] == [np.shape(e) for e in case.expected]


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_nothing_is_inferred_that_the_run_contradicts(case: Case) -> None:
    """With only constants known, each inferred dimension is unknown or right."""
    results = infer(case.op, case.input_types(known=False))
    assert results is not None
    assert case.expected is not None
    for result, expected in zip(results, case.expected, strict=True):
        if result.ranked:
            assert len(result.shape) == expected.ndim
            assert all(d in (None, e) for d, e in zip(result.shape, expected.shape, strict=True))


@pytest.mark.parametrize("op", SHIPPED, ids=lambda op: op.__name__)
def test_every_operation_is_described_and_has_cases(op: type[Op]) -> None:
    """Those that run subgraphs or keep state have no elements to compare; programs of them are run instead."""
    assert op.__doc__
    assert len(op.__doc__) >= 30
    if op.evaluate_in is None and op.__name__ not in WITHOUT:
        assert any(type(case.op) is op for case in CASES), f"{op.__name__} has no case in tests/cases"
