"""Random sequences continue across runs."""

from __future__ import annotations

import numpy as np
from cases import lookup
from verdict import check_case

from onert.backend.alone import Alone


def test_random_sequences_continue_from_run_to_run() -> None:
    case = next(c for c in lookup.CASES if c.name == "even numbers")
    context = Alone()
    first, second = check_case(case, context), check_case(case, context)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(check_case(case, Alone())[0], first[0])


def test_unseeded_random_numbers_differ_between_executions() -> None:
    case = next(c for c in lookup.CASES if c.name == "normal numbers")
    assert not np.array_equal(check_case(case, Alone())[0], check_case(case, Alone())[0])
