"""String operations: concatenation, splitting, normalisation and matching. Elements are bytes, interpreted as UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

_MOST_LETTERS = 4096
"""The maximum length of a regular expression."""


def text(element: object) -> str:
    """A string element as Python text. Raises RuleError if its bytes are not UTF-8."""
    if isinstance(element, str):
        return element
    try:
        return bytes(element).decode("utf-8") if isinstance(element, (bytes, bytearray)) else str(element)
    except UnicodeDecodeError as error:
        raise RuleError(f"a string is {element!r}, expected UTF-8") from error


def elements(found: list[str] | list[bytes], shape: tuple[int, ...]) -> Array:
    """An array of string elements."""
    out: Array = np.empty(len(found), object)
    out[:] = [each.encode() if isinstance(each, str) else each for each in found]
    return out.reshape(shape)


def _longest(rows: list[list[str]]) -> int:
    return max(map(len, rows), default=0)


def _filled(rows: list[list[str]], shape: tuple[int, ...], padding: str = "") -> Array:
    """Rows of texts as string elements [*shape, longest], padded with `padding`."""
    out = np.full((len(rows), _longest(rows)), padding.encode(), object)
    for place, row in zip(out, rows, strict=True):
        place[: len(row)] = [each.encode() for each in row]
    return out.reshape(*shape, out.shape[1])


def _require_strings(x: TensorType) -> None:
    require(x.dtype is DType.STRING, f"an operand is {x}, expected strings")


def _rounds(op: Op, types: CallTypes) -> int:
    return shapes.num_elements(types.input(0).shape) or 0


class OfWords(Op):
    """A function of an array of words, made from attributes; it takes time to make, so runs share it."""

    __slots__ = ()

    def function(self) -> Callable[[Array], Array]:
        """The function, made by each subclass."""
        raise NotImplementedError

    def evaluate(self, x: Array) -> Array:
        return self.function()(x)

    def prepare(self, x: Array | None) -> Callable[[Array], Array] | None:
        return self.function() if x is None else None


@frozen
class StringConcat(Op):
    """Concatenates strings element by element, `x` first; shapes broadcast. Source: ONNX StringConcat.

    - `x`, `y`: strings
    """

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        _require_strings(x)
        _require_strings(y)
        return x.result(shapes.broadcast([x.shape, y.shape]))

    def rounds(self, types: CallTypes) -> int:
        return shapes.num_elements(types.output.shape) or 0

    def evaluate(self, x: Array, y: Array) -> Array:
        a, b = np.broadcast_arrays(x, y)
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        return elements([_joined(p, q) for p, q in pairs], a.shape)


def _joined(p: Any, q: Any) -> bytes:
    if type(p) is bytes and type(q) is bytes and p.isascii() and q.isascii():
        return p + q  # in a third of the time
    return (text(p) + text(q)).encode()


@frozen
class StringSplit(Op):
    """Splits strings at a delimiter; returns the parts and their number.

    - `x`: strings

    An empty `delimiter` means runs of white space, ignored at both ends. `most` limits the number of splits. Results:
    strings [*shape, longest], padded with empty strings, and the number of parts as int64 of x's shape.
    Source: ONNX StringSplit.
    """

    finds: ClassVar[bool] = True

    delimiter: str = ""
    most: int | None = None

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        _require_strings(x)
        longest = None if x.value is None else _longest(self._parts(x.value))
        return x.result((*x.shape, longest)), TensorType(DType.INT64, x.shape)

    rounds = _rounds

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        parts = self._parts(x)
        return _filled(parts, x.shape), np.array([len(p) for p in parts], np.int64).reshape(x.shape)

    def _parts(self, x: Array) -> list[list[str]]:
        most = -1 if self.most is None else self.most
        return [text(s).split(self.delimiter or None, most) if text(s) else [] for s in x.flat]


class Letters(Enum):
    """How the case of letters is changed."""

    AS_THEY_ARE = "none"
    LOWER = "lower"
    UPPER = "upper"


_CASES: dict[Letters, Callable[[str], str]] = {
    Letters.AS_THEY_ARE: lambda s: s,
    Letters.LOWER: str.lower,
    Letters.UPPER: str.upper,
}


@frozen
class StringNormalize(OfWords):
    """Removes stop words from a row of strings and changes the case of the rest.

    - `x`: strings [n] or [1, n]

    `stopwords` are compared ignoring case unless `case_sensitive`. If nothing is left, the result is one empty string.
    Source: ONNX StringNormalizer.
    """

    finds: ClassVar[bool] = True

    letters: Letters = Letters.AS_THEY_ARE
    stopwords: tuple[str, ...] = ()
    case_sensitive: bool = False

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        require(x.rank == 1 or (x.rank == 2 and x.shape[0] in (1, None)), f"x is {x}, expected [n] or [1, n]")
        return x.result((*x.shape[:-1], None if x.value is None else self.evaluate(x.value).shape[-1]))

    rounds = _rounds

    def function(self) -> Callable[[Array], Array]:
        fold: Callable[[str], str] = (lambda s: s) if self.case_sensitive else str.lower
        gone = {fold(word) for word in self.stopwords}
        change = _CASES[self.letters]

        def evaluate(x: Array) -> Array:
            words = map(text, x.reshape(-1).tolist())
            kept = [change(s) for s in words if fold(s) not in gone] if gone else list(map(change, words))
            kept = kept or [""]
            return elements(kept, (*x.shape[:-1], len(kept)))

        return evaluate


@frozen
class RegexFullMatch(OfWords):
    """Whether a regular expression matches the whole of each string. Source: ONNX RegexFullMatch.

    - `x`: strings

    Requires RE2, whose run time is linear in the string for any pattern; Python's `re` may take exponential time.
    """

    pattern: str

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        long = len(self.pattern)
        require(long <= _MOST_LETTERS, f"the pattern has {long} letters, expected at most {_MOST_LETTERS}")
        return TensorType(DType.BOOL, x.shape)

    rounds = _rounds

    def function(self) -> Callable[[Array], Array]:
        match = _compiled(self.pattern).fullmatch

        def evaluate(x: Array) -> Array:
            found = [match(text(s)) is not None for s in x.reshape(-1).tolist()]
            return np.array(found, np.bool_).reshape(x.shape)

        return evaluate


def _compiled(pattern: str, longest: bool = False) -> Any:
    """A compiled RE2 pattern; with `longest` it prefers the longest of the leftmost matches."""
    try:
        import re2  # noqa: PLC0415 # optional
    except ImportError as error:
        raise RuleError("a regular expression is to be matched, which requires RE2: pip install google-re2") from error
    options = re2.Options()
    options.log_errors = False
    options.longest_match = longest
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise RuleError(f"the pattern {pattern!r} is invalid: {reason.decode(errors='replace')}") from error


_STARTS, _ENDS = "\x02", "\x03"
"""The markers of the first and the last token."""


@frozen
class Tokenize(OfWords):
    """Splits strings into tokens along a new last axis, padded with `padding`.

    - `x`: strings [n] or [m, n]

    Tokens are the text between matches of `separators`, applied one pattern after the other; without these, the matches
    of `expression`; without either, single characters. The longest match is used; splitting stops at an empty match of
    a separator. Tokens of fewer than `least` characters are dropped. With `mark` rows begin with U+0002 and end with
    U+0003, unless no row has a token. Patterns are those of RE2. Source: ONNX Runtime's Tokenizer.
    """

    finds: ClassVar[bool] = True

    separators: tuple[str, ...] = ()
    expression: str = ""
    least: int = 1
    mark: bool = False
    padding: str = ""

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        require(x.rank in (1, 2), f"x is {x}, expected 1 or 2 dimensions")
        require(self.least > 0, f"tokens have at least {self.least} characters, expected a positive number")
        long = max(map(len, (self.expression, *self.separators)))
        require(long <= _MOST_LETTERS, f"a pattern has {long} letters, expected at most {_MOST_LETTERS}")
        return x.result((*x.shape, None if x.value is None else _longest(self._rows(x.value, self._patterns()))))

    rounds = _rounds

    def function(self) -> Callable[[Array], Array]:
        patterns = self._patterns()
        return lambda x: _filled(self._rows(x, patterns), x.shape, self.padding)

    def _patterns(self) -> list[Any]:
        return [_compiled(p, longest=True) for p in self.separators or (self.expression,)]

    def _rows(self, x: Array, patterns: list[Any]) -> list[list[str]]:
        rows = [self._tokens(text(s), patterns) for s in x.flat]
        marked = self.mark and any(rows)
        return [[_STARTS, *row, _ENDS] for row in rows] if marked else rows

    def _tokens(self, whole: str, patterns: list[Any]) -> list[str]:
        found = [whole]
        if self.separators:
            for pattern in patterns:
                found = [part for each in found for part in _between(pattern, each)]
        elif self.expression:
            found = [match.group(0) for match in patterns[0].finditer(whole)]
        else:
            found = list(whole)
        return [each for each in found if len(each) >= self.least]


def _between(pattern: Any, whole: str) -> list[str]:
    """The text between the matches of a pattern, up to an empty match."""
    found, at = [], 0
    for match in pattern.finditer(whole):
        found.append(whole[at : match.start()])
        at = match.end()
        if match.start() == at:
            return found
    return [*found, whole[at:]]
