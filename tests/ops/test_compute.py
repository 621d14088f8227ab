"""Operations that compute give what their cases say, and refuse what their rules refuse."""

from __future__ import annotations

import numpy as np
import pytest
from cases import conv, matmul, norm, pool, reduce, transpose_conv
from cases.case import Case

from onert.ir import evaluate, infer

CASES = [case for module in (conv, matmul, norm, pool, reduce, transpose_conv) for case in module.CASES]


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
