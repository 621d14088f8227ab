"""ONNX's own test suite: exactly the listed cases pass natively and on the reference backend.

`onnx_passing.txt` lists them; `python tests/conformance/onnx_passing.py` writes it. A sample runs by default, in one
test, because each process that reads a case first computes the results of all. An unlisted case is refused with a
sentence or gives other results; once it passes it must be listed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from onnx_cases import BACKENDS, KINDS, cases, problem, read

from onert import OnertError
from onert.runtime.session import errors

LISTED = Path(__file__).with_name("onnx_passing.txt").read_text(encoding="ascii").split()
EVERY = {("reference",): 20, (): 20}
"""By default one case in this many runs on these backends; the long suite runs all."""
LEAST = {"node": 1750, "simple": 21, "pytorch-operator": 35, "pytorch-converted": 82}
"""The minimum number of passing cases of each kind."""
ERRORS = (
    *(
        f"{kind.__name__}: "
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, OnertError)
    ),
    "result ",
)
"""How the message of a refusal or a difference begins."""

pytestmark = pytest.mark.skipif(find_spec("onnx") is None, reason="the package onnx is not installed")


@pytest.mark.long
@pytest.mark.parametrize("backends", BACKENDS, ids=lambda backends: str(backends or "native"))
@pytest.mark.parametrize("case", LISTED)
def test_a_listed_case_gives_the_expected_results(case: str, backends: tuple[str, ...]) -> None:
    assert problem(read(*case.split("/")), *backends) is None


def test_a_sample_of_listed_cases_gives_the_expected_results(subtests: pytest.Subtests) -> None:
    for backends, every in EVERY.items():
        for case in LISTED[::every]:
            with subtests.test(f"{case} {backends or 'native'}"):
                assert problem(read(*case.split("/")), *backends) is None


@pytest.mark.parametrize("kind", KINDS)
def test_at_least_as_many_cases_are_listed_as_ever_passed(kind: str) -> None:
    listed = [case for case in LISTED if case.startswith(f"{kind}/")]
    assert len(listed) >= LEAST[kind]
    assert listed == sorted(set(listed))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_unlisted_case_is_refused_with_a_sentence_or_differs(kind: str) -> None:
    listed = set(LISTED)
    assert cases(kind)
    for name in sorted(cases(kind)):
        if f"{kind}/{name}" not in listed:
            found = [problem(read(kind, name), *backends) for backends in BACKENDS]
            assert any(found), f"{name} passes and is not listed"
            assert all(each is None or each.startswith(ERRORS) for each in found), f"{name}: {found}"
