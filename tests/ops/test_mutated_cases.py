"""Arithmetic operations give a result or a one-line error for any file: cases with one mutation."""

from __future__ import annotations

import pytest
from cases import conv, matmul, norm, pool, reduce, transpose_conv
from cases.case import Case
from mutants import check_mutants

CASES = [case for module in (conv, matmul, norm, pool, reduce, transpose_conv) for case in module.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_mutated_cases_give_a_result_or_a_one_line_error(case: Case) -> None:
    check_mutants(case)
