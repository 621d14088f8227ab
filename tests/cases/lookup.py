"""Cases of segments, diagonals, sparse tensors, buckets, hashes, n-grams and random numbers."""

from __future__ import annotations

import numpy as np

from onert.ir import Array, DType, Quantization
from onert.ir.ops.data_movement.dense import Bucketize, Combiner, Dilate, EmbeddingLookupSparse, SparseToDense
from onert.ir.ops.data_movement.diagonal import MatrixDiag, MatrixSetDiag
from onert.ir.ops.data_movement.random_numbers import Distribution, Multinomial, MultinomialFrom, Random, RandomFrom
from onert.ir.ops.lookup.hash_tables import HashTable, HashTableImport
from onert.ir.ops.lookup.projection import LshProjection
from onert.ir.ops.lookup.skip_gram import SkipGram
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.segment import ReduceRanges, SegmentReduction, SegmentSum, UnsortedSegment

from .case import Case


def _texts(*texts: bytes) -> Array:
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


def _handle(*value: object) -> Array:
    out = np.empty(1, object)
    out[0] = value
    return out


_ROWS = np.int32([[1, 2], [3, 4], [5, 6], [7, 8]])
_HALF = Quantization((0.5,), (0,))

_SPARSE = (
    np.int32([1, 0, 2]),
    np.int32([[0, 0], [0, 3], [2, 1]]),
    np.int32([3, 4]),
    np.float32([2, 4, 3]),
    np.float32([[1, 2], [3, 4], [5, 6]]),
)

