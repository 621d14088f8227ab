"""Skip-grams of a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Op, require
from onert.ir.types import TensorType

MAX_GRAMS = 1 << 20
"""Guards against malicious attributes: the number of groups grows with a power of the sentence's length."""


@frozen
class SkipGram(Op):
    """All groups of `size` words of a sentence, in order, with at most `skip` words skipped between adjacent ones.

    - `sentence`: one string; words are separated by white space

    With `shorter`, groups of fewer words are included. The words of a group are joined by one space. The result is a
    vector of strings, which is empty if the sentence has fewer than `size` words.
    """

    size: int = 1
    skip: int = 0
    shorter: bool = False

    def infer(self, sentence: TensorType) -> TensorType:
        require(sentence.dtype is DType.STRING, f"the sentence is {sentence.dtype.text}, expected a string")
        count = shapes.num_elements(sentence.shape)
        require(count in (1, None), f"there are {count} sentences, expected 1")
        require(self.size >= 1, f"ngram_size is {self.size}, expected at least 1")
        require(self.skip >= 0, f"max_skip_size is {self.skip}, expected at least 0")
        if sentence.value is None:
            return TensorType(DType.STRING, (None,))
        return TensorType(DType.STRING, (len(self._grams(sentence.value)),))

    def evaluate(self, sentence: Array) -> Array:
        return np.array(self._grams(sentence), object)

    def _grams(self, sentence: Array) -> list[bytes]:
        words = bytes(sentence.reshape(-1)[0]).split()
        if len(words) < self.size:
            return []
        found = []
        for gram in self._groups(len(words)):
            found.append(b" ".join(words[i] for i in gram))
            if len(found) > MAX_GRAMS:
                raise RuleError(f"the sentence has more than {MAX_GRAMS} groups of words")
        return found

    def _groups(self, count: int) -> Iterator[list[int]]:
        """The word numbers of each group; a group comes after the longer groups that begin with it."""
        group: list[int] = []
        choices = [self._next(count, 0, 0)]
        while choices:
            word = next(choices[-1], None)
            if word is None:
                choices.pop()
                if group and self.shorter:
                    yield group
            else:
                group.append(word)
                if len(group) < self.size:
                    choices.append(self._next(count, word + 1, len(group), word + self.skip + 2))
                    continue
                yield group
            if group:
                group.pop()

    def _next(self, count: int, first: int, chosen: int, end: int | None = None) -> Iterator[int]:
        """Candidates for the next word: those followed by enough other words, unless shorter groups are included."""
        last = count if self.shorter else count - (self.size - chosen - 1)
        return iter(range(first, last if end is None else min(last, end)))
