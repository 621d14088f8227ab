"""Operations that look up, count, gather and draw give what their cases say, and refuse what their rules refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cases import lookup
from cases.case import Case
from mutants import check_mutants
from verdict import check_case, check_inference

from onert.ir import Array, ExecutionError


class Alone:
    """The state of an execution without subgraphs."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.max_iterations: int | None = None

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise ExecutionError(f"there is no subgraph {subgraph}")


def _name(case: Case) -> str:
    return f"{case.op.label}: {case.name}"


@pytest.mark.parametrize("case", lookup.CASES, ids=_name)
def test_elements_are_those_of_the_case(case: Case) -> None:
    check_case(case, Alone())


@pytest.mark.parametrize("case", lookup.CASES, ids=_name)
def test_nothing_is_inferred_that_the_run_contradicts(case: Case) -> None:
    check_inference(case, Alone())


@pytest.mark.parametrize("case", lookup.CASES, ids=_name)
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