_STATE = np.uint64([5, 0, 7])
CASES = [
    Case("runs", SegmentSum(), (_ROWS, np.int32([0, 0, 1, 2])), (np.int32([[4, 6], [5, 6], [7, 8]]),), constant=(1,)),
    Case("no rows", SegmentSum(), (np.zeros((0, 2), np.float32), np.int32([])), (np.zeros((0, 2), np.float32),)),
    Case(
        "sums of ranges, also beyond the ends",
        ReduceRanges(Reduction.SUM),
        (_ROWS.astype(np.float32), np.int64([0, -3, 2, 3]), np.int64([2, -1, 2, 9])),
        (np.float32([[4, 6], [8, 10], [0, 0], [7, 8]]),),
    ),
    Case(
        "means of ranges",
        ReduceRanges(Reduction.MEAN),
        (np.float32([1, 2, 6]), np.int32([0, 1, 2]), np.int32([3, 1, -9])),
        (np.float32([3, np.nan, np.nan]),),
    ),
    *(
        Case(
            f"{kind.value} of ranges",
            ReduceRanges(kind),
            (np.float32([[1, np.nan], [3, 2], [-4, 9]]), np.int32([0, 1, 2]), np.int32([2, 3, 2])),
            (np.float32([[first, np.nan], [*second], [empty] * 2]),),
        )
        for kind, first, second, empty in (
            (Reduction.MAX, 3, (3, 9), -np.inf),
            (Reduction.MIN, 1, (-4, 2), np.inf),
        )
    ),
    Case(
        "float rows in any order",
        UnsortedSegment(SegmentReduction.SUM),
        (np.float32([1, 2, 3, 4]), np.int32([2, 0, 2, -1]), np.int32(4)),
        (np.float32([2, 0, 4, 0]),),
        constant=(2,),
    ),
    Case(
        "product",
        UnsortedSegment(SegmentReduction.PROD),
        (_ROWS, np.int64([1, 1, 1, 0]), np.int32([2])),
        (np.int32([[7, 8], [15, 48]]),),
    ),
    Case(
        "largest, and the lowest number where there is none",
        UnsortedSegment(SegmentReduction.MAX),
        (np.int32([[1, 2], [3, 4]]), np.int32([[0, 0], [2, 0]]), np.int32(3)),
        (np.int32([4, -(2**31), 3]),),
    ),
    Case(
        "smallest, and the highest number where there is none",
        UnsortedSegment(SegmentReduction.MIN),
        (np.float32([3, 1]), np.int32([0, 0]), np.int32(2)),
        (np.float32([1, np.finfo(np.float32).max]),),
    ),
    Case("diagonal", MatrixDiag(), (np.int32([[1, 2]]),), (np.int32([[[1, 0], [0, 2]]]),)),
    Case("booleans on a diagonal", MatrixDiag(), (np.array([True, False]),), (np.array([[True, False], [False] * 2]),)),
    Case("doubles on a diagonal", MatrixDiag(), (np.array([1.5, 2]),), (np.array([[1.5, 0], [0, 2]]),)),
    Case(
        "another diagonal of a wide matrix",
        MatrixSetDiag(),
        (np.int8([[1, 2, 3], [4, 5, 6]]), np.int8([7, 8])),
        (np.int8([[7, 2, 3], [4, 8, 6]]),),
        (_HALF, _HALF),
        (_HALF,),
    ),
    Case(
        "another diagonal of a high matrix",
        MatrixSetDiag(),
        (np.ones((1, 3, 2), np.bool_), np.zeros((1, 2), np.bool_)),
        (np.array([[[False, True], [True, False], [True, True]]]),),
    ),
    Case(
        "rows of indices, the last of equal ones counts",
        SparseToDense(),
        (np.int32([[0, 1], [1, 0], [0, 1]]), np.int32([2, 2]), np.float32([5, 6, 7]), np.float32(-1)),
        (np.float32([[-1, 7], [6, -1]]),),
        constant=(1,),
    ),
    Case(
        "one value at all indices",
        SparseToDense(),
        (np.int64([0, 2]), np.int64([4]), np.int8(9), np.int8(0)),
        (np.int8([9, 0, 9, 0]),),
    ),
    Case(
        "strings",
        SparseToDense(),
        (np.array(1, np.int32), np.int32([2]), _texts(b"a"), np.array(b"", object)),
        (_texts(b"", b"a"),),
    ),
    Case(
        "buckets",
        Bucketize((0.0, 10.0, 100.0)),
        (np.float32([[-5, 0, 9.5], [10, 100, np.inf]]),),
        (np.int32([[0, 1, 1], [2, 3, 3]]),),
    ),
    Case("no boundaries", Bucketize(), (np.int64([3]),), (np.int32([0]),)),
    Case(
        "set apart",
        Dilate(),
        (np.int32([[1, 2], [3, 4]]), np.int32([2, 3]), np.int32(7)),
        (np.int32([[1, 7, 7, 2], [7, 7, 7, 7], [3, 7, 7, 4]]),),
        constant=(1,),
    ),
    Case("nothing set apart", Dilate(), (np.zeros((0,), np.int8), np.int64([5]), np.int8(7)), (np.zeros(0, np.int8),)),
    Case("weighted sums of rows", EmbeddingLookupSparse(), _SPARSE, (np.float32([[10, 16], [0, 0], [15, 18]]),)),
    Case(
        "weighted means of rows",
        EmbeddingLookupSparse(Combiner.MEAN),
        _SPARSE,
        (np.float32([[10 / 6, 16 / 6], [0, 0], [5, 6]]),),
    ),
    Case(
        "weighted sums over the root of squares",
        EmbeddingLookupSparse(Combiner.SQRTN),
        _SPARSE,
        (np.float32([[10, 16], [0, 0], [15, 18]]) / np.float32([[20**0.5], [1], [3]]),),
        constant=(2,),
    ),
    Case(
        "no rows give no bits",
        LshProjection(),
        (np.float32([[1, 2], [3, 4]]), np.zeros((0,), np.int32)),
        (np.int32([0, 4]),),
    ),
    Case(
        "all bits",
        LshProjection(True),
        (np.float32([[1, 2]]), np.zeros((0, 2), np.int8), np.float32([])),
        (np.int32([0, 0]),),
    ),
    Case(
        "pairs with one word left out",
        SkipGram(2, 1),
        (_texts(b"a b c  d"),),
        (_texts(b"a b", b"a c", b"b c", b"b d", b"c d"),),
    ),
    Case("shorter groups too", SkipGram(2, 0, True), (_texts(b" a b"),), (_texts(b"a b", b"a", b"b"),)),
    Case("too few words", SkipGram(3), (_texts(b"a b"),), (np.empty(0, object),)),
    Case("even numbers", Random(Distribution.UNIFORM, 1, 2), (np.int32([2, 3]),), constant=(0,)),
    Case("normal numbers", Random(Distribution.NORMAL), (np.int64([5]),)),
    Case(
        "one class that can be",
        Multinomial(),
        (np.float32([[-np.inf, 3], [0, -np.inf]]), np.int32(3)),
        (np.int64([[1, 1, 1], [0, 0, 0]]),),
    ),
    *(
        Case(
            f"{each.name.lower()} numbers of a state",
            RandomFrom(each),
            (np.uint64([5, (1 << 64) - 1, 7]), np.int32([2, 3])),
            constant=(1,),
        )
        for each in Distribution
    ),
    Case(
        "no number of a state",
        RandomFrom(Distribution.UNIFORM),
        (_STATE, np.int32([2, 0])),
        (_STATE, np.empty((2, 0), np.float32)),
        constant=(1,),
    ),
    Case(
        "classes of a state",
        MultinomialFrom(DType.INT64),
        (_STATE, np.float32([[-np.inf, 3], [0, -np.inf]]), np.int32(3)),
        (np.uint64([5, 4096, 7]), np.int64([[1, 1, 1], [0, 0, 0]])),
        constant=(2,),
    ),
    Case(
        "no class of a state",
        MultinomialFrom(DType.INT32),
        (_STATE, np.float32([[0, 1]]), np.int32(0)),
        (_STATE, np.empty((1, 0), np.int32)),
        constant=(2,),
    ),
    Case("classes as int32", Multinomial(DType.INT32, 5), (np.float32([[0, 0, 0]]), np.int32(4))),
    Case("handle", HashTable(7, DType.STRING, DType.INT64), (), (_handle("hash table", 7, "str", "i64"),)),
    Case(
        "filling",
        HashTableImport(),
        (_handle("hash table", 7, "str", "i64"), _texts(b"a", b"b"), np.int64([1, 2])),
        (),
        dtypes=(DType.RESOURCE,),
    ),
]
