"""Operations that look up, count, draw and decode refuse what their rules refuse; random ones go on."""

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
def test_one_thing_changed_gives_a_result_or_one_sentence(case: Case) -> None:
    check_mutants(case, Alone())


def test_random_numbers_go_on_from_run_to_run() -> None:
    case = next(c for c in lookup.CASES if c.name == "even numbers")
    context = Alone()
    first, second = check_case(case, context), check_case(case, context)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(check_case(case, Alone())[0], first[0])


def test_numbers_without_a_seed_differ_between_executions() -> None:
    case = next(c for c in lookup.CASES if c.name == "normal numbers")
    assert not np.array_equal(check_case(case, Alone())[0], check_case(case, Alone())[0])
