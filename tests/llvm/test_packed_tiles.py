"""Layers with the tiles that models get: every number of columns up to the last register, next to guard pages."""

from __future__ import annotations

from typing import Any

import compute_trials as trials
import numpy as np
import pytest
from cases.case import Case
from compute_trials import per_tensor

from onert.ir import DType, Op
from onert.ir.ops.activation import Activation
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.window import Padding
from onert_llvm.schedule import Shape, packed_tile
from onert_llvm.target import Isa, runnable

from .harness import Array
from .natively import by_meaning, check, natively, single, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
COLUMNS = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 49, 63, 64, 65, 79, 80, 81, 95, 96, 97, 127, 129)
"""Beside multiples of 4, 8 and 16 lanes, up to more columns than one panel has."""
ROWS = (1, 2, 13)


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


@ISAS
@pytest.mark.parametrize("n", COLUMNS)
def test_floats(isa: Isa, n: int) -> None:
    for m, k in zip(ROWS, (5, 64, 17), strict=True):
        operands: list[Any] = [_draw(m, k), _draw(n, k, seed=1), _draw(n, seed=2)]
        check(*single(FullyConnected(Activation.RELU), *operands, constant=(1, 2)), isa, threads=2)
    weights: list[Any] = [_draw(1, 5, 4, 3), _draw(n, 3, 2, 3, seed=1), _draw(n, seed=2)]
    check(*single(Conv2D(Padding.SAME), *weights, constant=(1, 2)), isa)


def _bytes(op: Op, x: tuple[int, ...], weight: tuple[int, ...], kind: str, gain: float) -> Case:
    """A quantised layer whose results fill the range of their type and pass its ends."""
    *operands, _ = trials.filtered(trials.Draw(f"{op} {x} {weight} {kind}"), kind, x, weight, weight[0], 0)
    terms = int(np.prod(weight[1:]))
    scale = {"i8": 0.05 * 0.013, "u8": 0.05 * 0.0131, "i16": 0.0005 * 0.013}[kind]
    reach = {"i8": 74 * 74, "u8": 74 * 74, "i16": 18900 * 74}[kind] * terms**0.5
    steps = 32768 if kind == "i16" else 128
    zero = {"i8": -7, "u8": 110, "i16": 0}[kind]
    return trials.case("", op, operands, per_tensor(scale * reach / steps * gain, zero), 1, 2)


@ISAS
@pytest.mark.parametrize(
    ("kind", "n"),
    [*(("i8", n) for n in COLUMNS), *(("u8", n) for n in COLUMNS[::4]), *(("i16", n) for n in COLUMNS[1::4])],
)
def test_integers(isa: Isa, kind: str, n: int) -> None:
    for m, k in zip(ROWS, (5, 64, 17), strict=True):
        case = _bytes(FullyConnected(), (m, k), (n, k), kind, 1.0)
        check(subgraph_of(case), [case.inputs[0]], isa, threads=2)
    case = _bytes(Conv2D(Padding.SAME), (1, 4, 3, 6), (n, 3, 2, 6), kind, 1.0)
    check(subgraph_of(case), [case.inputs[0]], isa)


@ISAS
@pytest.mark.parametrize("kind", ["i8", "u8", "i16"])
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU6])
def test_results_saturate_at_both_ends(isa: Isa, kind: str, activation: Activation) -> None:
    case = _bytes(FullyConnected(activation), (16, 64), (40, 64), kind, 0.4)
    subgraph = subgraph_of(case)
    (found,), (wanted,) = natively(subgraph, [case.inputs[0]], isa), by_meaning(subgraph, [case.inputs[0]])
    np.testing.assert_array_equal(found, wanted)
    low, high = DType.from_numpy(found.dtype).limits
    if activation is Activation.NONE:
        assert (found == low).sum() > 5
        assert (found == high).sum() > 5
    assert len(np.unique(found)) > 10


@ISAS
@pytest.mark.parametrize("integer", [False, True], ids=["floats", "bytes"])
def test_tiles_of_models_are_padded_where_masks_cost_nothing(isa: Isa, integer: bool) -> None:
    tiles = [packed_tile(Shape(m, n, 64, integer), isa) for m in ROWS for n in COLUMNS]
    assert {tile.columns.padded for tile in tiles} == {isa.free_masks}
    assert len({tile.columns.widest for tile in tiles}) > 2
