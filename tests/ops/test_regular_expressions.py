"""Regular expressions of models are matched in time that grows with the string, whatever the pattern."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import CallTypes, DType, TensorType, evaluate
from onert.ir.errors import RuleError
from onert.ir.ops.lookup.strings import RegexFullMatch


def _matches(pattern: str, *words: bytes) -> list[bool]:
    types = CallTypes((TensorType(DType.STRING, (len(words),)),), (TensorType(DType.BOOL, (len(words),)),))
    given = np.empty(len(words), object)
    given[:] = words
    (found,) = evaluate(RegexFullMatch(pattern), [given], types)
    return [bool(each) for each in found]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)*x", "(a|aa)+$"])
def test_patterns_that_others_backtrack_in_end(pattern: str) -> None:
    assert _matches(pattern, b"a" * 50_000 + b"c") == [False]


def test_a_pattern_is_that_of_the_whole_string() -> None:
    assert _matches(r"[0-9]+", b"12", b"12a", b"") == [True, False, False]


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "((a{1000}){1000}){1000}", "("])
def test_what_re2_does_not_match_is_refused_in_one_sentence(pattern: str) -> None:
    with pytest.raises(RuleError, match="pattern") as raised:
        _matches(pattern, b"a")
    assert "\n" not in str(raised.value)


def test_a_long_pattern_is_refused_before_the_run() -> None:
    with pytest.raises(RuleError, match="the pattern has 5000 letters, expected at most 4096"):
        RegexFullMatch("a" * 5000).infer(TensorType(DType.STRING, (1,)))
