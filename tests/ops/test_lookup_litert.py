"""Lookup, counting, gathering and random operators equal LiteRT, from the same file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt, Model, Options

import onert
from onert.ir import Array, DType

Given = tuple[Array, bool]
"""An operand's elements, and whether they are constants of the file."""


def _model(
    code: str, given: Sequence[Given | None], results: Sequence[tuple[DType, Sequence[int]]], options: Options | None
) -> tuple[bytes, list[Array]]:
    """A model of one operator, and its inputs."""
    model = Model()
    graph = model.graph()
    inputs: list[int] = []
    run_on = []
    for operand in given:
        if operand is None:
            inputs.append(-1)
        elif operand[1]:
            inputs.append(graph.constant(operand[0]))
        else:
            inputs.append(graph.input(DType.from_numpy(operand[0].dtype), operand[0].shape))
            run_on.append(operand[0])
    outputs = [graph.tensor(dtype, shape) for dtype, shape in results]
    graph.operator(code, inputs, outputs, options)
    graph.outputs(*outputs)
    return model.done(), run_on


def _both(
    code: str,
    given: Sequence[Given | None],
    results: Sequence[tuple[DType, Sequence[int]]],
    options: Options | None = None,
    runs: int = 1,
) -> None:
    """Require equal results in every run."""
    model, run_on = _model(code, given, results, options)
    theirs = LiteRt(model)
    mine = onert.Execution(onert.compile(onert.load(model), backends=("reference",)))
    for _ in range(runs):
        for a, b in zip(mine.run(run_on).values(), theirs(*run_on), strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=3e-7, atol=0)
            else:
                np.testing.assert_array_equal(a, b)


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


NUMBERS = [(np.float32, DType.FLOAT32), (np.int32, DType.INT32)]


@pytest.mark.parametrize(("kind", "dtype"), NUMBERS, ids=str)
@pytest.mark.parametrize("code", ["SUM", "PROD", "MAX", "MIN"])
def test_unsorted_segments_equal_litert(code: str, kind: Any, dtype: DType) -> None:
    data = _rng(1).integers(-9, 9, (2, 4, 3)).astype(kind)
    ids = np.array([[0, 2, -1, 0], [4, 2, 2, 0]], np.int32)
    if kind is np.float32 and code == "PROD":
        data /= 2
    options = (f"UnsortedSegment{code.title()}Options", {})
    given = [(data, False), (ids, False), (np.array([5], np.int32), True)]
    _both(f"UNSORTED_SEGMENT_{code}", given, [(dtype, (5, 3))], options)


@pytest.mark.parametrize(("kind", "dtype"), NUMBERS, ids=str)
def test_segment_sum_equals_litert(kind: Any, dtype: DType) -> None:
    data = _rng(2).integers(-9, 9, (5, 3)).astype(kind)
    ids = np.array([0, 0, 1, 2, 2], np.int32)
    for constant in (False, True):
        _both("SEGMENT_SUM", [(data, False), (ids, constant)], [(dtype, (3, 3))], ("SegmentSumOptions", {}))


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_diagonals_equal_litert(kind: Any) -> None:
    dtype = DType.from_numpy(kind)
    diagonal = _rng(3).integers(0, 99, (2, 3)).astype(kind)
    _both("MATRIX_DIAG", [(diagonal, False)], [(dtype, (2, 3, 3))], ("MatrixDiagOptions", {}))
    for shape in ((2, 3, 3), (2, 5, 3), (2, 3, 4)):
        x = _rng(4).integers(0, 99, shape).astype(kind)
        _both("MATRIX_SET_DIAG", [(x, False), (diagonal, False)], [(dtype, shape)], ("MatrixSetDiagOptions", {}))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_to_dense_equals_litert(kind: Any, index: Any) -> None:
    dtype = DType.from_numpy(kind)
    options = ("SparseToDenseOptions", {})
    default = (np.array(7, kind), True)
    shape = (np.array([3, 4], index), True)
    rows = (np.array([[0, 1], [2, 3], [1, 0]], index), False)
    _both("SPARSE_TO_DENSE", [rows, shape, (np.array([1, 2, 3], kind), False), default], [(dtype, (3, 4))], options)
    _both("SPARSE_TO_DENSE", [rows, shape, (np.array(9, kind), False), default], [(dtype, (3, 4))], options)
    line = (np.array([6], index), True)
    places = (np.array([4, 0], index), False)
    _both("SPARSE_TO_DENSE", [places, line, (np.array([1, 2], kind), False), default], [(dtype, (6,))], options)
    _both(
        "SPARSE_TO_DENSE",
        [(np.array(3, index), False), line, (np.array([5], kind), False), default],
        [(dtype, (6,))],
        options,
    )


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
def test_bucketize_equals_litert(kind: Any) -> None:
    x = _rng(5).integers(-12, 120, (3, 5)).astype(kind)
    x[0, :3] = [0, 10, 100]
    options = ("BucketizeOptions", {"boundaries": [0.0, 10.0, 10.0, 100.0]})
    _both("BUCKETIZE", [(x, False)], [(DType.INT32, (3, 5))], options)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
