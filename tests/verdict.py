"""Whether an operation does what its case expects."""

from __future__ import annotations

import numpy as np
from cases.case import Case

from onert.ir import Array, Context, evaluate, infer


def check_case(case: Case, context: Context | None = None) -> tuple[Array, ...]:
    """Evaluate a case; checks the results against the case's expected ones and inferred types."""
    types = case.types()
    results = evaluate(case.op, case.inputs, types, context)
    assert [r.shape for r in results] == [t.shape for t in types.outputs]
    if case.expected is None:
        return results
    for result, expected in zip(results, case.expected, strict=True):
        assert result.shape == np.shape(expected)
        assert result.dtype == expected.dtype
        if result.dtype.kind in "fc":
            largest = np.abs(expected).max(initial=0.0, where=np.isfinite(expected))
            np.testing.assert_allclose(result, expected, rtol=0, atol=case.tolerance * max(largest, 1e-30))
        else:
            np.testing.assert_array_equal(result, expected)
    return results


def check_inference(case: Case, context: Context | None = None) -> None:
    """Check that with only constants known, each inferred dimension is unknown or right."""
    results = infer(case.op, case.input_types(known=False))
    assert results is not None
    for result, found in zip(results, check_case(case, context), strict=True):
        if result.ranked:
            assert len(result.shape) == found.ndim
            assert all(d in (None, e) for d, e in zip(result.shape, found.shape, strict=True))
