"""Operations give a result or a one-line error for any file: cases with one mutation."""

from __future__ import annotations

import pytest
from cases import audio, conv, decoder, hlo, landmarks, lookup, lstm, matmul, norm, onnx, pool, recurrent, reduce
from cases import transpose_conv as transposed
from cases.case import Case
from mutants import check_mutants

from onert.backend.alone import Alone

RECURRENT = (audio, lstm, recurrent)
OTHERS = (conv, decoder, hlo, landmarks, lookup, matmul, norm, onnx, pool, reduce, transposed)
CASES = [(case, 60 if module in RECURRENT else 25) for module in (*RECURRENT, *OTHERS) for case in module.CASES]


@pytest.mark.parametrize(("case", "rounds"), CASES, ids=lambda each: each if isinstance(each, int) else each.name)
def test_mutated_cases_give_a_result_or_a_one_line_error(case: Case, rounds: int) -> None:
    check_mutants(case, Alone(), rounds)