def test_dilate_equals_litert(kind: Any) -> None:
    dtype = DType.from_numpy(kind)
    x = _rng(6).integers(0, 99, (2, 3, 1)).astype(kind)
    given = [(x, False), (np.array([2, 3, 4], np.int32), True), (np.array(7, kind), True)]
    _both("DILATE", given, [(dtype, (3, 7, 1))], ("DilateOptions", {}))


@pytest.mark.parametrize("combiner", [0, 1, 2])
@pytest.mark.parametrize("rank", [2, 3])
def test_embedding_lookup_sparse_equals_litert(combiner: int, rank: int) -> None:
    rng = _rng(7)
    table = rng.normal(size=(6, 2, 3) if rank == 3 else (6, 4)).astype(np.float32)
    ids = np.array([1, 3, 0, 5, 5], np.int32)
    if rank == 2:
        indices, shape = np.array([[0, 0], [0, 1], [2, 0], [3, 1], [3, 2]], np.int32), [4, 3]
    else:
        indices, shape = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], np.int32), [2, 2, 2]
    weights = rng.uniform(0.5, 2, 5).astype(np.float32)
    given = [(ids, False), (indices, False), (np.array(shape, np.int32), False), (weights, False), (table, True)]
    result = [(DType.FLOAT32, (*shape[:-1], *table.shape[1:]))]
    _both("EMBEDDING_LOOKUP_SPARSE", given, result, ("EmbeddingLookupSparseOptions", {"combiner": combiner}))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "bits"), [(1, 4), (1, 31), (2, 6)])
@pytest.mark.parametrize(
    "x",
    [
        np.arange(5, dtype=np.int32),
        _rng(8).normal(size=(7, 3)).astype(np.float32),
        _rng(9).normal(size=(3, 40)).astype(np.float32),
    ],
    ids=lambda x: str(x.shape),
)
def test_lsh_projection_equals_litert(kind: int, bits: int, weighted: bool, x: Array) -> None:
    hashes = _rng(10).normal(size=(3, bits)).astype(np.float32)
    weight = _rng(11).uniform(0.1, 2, len(x)).astype(np.float32)
    shape = (3,) if kind == 1 else (3 * bits,)
    given = [(hashes, True), (x, False), *([(weight, False)] if weighted else [])]
    _both("LSH_PROJECTION", given, [(DType.INT32, shape)], ("LSHProjectionOptions", {"type": kind}))


@pytest.mark.parametrize(("size", "skip"), [(1, 0), (2, 0), (2, 1), (3, 2), (4, 9), (7, 1)])
@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("sentence", [b"The quick brown fox jumps over", b"one", b"a  b c\td ", b""])
def test_skip_gram_equals_litert(size: int, skip: int, shorter: bool, sentence: bytes) -> None:
    options = ("SkipGramOptions", {"ngramSize": size, "maxSkipSize": skip, "includeAllNgrams": shorter})
    text = np.array([sentence], object)
    _both("SKIP_GRAM", [(text, False)], [(DType.STRING, (1,))], options)


SEEDS = [(1, 0), (0, 7), (1234, -5678), (2**40 + 3, 2**62)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("shape", [(8,), (3, 7), (1,)])
@pytest.mark.parametrize("code", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_random_numbers_equal_litert(code: str, shape: tuple[int, ...], seeds: tuple[int, int]) -> None:
    if code == "RANDOM_STANDARD_NORMAL" and shape != (8,):
        shape = (2, 6)  # LiteRT writes one number too many if the count is odd
    options = ("RandomOptions", {"seed": seeds[0], "seed2": seeds[1]})
    for constant in (True, False):
        _both(code, [(np.array(shape, np.int32), constant)], [(DType.FLOAT32, shape)], options, runs=3)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
def test_multinomial_equals_litert(dtype: DType, seeds: tuple[int, int]) -> None:
    logits = _rng(12).normal(size=(3, 5)).astype(np.float32)
    logits[1, 2] = -np.inf
    options = ("RandomOptions", {"seed": seeds[0], "seed2": seeds[1]})
    given = [(logits, False), (np.array(21, np.int32), True)]
    _both("MULTINOMIAL", given, [(dtype, (3, 21))], options, runs=3)
