"""Whatever a file says, an operation that computes gives a result or one sentence: cases with one thing changed."""

from __future__ import annotations

import pytest
from cases import conv, matmul, norm, pool, reduce, transpose_conv
from cases.case import Case
from mutants import check_mutants

CASES = [case for module in (conv, matmul, norm, pool, reduce, transpose_conv) for case in module.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_one_thing_changed_gives_a_result_or_one_sentence(case: Case) -> None:
    check_mutants(case)
