"""Key-value tables run natively for all types, with dense or sparse keys."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import Array
from onert.ir.ops.lookup.table_of_values import LookUp
from onert.ir.ops.reduction.coupling import CoupledProbabilities
from onert_llvm.target.isa import target

from .natively import evaluated, natively, single, why_not

_DRAW = np.random.default_rng(5)


def _keys(kind: type, count: int, apart: bool) -> Array:
    info = np.iinfo(kind)
    low = max(int(info.min), -5)
    if not apart:
        return (low + _DRAW.permutation(count)).astype(kind)
    found = _DRAW.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    found[:2] = info.min, info.max
    return found


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 90])
@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64], ids=lambda k: k.__name__
)
def test_integers_find_the_value_of_their_last_key(kind: type, count: int, *, apart: bool) -> None:
    keys = np.append(_keys(kind, max(count, 2), apart)[:count], np.zeros(int(count > 2), kind))
    x = np.append(_DRAW.choice(keys, 40), _keys(kind, 50, True))
    for values in (np.arange(len(keys), dtype=np.int64), _DRAW.normal(size=len(keys)).astype(np.float32), keys > 3):
        graph, inputs = single(LookUp(), x, keys, values, values[:1], constant=(1, 2, 3))
        (expected,), (found,) = evaluated(graph, inputs), natively(graph, inputs, target("native"))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_zeros_of_both_signs_are_one_key_and_so_are_all_nans(kind: type) -> None:
    keys = np.array([1.5, -0.0, np.nan, -7, np.inf, 2.5, -np.inf], kind)
    x = np.array([0.0, -0.0, np.nan, -np.nan, 1.5, 1.25, -7, np.inf, -np.inf, 2.5, 9], kind)
    rest = np.int16(-1)
    graph, inputs = single(LookUp(), x, keys, np.arange(7, dtype=np.int16), rest, constant=(1, 2, 3))
    (found,) = natively(graph, inputs, target("native"))
    assert found.tolist() == [1, 1, 2, 2, 0, -1, 3, 4, 6, 5, -1]


def test_computed_tables_and_string_tables_are_not_native() -> None:
    x, keys, values = np.int64([1]), np.int64([1, 2]), np.float32([1, 2])
    graph, _ = single(LookUp(), x, keys, values, values[:1], constant=(2, 3))
    assert why_not(graph) == "the table is not constant"
    words = np.array([b"a", b"b"], object)
    graph, _ = single(LookUp(), x, keys, words, words[:1], constant=(1, 2, 3))
    assert why_not(graph) == "its values do not have 1, 2, 4 or 8 bytes"


@pytest.mark.parametrize("classes", [1, 2, 3, 10])
def test_coupled_probabilities_match_their_definition(classes: int) -> None:
    x = _DRAW.uniform(0.01, 0.99, (33, classes, classes)).astype(np.float32)
    x = np.where(np.tri(classes, dtype=bool), 1 - x.transpose(0, 2, 1), x).astype(np.float32)
    graph, inputs = single(CoupledProbabilities(), x)
    (expected,), (found,) = evaluated(graph, inputs), natively(graph, inputs, target("native"))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
