"""Groups of words are counted alike in few words, row by row, and in many, all at once."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import RuleError
from onert.ir.ops.lookup.ngrams import CountGroups, Weighting

NUMBERS = (3, 1, 0, 1, 1, 1, 5, 2, 1, 0, 2, 2, 2, 0)  # two of one, three of two, and two of three
TEXTS = tuple(f"ü{number}" for number in NUMBERS)


@pytest.mark.parametrize("weighting", Weighting)
@pytest.mark.parametrize(("shortest", "longest", "skips"), [(1, 1, 0), (1, 3, 0), (2, 2, 3), (2, 3, 1), (3, 3, 2)])
@pytest.mark.parametrize("strings", [False, True])
def test_counts_in_many_words_equal_those_of_each_row(
    weighting: Weighting, shortest: int, longest: int, skips: int, strings: bool
) -> None:
    pool = TEXTS if strings else NUMBERS
    op = CountGroups(weighting, shortest, longest, skips, (0, 2, 8), (4, 0, 1, 6, 2, 7, 3), pool, (1, 2, 3, 4, 5, 6, 7))
    words = np.random.default_rng(0).integers(0, 7, (40, 9))
    if strings:
        words = np.array([f"ü{word}".encode() for word in words.reshape(-1)], object).reshape(words.shape)
    found = op.evaluate(words)
    assert found.any()
    np.testing.assert_array_equal(found, np.stack([op.evaluate(row) for row in words]))


def test_a_group_may_hold_no_word_of_the_given_type() -> None:
    op = CountGroups(Weighting.TF, 1, 1, 0, (0,), (0,), ("a",))
    assert not op.evaluate(np.arange(100)).any()


def test_one_of_many_words_that_is_not_utf_8_is_refused() -> None:
    words = np.array([b"a"] * 99 + [b"\xff"], object)
    with pytest.raises(RuleError, match="expected UTF-8"):
        CountGroups(Weighting.TF, 1, 1, 0, (0,), (0,), ("a",)).evaluate(words)
