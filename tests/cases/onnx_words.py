"""Cases of ONNX's operations on strings, n-grams, tables and trees; results by hand."""

from __future__ import annotations

import numpy as np

from onert.ir import Array, DType
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.lookup.murmur import MurmurHash3
from onert.ir.ops.lookup.ngrams import CountGroups, Weighting
from onert.ir.ops.lookup.spelling import ReadNumbers, SpellNumbers
from onert.ir.ops.lookup.strings import Letters, RegexFullMatch, StringConcat, StringNormalize, StringSplit, Tokenize
from onert.ir.ops.lookup.table_of_values import LookUp
from onert.ir.ops.lookup.trees import Aggregation, TreeEnsemble

from .case import Case


def _texts(*texts: bytes) -> Array:
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


def _grid(*rows: tuple[bytes, ...]) -> Array:
    return _texts(*(each for row in rows for each in row)).reshape(len(rows), -1)


_WORDS = np.int64([1, 2, 3, 1, 2])
_POOL = (1, 2, 3, 1, 2, 1, 3)
_TREE = (
    np.int64([0, 1]),  # features
    np.int64([0, 3]),  # tests: <=, >
    np.int64([0, 1]),  # the branches for NaN
    np.float32([0.5, 2]),
    np.int64([-1, -2]),
    np.int64([1, -3]),
    np.int64([0, 1]),
    np.int64([0, 1, 3, 4]),
    np.int64([0, 0, 1, 1]),
    np.float32([1, 10, 20, 100]),
)
_TABLE = np.float32([[0, 0], [1, 3], [1, 0], [np.nan, np.nan]])


def _groups(weighting: Weighting, shortest: int, longest: int, skips: int) -> CountGroups:
    return CountGroups(weighting, shortest, longest, skips, (0, 3), (0, 1, 2, 3, 4), _POOL, (1, 2, 3, 4, 5))


def _votes(name: str, how: Aggregation, x: Array, wanted: list[list[float]]) -> Case:
    return Case(name, TreeEnsemble(2, how), (x, *_TREE), (np.float32(wanted),), constant=tuple(range(1, 11)))


