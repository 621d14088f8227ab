"""Weights that are 16-bit floats already are stored as such for products of few rows, and no sum changes for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve

from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.lower.recurrent import weights as recurrent_weights
from onert_llvm.lower.recurrent.lstm import STATES
from onert_llvm.schedule.bfloat_packing import are_bfloat, are_half
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import assert_close, evaluated, natively, subgraph_of
from .test_recurrent import _floats as random_layer

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = {"half": np.float16, "bfloat": ml_dtypes.bfloat16}
SPECIAL = np.float32([0, -0.0, 65504, -65504, 2.0**-24, -(2.0**-24), 2.0**-14, 1 + 2.0**-10])
"""Float16 numbers, subnormal ones and the largest among them."""


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _weights(n: int, depth: int, dtype: object) -> Array:
    """Random numbers of a 16-bit type, in float32."""
    return (_numbers(n, depth, seed=1) / 16).astype(dtype).astype(np.float32)  # type: ignore[call-overload]


def _layer(x: Array, weights: Array) -> Subgraph:
    b = Builder()
    given = b.input(TensorType(DType.FLOAT32, x.shape))
    return b.subgraph([b.add(FullyConnected(), given, b.constant(weights), b.constant(_numbers(len(weights), seed=2)))])


def _kind(name: str, isa: Isa) -> Terms:
    """The terms expected of a layer with few rows and many weights."""
    if name == "bfloat":
        return Terms.WIDENED
    return Terms.WIDENED_HALVES if isa.converts_halves else Terms.FLOAT


@ISAS
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("rows", "depth", "n"), [(1, 255, 270), (2, 300, 257), (3, 1024, 65)])
def test_few_rows_are_multiplied_by_16_bit_weights(
    isa: Isa, taken: list[Terms], name: str, rows: int, depth: int, n: int
) -> None:
    x, weights = _numbers(rows, depth), _weights(n, depth, TYPES[name])
    if name == "half":
        x[:, :2] = 1e-3
        weights[3, : len(SPECIAL)] = SPECIAL
    subgraph = _layer(x, weights)
    found = [natively(subgraph, [x], isa, threads)[0] for threads in (1, 3)]
    assert set(taken) == {_kind(name, isa)}
    assert_close([found[0]], evaluated(subgraph, [x]))
    np.testing.assert_array_equal(found[0], found[1])


@ISAS
@pytest.mark.parametrize("value", SPECIAL)
def test_each_16_bit_weight_is_multiplied_exactly(isa: Isa, taken: list[Terms], value: float) -> None:
    weights = np.zeros((260, 256), np.float32)
    weights[np.arange(256), np.arange(256)] = value
    x = np.float32(2.0) ** np.random.default_rng(0).integers(-10, 10, (1, 256))
    b = Builder()
    subgraph = b.subgraph([b.add(FullyConnected(), b.input(TensorType(DType.FLOAT32, x.shape)), b.constant(weights))])
    (found,) = natively(subgraph, [x.astype(np.float32)], isa)
    np.testing.assert_array_equal(found[0, :256], (x[0] * value).astype(np.float32))
    assert taken != [Terms.FLOAT] or not isa.converts_halves


FLOATS = {
    "another weight": (1, 256, lambda w: np.append(w[:-1], [[*w[-1][:-1], np.float32(1.0001)]], 0)),
    "a weight that is not a number": (1, 256, lambda w: np.append(w[:-1], [[*w[-1][:-1], np.float32(np.nan)]], 0)),
    "few weights": (1, 64, lambda w: w),
    "many rows": (4, 256, lambda w: w),
}


@pytest.mark.parametrize("name", FLOATS)
def test_other_products_are_of_floats(taken: list[Terms], name: str) -> None:
    rows, n, changed = FLOATS[name]
    x, weights = _numbers(rows, 300), changed(_weights(n, 300, np.float16)).astype(np.float32)
    natively(_layer(x, weights), [x], runnable()[-1])
    assert taken == [Terms.FLOAT]


@ISAS
@pytest.mark.parametrize("name", TYPES)
def test_steps_of_an_lstm_read_16_bit_weights(isa: Isa, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[Terms] = []
    real = recurrent_weights.terms

    def terms(*args: Any, **named: Any) -> Terms:
        kinds.append(real(*args, **named))
        return kinds[-1]

    monkeypatch.setattr(recurrent_weights, "terms", terms)
    case = random_layer((2, 2, 33, 140, 140))
    constant = [i for i, a in enumerate(case.inputs) if a is not None and i not in STATES]
    exact = [None if a is None else a.astype(TYPES[name]).astype(np.float32) for a in case.inputs]
    case = evolve(case, inputs=tuple(exact))
    subgraph, inputs = subgraph_of(case, constant), [a for i in STATES if (a := case.inputs[i]) is not None]
    found, again = (natively(subgraph, inputs, isa, threads) for threads in (1, 3))
    assert _kind(name, isa) in kinds
    assert_close(found, evaluated(subgraph, inputs))
    np.testing.assert_array_equal(found[0], again[0])


TESTED = {
    "integers": (np.arange(2000, dtype=np.float32), True, False),
    "small integers": (np.arange(256, dtype=np.float32), True, True),
    "large": (np.float32([65536.0] * 3), False, True),
    "infinite": (np.float32([np.inf]), True, True),
    "not a number": (np.float32([1, np.nan]), False, False),
    "one third": (np.float32([1 / 3]), False, False),
    "the last of many": (np.append(np.zeros(5000, np.float32), np.float32(1 / 3)), False, False),
    "transposed": (np.arange(600, dtype=np.float32).reshape(20, 30).T, True, False),
    "empty": (np.zeros(0, np.float32), True, True),
}


@pytest.mark.parametrize("name", TESTED)
def test_16_bit_numbers_are_recognised(name: str) -> None:
    numbers, half, bfloat = TESTED[name]
    assert are_half(numbers) == half
    if name != "not a number":
        assert are_bfloat(numbers) == bfloat
