"""Int8 softmax by lookup tables in registers is exact for rows of any width and scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Quantization
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.kernels.reduction.tabled_softmax import NarrowSoftmax, TabledSoftmax, runs
from onert_llvm.lower.reduction import integer_softmax
from onert_llvm.target.isa import runnable

from .natively import check, subgraph_of

pytestmark = pytest.mark.skipif(not runs(runnable()[-1]), reason="no target with tables in registers runs here")


Table = TabledSoftmax | NarrowSoftmax


def _chosen(kind: type[Table], signed: bool, scale: float, widths: Sequence[int]) -> list[Table]:
    """Check the results for rows of several widths; return the kernels that were chosen."""
    rng, (low, dtype) = np.random.default_rng(0), (-128, np.int8) if signed else (0, np.uint8)
    quantization, result = (Quantization((scale,), (low + 100,)),), (Quantization((1 / 256,), (low,)),)
    taken: list[Table] = []

    def kernel(*args: Any) -> Table:
        taken.append(kind(*args))
        return taken[-1]

    for width in widths:
        peaks = np.where(rng.random((3, width)) < 0.1, low + 255, low)
        for x in (rng.integers(low, low + 256, (5, width)), peaks, np.full((2, width), low + 9)):
            case = Case("", Softmax(), (x.astype(dtype),), quantization=quantization, result_quantization=result)
            with patch.object(integer_softmax, kind.__name__, kernel):
                check(subgraph_of(case), [x.astype(dtype)], runnable()[-1])
    return taken


@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize(("scale", "tables"), [(0.001, 4), (0.03, 4), (0.06, 2), (0.3, 1), (2.0, 1)])
def test_tabled_softmax_of_rows_of_any_width_is_exact(signed: bool, scale: float, tables: int) -> None:
    taken = _chosen(TabledSoftmax, signed, scale, (16, 64, 65, 130, 1000))
    assert {each.tables for each in taken} == {tables}


@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize("scale", [0.001, 0.03, 0.1, 2.0])
def test_softmax_of_rows_within_one_register_is_exact(signed: bool, scale: float) -> None:
    assert len(_chosen(NarrowSoftmax, signed, scale, (16, 21, 63, 64))) == 12