CASES: list[Case] = [
    Case(
        "hashes of texts of several lengths",
        MurmurHash3(),
        (_texts(b"", b"a", b"hello", b"hello, world", "grün".encode()),),
        (np.uint32([0, 1009084850, 613153351, 345750399, 720732358]),),
    ),
    Case(
        "signed hashes of numbers with a seed",
        MurmurHash3(42, signed=True),
        (np.int64([[0, -1], [1 << 40, 7]]),),
        (np.int32([[-1670924195, -939490007], [-1596767687, 1293116811]]),),
    ),
    Case(
        "floats written with eight digits",
        SpellNumbers(),
        (np.float32([[0, -0.0, 1.5, 1 / 3], [1e10, np.nan, np.inf, -np.inf]]),),
        (_grid((b"0", b"-0", b"1.5", b"0.33333334"), (b"1e+10", b"NaN", b"INF", b"-INF")),),
    ),
    Case("integers written", SpellNumbers(), (np.int64([-5, 1 << 62]),), (_texts(b"-5", b"4611686018427387904"),)),
    Case("booleans written", SpellNumbers(), (np.array([True, False]),), (_texts(b"1", b"0"),)),
    Case(
        "floats read",
        ReadNumbers(DType.FLOAT32),
        (_texts(b" 1.5x", b"-1e5", b"0x10", b"Infinity", b"-.5", b"1_0"),),
        (np.float32([1.5, -1e5, 16, np.inf, -0.5, 1]),),
    ),
    Case(
        "integers read, which wrap",
        ReadNumbers(DType.UINT8),
        (_texts(b"300", b"-7", b"1.9"),),
        (np.uint8([44, 249, 1]),),
    ),
    Case("booleans read", ReadNumbers(DType.BOOL), (_texts(b"2", b"0"),), (np.array([True, False]),)),
    Case(
        "words behind words",
        StringConcat(),
        (_grid((b"a",), (b"b",)), _texts(b"1", "ü".encode())),
        (_grid((b"a1", "aü".encode()), (b"b1", "bü".encode())),),
    ),
    Case(
        "parts at a delimiter",
        StringSplit(","),
        (_texts(b"a,b", b",c,,d", b""),),
        (_grid((b"a", b"b", b"", b""), (b"", b"c", b"", b"d"), (b"", b"", b"", b"")), np.int64([2, 4, 0])),
    ),
    Case(
        "words apart, two cuts at most",
        StringSplit("", 2),
        (_texts(b"  a b  c d", b"e"),),
        (_grid((b"a", b"b", b"c d"), (b"e", b"", b"")), np.int64([3, 1])),
    ),
    Case(
        "words that go whatever their case",
        StringNormalize(Letters.UPPER, ("monday",)),
        (_grid((b"Monday", "grün".encode(), b"MONDAY")),),
        (_grid(("GRÜN".encode(),)),),
    ),
    Case(
        "nothing is left",
        StringNormalize(stopwords=("a",), case_sensitive=True),
        (_texts(b"a", b"a"),),
        (_texts(b""),),
    ),
    Case(
        "numbers and no others",
        RegexFullMatch("[0-9]+(\\.[0-9]*)?"),
        (_texts(b"12", b"1.5", b"1.5a", b""),),
        (np.array([True, True, False, False]),),
    ),
    Case(
        "counts of words and of pairs",
        _groups(Weighting.TF, 1, 2, 0),
        (_WORDS,),
        (np.float32([2, 2, 1, 2, 0]),),
    ),
    Case(
        "pairs with a word between them, weighted",
        _groups(Weighting.TFIDF, 2, 2, 1),
        (_WORDS,),
        (np.float32([0, 0, 0, 8, 5]),),
    ),
    Case(
        "whether words are there, in rows",
        _groups(Weighting.IDF, 1, 1, 0),
        (np.int64([[1, 1], [3, 4]]),),
        (np.float32([[1, 0, 0, 0, 0], [0, 0, 3, 0, 0]]),),
    ),
    Case(
        "different elements, sorted",
        UniqueSlices(),
        (np.float32([[2, 1], [1, 3]]),),
        (np.float32([1, 2, 3]), np.int64([1, 0, 3]), np.int64([1, 0, 0, 2]), np.int64([2, 1, 1])),
    ),
    Case(
        "different columns, as they come",
        UniqueSlices(1, sorted=False),
        (np.int32([[5, 1, 5], [2, 2, 2]]),),
        (np.int32([[5, 1], [2, 2]]), np.int64([0, 1]), np.int64([0, 1, 0]), np.int64([2, 1])),
    ),
    Case(
        "tokens between separators, of two letters and more",
        Tokenize((" +", "bb|b"), least=2, mark=True, padding="#"),
        (_texts(b"to be", b" or not", b"b"),),
        (_grid((b"\x02", b"to", b"\x03", b"#"), (b"\x02", b"or", b"not", b"\x03"), (b"\x02", b"\x03", b"#", b"#")),),
    ),
    Case(
        "the longest matches are tokens",
        Tokenize(expression="b|bb"),
        (_texts(b"abbb", b""),),
        (_grid((b"bb", b"b"), (b"", b"")),),
    ),
    Case("characters", Tokenize(), (_texts("äb".encode()),), (_grid(("ä".encode(), b"b")),)),
    Case(
        "words as numbers",
        LookUp(),
        (_grid((b"a", b"c"), (b"b", b"a")), _texts(b"a", b"b", b"a"), np.int64([1, 2, 3]), np.int64(-1)),
        (np.int64([[3, -1], [2, 3]]),),
        constant=(1, 2, 3),
    ),
    Case(
        "what is no number is a key",
        LookUp(),
        (np.float32([1, np.nan]), np.float32([np.nan]), np.float32([5]), np.float32([0])),
        (np.float32([0, 5]),),
        constant=(1, 2, 3),
    ),
    Case(
        "numbers by their place in a table",
        LookUp(),
        (np.int64([3, 7, -1]), np.int64([7, 3]), np.int32([1, 2]), np.int32([0])),
        (np.int32([2, 1, 0]),),
        constant=(1, 2, 3),
    ),
    # the first tree: the first leaf, or the second node's test; the second tree: only that test
    _votes("two trees that share a branch", Aggregation.SUM, _TABLE, [[1, 100], [20, 40], [0, 200], [20, 40]]),
    _votes("the largest vote", Aggregation.MAX, _TABLE, [[1, 100], [10, 20], [0, 100], [10, 20]]),
    _votes(
        "the mean of the trees, of integers", Aggregation.AVERAGE, np.int64([[0, 0], [1, 3]]), [[0.5, 50], [10, 20]]
    ),
]
