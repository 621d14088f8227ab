"""Shape, axis and count operands may have the ranks that LiteRT's kernels accept, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from model_writer import LiteRt
from operand_ranks import CALLS, Call, inputs_of, model_of, variants

import onert
from onert.ir import Array, OnertError

LENIENT = {
    "DEPTHWISE_CONV_2D": "a bias of any rank, which LiteRT's CONV_2D accepts too",
    "FILL": "a one-element value of any rank, as Android's specification writes scalars",
    "RANGE": "one-element limits of any rank, for the same reason",
    "RESHAPE": "LiteRT's delegate accepts a rank-1 shape that its kernel rejects",
    "REVERSE_V2": "one axis as a scalar",
    "SCATTER_ND": "a shape of rank 1 as a scalar",
    "SELECT": "a condition of higher rank than the values",
    "SPARSE_TO_DENSE": "a shape of rank 1 as a scalar",
}
"""Operators that accept more ranks here than in LiteRT, and which."""


def _theirs(call: Call) -> list[Array] | None:
    """LiteRT's results, or None if it rejects the model."""
    kernels = "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if call.code == "SEGMENT_SUM" else "BUILTIN_REF"  # which lacks it
    try:
        return LiteRt(model_of(call), kernels)(*inputs_of(call))
    except (RuntimeError, ValueError):
        return None


def _ours(call: Call) -> list[Array]:
    program = onert.compile(onert.load(model_of(call)), num_threads=1)
    return list(onert.Execution(program).run(inputs_of(call)).values())


def _check(call: Call) -> None:
    expected = _theirs(call)
    if expected is None:
        with pytest.raises(OnertError):
            _ours(call)
        return
    for mine, theirs in zip(_ours(call), expected, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), str(call)
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, err_msg=str(call))


def _is_accepted_only_here(call: Call, usual: Call) -> bool:
    """Whether LiteRT alone rejects a call. Requires the elements of the call with operands of the usual ranks."""
    if _theirs(call) is not None:
        return False
    try:
        found = _ours(call)
    except OnertError:
        return False
    for mine, wanted in zip(found, _ours(usual), strict=True):
        np.testing.assert_array_equal(mine.reshape(-1), wanted.reshape(-1), err_msg=str(call))
    return True


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_exactly_the_operand_ranks_that_litert_accepts_are_accepted(call: Call) -> None:
    usual, *others = variants(call)
    further = {str(v) for v in others if call.code in LENIENT and _is_accepted_only_here(v, usual)}
    for variant in (usual, *others):
        if str(variant) not in further:
            _check(variant)


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (1, 1, 2)])
@pytest.mark.parametrize("fields", [{}, {"newShape": [4, 6]}], ids=["without options", "with options"])
def test_the_shape_operand_of_a_reshape_is_flattened(fields: dict[str, list[int]], shape: tuple[int, ...]) -> None:
    base = next(c for c in CALLS if c.code == "RESHAPE")
    x = base.operands[0]
    assert x is not None
    operands = (x, np.array([4, 6], np.int32).reshape(shape))
    for constant in (frozenset({1}), frozenset[int]()):
        call = Call("RESHAPE", operands, (1,), ("ReshapeOptions", fields), constant=constant)
        (found,) = _ours(call)
        np.testing.assert_array_equal(found, x.reshape(4, 6))
