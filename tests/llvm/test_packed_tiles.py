"""Layers with the tiles used for models, for every number of columns in the last register, next to guard pages."""

from __future__ import annotations

from typing import Any

import compute_trials as trials
import numpy as np
import pytest
from cases.case import Case
from compute_trials import per_tensor

from onert.ir import DType, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.lower.elementwise import integer_binary
from onert_llvm.schedule.cost_model import Shape, packed_tile
from onert_llvm.schedule.float_packing import panels
from onert_llvm.target.isa import Isa, runnable

from . import test_integer_products as products
from .contractions import gemm_int8
from .harness import Array, guarded, run
from .natively import check, evaluated, natively, single, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
COLUMNS = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 49, 63, 64, 65, 79, 80, 81, 95, 96, 97, 127, 129)
"""Around multiples of 4, 8 and 16 lanes, up to more columns than one panel has."""
ROWS = (1, 2, 13)


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


@ISAS
@pytest.mark.parametrize("n", COLUMNS)
def test_float_layers_may_have_any_number_of_columns(isa: Isa, n: int) -> None:
    for m, k in zip(ROWS, (5, 64, 17), strict=True):
        operands: list[Any] = [_draw(m, k), _draw(n, k, seed=1), _draw(n, seed=2)]
        check(*single(FullyConnected(Activation.RELU), *operands, constant=(1, 2)), isa, threads=2)
    weights: list[Any] = [_draw(1, 5, 4, 3), _draw(n, 3, 2, 3, seed=1), _draw(n, seed=2)]
    check(*single(Conv2D(Padding.SAME), *weights, constant=(1, 2)), isa)


def _bytes(op: Op, x: tuple[int, ...], weight: tuple[int, ...], kind: str, gain: float) -> Case:
    """A quantised layer whose results fill the range of their type and exceed it."""
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
def test_integer_layers_may_have_any_number_of_columns(isa: Isa, kind: str, n: int) -> None:
    for m, k in zip(ROWS, (5, 64, 17), strict=True):
        case = _bytes(FullyConnected(), (m, k), (n, k), kind, 1.0)
        check(subgraph_of(case), [case.inputs[0]], isa, threads=2)
    case = _bytes(Conv2D(Padding.SAME), (1, 4, 3, 6), (n, 3, 2, 6), kind, 1.0)
    check(subgraph_of(case), [case.inputs[0]], isa)


@ISAS
@pytest.mark.parametrize("kind", ["i8", "u8", "i16"])
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU6])
def test_integer_results_saturate_at_both_ends(isa: Isa, kind: str, activation: Activation) -> None:
    case = _bytes(FullyConnected(activation), (16, 64), (40, 64), kind, 0.4)
    subgraph = subgraph_of(case)
    (found,), (wanted,) = natively(subgraph, [case.inputs[0]], isa), evaluated(subgraph, [case.inputs[0]])
    np.testing.assert_array_equal(found, wanted)
    low, high = DType.from_numpy(found.dtype).limits
    if activation is Activation.NONE:
        assert (found == low).sum() > 5
        assert (found == high).sum() > 5
    assert len(np.unique(found)) > 10


@ISAS
@pytest.mark.parametrize("integer", [False, True], ids=["floats", "bytes"])
def test_tiles_are_padded_on_targets_with_free_masks(isa: Isa, integer: bool) -> None:
    tiles = [packed_tile(Shape(m, n, 64, integer), isa) for m in ROWS for n in COLUMNS]
    assert {tile.columns.padded for tile in tiles} == {isa.free_masks}
    assert len({tile.columns.widest for tile in tiles}) > 2


@ISAS
@pytest.mark.parametrize("wide", [2, 3, 5])
@pytest.mark.parametrize("rest", [1, 2])
def test_registers_without_columns_in_a_padded_panel_access_no_memory(isa: Isa, wide: int, rest: int) -> None:
    """A tile whose code already exists may be wider than the remaining columns, even by whole registers."""
    if not isa.free_masks:
        assert not packed_tile(Shape(4, 40, 64, True), isa).columns.padded
        return
    m, k, n = 4, 24, (wide + min(rest, wide - 1)) * isa.f32
    tile = Tile(2, Columns(wide, padded=True))
    x, w = products.bytes_of((m, k), True), products.bytes_of((k, n), True, 1)
    layer = products.layer_of(n, k, True, False)
    c = guarded(np.zeros((m, n), x.dtype))
    how, scale = layer.scaled(w, isa, True)
    slots = products.product_slots(c, m, n, w, tile, isa, m) | scale
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n}
    run(KernelSpec(gemm_int8(tile, k % isa.group, True, how), isa), panels(n, tile.columns, isa), slots)
    np.testing.assert_array_equal(c, layer.expected((x.astype(np.int64) - layer.input_zero) @ w.astype(np.int64)))


@ISAS
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB], ids=lambda kind: kind.name)
@pytest.mark.parametrize("found", ["in whole numbers", "in floats", "in fixed point"])
@pytest.mark.parametrize("moved", [0, 128], ids=["int8", "uint8"])
def test_sums_of_every_pair_of_bytes_are_exact(
    isa: Isa, kind: BinaryKind, found: str, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if found != "in whole numbers":
        monkeypatch.setattr(integer_binary, "whole_factors", lambda *given: None)
    if found == "in fixed point":
        monkeypatch.setattr(integer_binary, "affine_factors", lambda *given: None)
    every = (np.arange(-128, 128) + moved).astype(np.uint8 if moved else np.int8)
    x, y = (np.ascontiguousarray(a) for a in np.broadcast_arrays(every[:, None], every[None, :]))
    rng = np.random.default_rng(round(isa.vector_bytes))
    # The last ones have the largest possible sums, next to a zero point that uses the rest of 32 bits.
    ends = [[(0.02, side), (0.02, side), (0.02 * 2**n, zero)]
            for n in (4, 5) for side in (-128, 127) for zero in (-128, 127)]  # fmt: skip
    for sides in (
        *([(2.0 ** rng.uniform(-8, -3), int(rng.integers(-100, 100))) for _ in range(3)] for _ in range(4)),
        *ends,
    ):
        scales = [per_tensor(scale, zero + moved) for scale, zero in sides]
        case = Case("", Binary(kind), (x, y), None, tuple(scales[:2]), (scales[2],))
        check(subgraph_of(case), [x, y], isa)
