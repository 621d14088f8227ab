"""Lookup, counting, random and decoding operations reject rule violations; random sequences continue across runs."""

from __future__ import annotations

import numpy as np
import pytest
from cases import decoder, hlo, landmarks, lookup, onnx
from cases.case import Case
from mutants import check_mutants
from verdict import Alone, check_case

CASES = [*lookup.CASES, *decoder.CASES, *hlo.CASES, *landmarks.CASES, *onnx.CASES]


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_mutated_lookup_cases_give_a_result_or_a_one_line_error(case: Case) -> None:
    check_mutants(case, Alone())


def test_random_sequences_continue_from_run_to_run() -> None:
    case = next(c for c in lookup.CASES if c.name == "even numbers")
    context = Alone()
    first, second = check_case(case, context), check_case(case, context)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(check_case(case, Alone())[0], first[0])


def test_unseeded_random_numbers_differ_between_executions() -> None:
    case = next(c for c in lookup.CASES if c.name == "normal numbers")
    assert not np.array_equal(check_case(case, Alone())[0], check_case(case, Alone())[0])
