"""ONNX's own test suite: the cases that are known to pass still do, and all others are refused with a sentence.

`onnx_passing.txt` lists the former; `python tests/conformance/onnx_passing.py` writes it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from onnx_cases import KINDS, cases, problem, read

LISTED = Path(__file__).with_name("onnx_passing.txt").read_text(encoding="ascii").split()
EVERY = 12
"""Of node cases one in so many runs by default, and all of the others."""
ERRORS = ("ModelError: ", "CompileError: ", "ExecutionError: ", "result ")

pytestmark = pytest.mark.skipif(find_spec("onnx") is None, reason="the package onnx is not installed")


def _parameters() -> list[object]:
    found = []
    for at, case in enumerate(LISTED):
        often = at % EVERY == 0 or case.startswith(("simple/", "pytorch-operator/"))
        found.append(pytest.param(*case.split("/"), id=case, marks=() if often else pytest.mark.long))
    return found


@pytest.mark.parametrize(("kind", "name"), _parameters())
def test_a_case_gives_what_the_suite_expects(kind: str, name: str) -> None:
    assert problem(read(kind, name), "reference") is None


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_other_case_is_refused_with_a_sentence(kind: str) -> None:
    listed = set(LISTED)
    for name in sorted(cases(kind)):
        if f"{kind}/{name}" not in listed:
            found = problem(read(kind, name), "reference")
            assert found is None or found.startswith(ERRORS), f"{name}: {found}"
