"""Counts of word n-grams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from itertools import repeat
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import require
from onert.ir.types import CallTypes, TensorType

from .strings import OfWords, text


class Weighting(Enum):
    """How the count of a group is weighted."""

    TF = "the count"
    IDF = "the group's weight if it occurs"
    TFIDF = "the count times the group's weight"


@frozen
class CountGroups(OfWords):
    """Counts how often listed groups of words (n-grams) occur in rows of words, also with words skipped between them.

    - `x`: integers or strings [n] or [rows, n]

    `pool` lists all groups, one after the other, first those of one word, then of two, and so on; `starts` is where the
    groups of each size begin in it; `columns` is the column of the result in which each group is counted. Groups of
    `shortest` to `longest` words are counted, with 0 to `skips` words between adjacent ones. Result: float32 [columns]
    or [rows, columns]. Source: ONNX TfIdfVectorizer.
    """

    weighting: Weighting
    shortest: int
    longest: int
    skips: int
    starts: tuple[int, ...]
    columns: tuple[int, ...]
    pool: tuple[int | str, ...] = field(repr=False)
    weights: tuple[float, ...] = ()

    def infer(self, x: TensorType) -> TensorType:
        words = x.dtype in (DType.INT32, DType.INT64, DType.STRING) and x.rank in (1, 2)
        require(words, f"x is {x}, expected words of 1 or 2 dimensions")
        require(1 <= self.shortest <= self.longest, f"groups have {self.shortest} to {self.longest} words")
        require(0 <= self.skips <= 1 << 16, f"{self.skips} words are skipped, expected 0 to {1 << 16}")
        inside = all(0 <= c < 1 << 24 for c in self.columns) and len(self.columns) == len(self._groups())
        require(inside, f"there are {len(self.columns)} columns for {len(self._groups())} groups")
        require(not self.weights or len(self.weights) == len(self.columns), f"there are {len(self.weights)} weights")
        return TensorType(DType.FLOAT32, (*x.shape[:-1], max(self.columns, default=-1) + 1))

    def _groups(self) -> list[tuple[int | str, ...]]:
        found: list[tuple[int | str, ...]] = []
        for size, start in enumerate(self.starts, 1):
            stop = self.starts[size] if size < len(self.starts) else len(self.pool)
            require(
                0 <= start <= stop <= len(self.pool), f"the groups begin at {self.starts} of {len(self.pool)} words"
            )
            found += [tuple(self.pool[at : at + size]) for at in range(start, stop - size + 1, size)]
        return found

    def rounds(self, types: CallTypes) -> int:
        return (shapes.num_elements(types.input(0).shape) or 0) * self.longest * (self.skips + 1)

    def function(self) -> Callable[[Array], Array]:
        groups = self._groups()
        columns = dict(zip(groups, self.columns, strict=True))  # of equal groups the last counts
        table = _Table(columns)
        single = {group[0]: column for group, column in columns.items() if len(group) == 1}
        width = max(self.columns, default=-1) + 1
        weights = np.ones(width, np.float32)
        if self.weights and self.weighting is not Weighting.TF:
            weights[list(self.columns)] = self.weights

        def counted(words: list[Any]) -> list[int]:
            """The columns of the groups in a row, one for each time that a group occurs."""
            found: list[int | None] = []
            for size in range(self.shortest, self.longest + 1):
                if size == 1:
                    found += map(single.get, words)
                    continue
                for gap in range(1, self.skips + 2):
                    found += map(columns.get, zip(*(words[at * gap :] for at in range(size)), strict=False))
            return [column for column in found if column is not None]

        def evaluate(x: Array) -> Array:
            rows = x.reshape(1, -1) if x.ndim == 1 else x
            counts = np.zeros((len(rows), width), np.float32)
            if x.size > _MANY_WORDS:
                self._count(rows, table, counts)
            else:
                for row, out in zip(rows.tolist(), counts, strict=True):
                    np.add.at(out, counted(list(map(text, row)) if x.dtype.hasobject else row), 1)
            found = counts if self.weighting is not Weighting.IDF else (counts > 0).astype(np.float32)
            return (found * weights).reshape(*x.shape[:-1], width)

        return evaluate

    def _count(self, rows: Array, table: _Table, counts: Array) -> None:
        """Add the counts of all groups at once, which takes longer for few words."""
        words, (_, length) = table.numbers(rows.reshape(-1)), rows.shape
        totals, width = counts.reshape(-1), counts.shape[1]
        for gap in range(1, self.skips + 2):
            at, place = np.arange(len(words)), np.zeros(len(words), np.int64)
            for size, level in enumerate(table.levels[: self.longest], 1):
                ahead = (size - 1) * gap
                if ahead:
                    inside = at % length + ahead < length
                    at, place = at[inside], place[inside]
                known, place = level.found(place, words[at + ahead], table.count)
                at, place = at[known], place[known]
                if size >= self.shortest and (size > 1 or gap == 1):
                    columns = level.columns[place]
                    np.add.at(totals, (at // length * width + columns)[columns >= 0], 1)


_MANY_WORDS = 64


@frozen(eq=False)
class _Level:
    """The beginnings of groups with one number of words, in the order of their codes: the place of the beginning with a
    word less, times the number of words, plus the last word. `columns` are -1 for those that are not groups."""

    codes: Array
    columns: Array

    def found(self, before: Array, words: Array, count: int) -> tuple[Array, Array]:
        """Whether beginnings followed by words are beginnings of groups, and the places of those."""
        codes = before * count + words
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return (words >= 0) & (self.codes[places] == codes), places


class _Table:
    """All groups by word: their words are numbered, and so are the beginnings of groups."""

    def __init__(self, columns: Mapping[tuple[int | str, ...], int]) -> None:
        words = sorted({word for group in columns for word in group}, key=lambda word: (isinstance(word, str), word))
        self.count = len(words)
        self._numbers: dict[Any, int] = {word: number for number, word in enumerate(words)}
        numbered = {tuple(self._numbers[word] for word in group): column for group, column in columns.items()}
        self._numbers |= {word.encode(): number for word, number in self._numbers.items() if isinstance(word, str)}
        self._integers = np.array([word for word in words if isinstance(word, int)], np.int64)
        self.levels: list[_Level] = []
        before: dict[tuple[int, ...], int] = {(): 0}
        for size in range(1, max(map(len, numbered), default=0) + 1):
            beginnings = sorted({group[:size] for group in numbered if len(group) >= size})
            codes = [before[each[:-1]] * self.count + each[-1] for each in beginnings]
            found = [numbered.get(each, -1) for each in beginnings]
            self.levels.append(_Level(np.array(codes, np.int64), np.array(found, np.int64)))
            before = {each: place for place, each in enumerate(beginnings)}

    def numbers(self, words: Array) -> Array:
        """The numbers of words, -1 for those in no group. Raises RuleError for strings that are not UTF-8."""
        if not words.dtype.hasobject:
            if not len(self._integers):
                return np.full(len(words), -1)
            places = np.minimum(np.searchsorted(self._integers, words), len(self._integers) - 1)
            return np.where(self._integers[places] == words, places, -1)
        given = [word if isinstance(word, (bytes, str)) else text(word) for word in words.tolist()]
        found = list(map(self._numbers.get, given, repeat(-1)))
        for word in {word for word, number in zip(given, found, strict=True) if number < 0}:
            text(word)
        return np.array(found, np.int64)
