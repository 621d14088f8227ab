"""Strings are matched and split in linear time and memory, whatever the pattern."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from onert.ir import CallTypes, Constant, DType, TensorType, evaluate, infer
from onert.ir.errors import RuleError
from onert.ir.ops.lookup.strings import RegexFullMatch, StringSplit, Tokenize


def _matches(pattern: str, *words: bytes) -> list[bool]:
    types = CallTypes((TensorType(DType.STRING, (len(words),)),), (TensorType(DType.BOOL, (len(words),)),))
    given = np.empty(len(words), object)
    given[:] = words
    (found,) = evaluate(RegexFullMatch(pattern), [given], types)
    return [bool(each) for each in found]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)*x", "(a|aa)+$"])
def test_patterns_that_make_other_engines_backtrack_terminate(pattern: str) -> None:
    assert _matches(pattern, b"a" * 50_000 + b"c") == [False]


def test_a_pattern_must_match_the_whole_string() -> None:
    assert _matches(r"[0-9]+", b"12", b"12a", b"") == [True, False, False]


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "((a{1000}){1000}){1000}", "("])
def test_patterns_that_re2_does_not_support_are_rejected_with_one_sentence(pattern: str) -> None:
    with pytest.raises(RuleError, match="pattern") as raised:
        _matches(pattern, b"a")
    assert "\n" not in str(raised.value)


def test_a_long_pattern_is_rejected_before_the_run() -> None:
    with pytest.raises(RuleError, match="the pattern has 5000 letters, expected at most 4096"):
        RegexFullMatch("a" * 5000).infer(TensorType(DType.STRING, (1,)))


@pytest.mark.parametrize("op", [Tokenize((" ",)), StringSplit(" ")])
def test_inference_of_split_strings_does_not_materialise_long_padded_rows(op: Tokenize | StringSplit) -> None:
    words = np.full(1 << 15, b"a", object)
    words[7] = b"a " * (1 << 15)
    tracemalloc.start()
    try:
        results = infer(op, (TensorType(DType.STRING, words.shape, data=Constant(words)),))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert results is not None
    assert (results[0].shape[1] or 0) >= 1 << 15
