"""Products rounded to bfloat16 stay within their error bound, on every target and between guard pages."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.contraction.bfloat.round_rows import RoundRows
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.lower.contraction.bfloat import layers as bfloat_layers
from onert_llvm.lower.contraction.winograd import layers as winograd_layers
from onert_llvm.lower.recurrent.lstm import STATES
from onert_llvm.schedule import winograd
from onert_llvm.schedule.bfloat_packing import pairs, roundable
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, guarded, run
from .natively import assert_close, evaluated, natively, subgraph_of
from .test_recurrent import _floats as random_layer

ISAS = pytest.mark.parametrize("isa", runnable("bf16"), ids=lambda isa: isa.name)
ABLE = pytest.mark.parametrize("isa", [i for i in runnable("bf16") if i.bfloat], ids=lambda isa: isa.name)
BOUND = {Terms.FLOAT: 2.0**-20, Terms.WIDENED: 2.0**-8, Terms.PAIRED: 2.0**-7}
"""Documented bounds, relative to the sum of the magnitudes of all products."""
WINOGRAD = 1e-2
"""Relative to the range of the results."""


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _layer(op: FullyConnected | Conv2D | BatchMatMul, x: Array, weights: Array) -> Subgraph:
    b = Builder()
    return b.subgraph([b.add(op, b.input(TensorType(DType.FLOAT32, x.shape)), b.constant(weights))])


def _check_bound(op: FullyConnected | Conv2D, x: Array, weights: Array, isa: Isa, taken: Sequence[Terms]) -> None:
    """Require that each result is within the bound of the terms used, and that threads change nothing."""
    subgraph = _layer(op, x, weights)
    (expected,) = evaluated(subgraph, [x])
    (magnitudes,) = evaluated(_layer(op, abs(x), abs(weights)), [abs(x)])
    found = [natively(subgraph, [x], isa, threads, precision="bf16")[0] for threads in (1, 3)]
    room = max(BOUND[terms] for terms in taken)
    assert (abs(found[0] - expected) <= room * magnitudes).all()
    for answer in found[1:]:
        np.testing.assert_array_equal(answer, found[0])


@ISAS
@pytest.mark.parametrize(("rows", "depth", "n"), [(1, 65, 40), (3, 2, 200)])
def test_with_few_rows_only_weights_are_rounded(isa: Isa, taken: list[Terms], rows: int, depth: int, n: int) -> None:
    _check_bound(FullyConnected(), _numbers(rows, depth), _numbers(n, depth, seed=1), isa, taken)
    assert set(taken) == {Terms.WIDENED}


@ABLE
@pytest.mark.parametrize(("rows", "depth", "n"), [(5, 64, 17), (6, 33, 130), (70, 1, 16)])
def test_fully_connected_layers_stay_within_the_bound(
    isa: Isa, taken: list[Terms], rows: int, depth: int, n: int
) -> None:
    _check_bound(FullyConnected(), _numbers(rows, depth), _numbers(n, depth, seed=1), isa, taken)
    assert set(taken) == {Terms.PAIRED}


@ABLE
def test_consecutive_layers_share_the_rounded_rows_of_an_input(isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    b, made, real = Builder(), [], bfloat_layers.RoundRows

    def rounding(halves: bool) -> RoundRows:
        made.append(real(halves))
        return made[-1]

    monkeypatch.setattr(bfloat_layers, "RoundRows", rounding)
    inputs = [_numbers(8, 20, seed=seed) for seed in range(2)]
    weights = [_numbers(24, 20, seed=seed) for seed in range(2, 6)]
    x, y = (b.input(TensorType(DType.FLOAT32, each.shape)) for each in inputs)
    read = (x, x, y, x)
    outputs = [b.add(FullyConnected(), of, b.constant(w)) for of, w in zip(read, weights, strict=True)]
    found = natively(b.subgraph(outputs), inputs, isa, 1, precision="bf16")
    assert len(made) == 3  # the layer on y overwrites the rounded rows of x
    for answer, of, w in zip(found, (0, 0, 1, 0), weights, strict=True):
        (alone,) = natively(_layer(FullyConnected(), inputs[of], w), [inputs[of]], isa, 1, precision="bf16")
        np.testing.assert_array_equal(answer, alone)


@ISAS
def test_processors_without_the_instruction_compute_exactly(isa: Isa) -> None:
    x, weights = _numbers(1, 5, 6, 20), _numbers(34, 1, 1, 20, seed=1)
    subgraph = _layer(Conv2D(Padding.SAME), x, weights)
    found = [natively(subgraph, [x], isa, precision=precision)[0] for precision in ("exact", "bf16")]
    assert np.array_equal(*found) != isa.bfloat


@ABLE
@pytest.mark.parametrize(
    ("channels", "window", "stride", "groups"),
    [(17, 3, 2, 1), (20, 1, 1, 1), (19, 1, 1, 1), (24, 1, 2, 1), (18, 5, 1, 1), (42, 3, 2, 2), (36, 1, 1, 2)],
)
def test_convolutions_stay_within_the_bound(
    isa: Isa, taken: list[Terms], channels: int, window: int, stride: int, groups: int
) -> None:
    op = Conv2D(Padding.SAME, stride, stride)
    x, weights = _numbers(2, 7, 6, channels), _numbers(34, window, window, channels // groups, seed=1)
    _check_bound(op, x, weights, isa, taken)
    assert set(taken) == {Terms.PAIRED}


@ABLE
@pytest.mark.parametrize(
    ("channels", "window", "n", "size"), [(3, 3, 32, 17), (3, 7, 40, 21), (1, 2, 17, 9), (4, 5, 16, 8)]
)
@pytest.mark.parametrize("stride", [1, 2])
def test_first_layers_stay_within_the_bound(
    isa: Isa, taken: list[Terms], channels: int, window: int, n: int, size: int, stride: int
) -> None:
    x, weights = _numbers(2, size, size, channels), _numbers(n, window, window, channels, seed=1)
    _check_bound(Conv2D(Padding.SAME, stride, stride), x, weights, isa, taken)
    assert set(taken) == {Terms.PAIRED}


@ABLE
def test_infinities_stay_in_windows_with_an_odd_number_of_elements(isa: Isa) -> None:
    x, weights = _numbers(1, 9, 9, 3), _numbers(32, 3, 3, 3, seed=1)
    x[0, 4, 5, 0] = np.inf
    subgraph = _layer(Conv2D(Padding.VALID), x, weights)
    with np.errstate(all="ignore"):
        assert_close(natively(subgraph, [x], isa, precision="bf16"), evaluated(subgraph, [x]), WINOGRAD)


@ABLE
def test_a_constant_right_hand_matrix_is_rounded(isa: Isa) -> None:
    x, weights = _numbers(2, 9, 31), _numbers(31, 40, seed=1)
    subgraph = _layer(BatchMatMul(), x, weights)
    found = natively(subgraph, [x], isa, precision="bf16")
    assert_close(found, evaluated(subgraph, [x]), WINOGRAD)
    assert not np.array_equal(found[0], natively(subgraph, [x], isa)[0])


@ABLE
@pytest.mark.parametrize("adjoint", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 33, 34), (2, 3, 34, 49)), ((4, 40, 64), (64, 32)), ((2, 1, 32, 64), (1, 3, 64, 100))],
)
def test_both_operands_of_a_product_of_computed_matrices_are_rounded(
    isa: Isa, left: tuple[int, ...], right: tuple[int, ...], adjoint: bool
) -> None:
    shapes = left, (*right[:-2], right[-1], right[-2]) if adjoint else right
    op, b, inputs = BatchMatMul(adjoint_y=adjoint), Builder(), [_numbers(*s, seed=i) for i, s in enumerate(shapes)]
    subgraph = b.subgraph([b.add(op, *(b.input(TensorType(DType.FLOAT32, s)) for s in shapes))])
    (expected,) = evaluated(subgraph, inputs)
    (magnitudes,) = evaluated(subgraph, [abs(x) for x in inputs])
    found = [natively(subgraph, inputs, isa, threads, precision="bf16")[0] for threads in (1, 3)]
    assert (abs(found[0] - expected) <= BOUND[Terms.PAIRED] * magnitudes).all()
    assert not np.array_equal(found[0], natively(subgraph, inputs, isa)[0])
    np.testing.assert_array_equal(found[0], found[1])


@ABLE
@pytest.mark.parametrize(("m", "k", "n"), [(40, 33, 40), (31, 64, 40), (40, 64, 31), (40, 30, 40)])
def test_products_of_small_or_odd_computed_matrices_are_exact(isa: Isa, m: int, k: int, n: int) -> None:
    b, inputs = Builder(), [_numbers(2, m, k), _numbers(2, k, n, seed=1)]
    subgraph = b.subgraph([b.add(BatchMatMul(), *(b.input(TensorType(DType.FLOAT32, x.shape)) for x in inputs))])
    found = [natively(subgraph, inputs, isa, precision=precision)[0] for precision in ("exact", "bf16")]
    np.testing.assert_array_equal(*found)


@ISAS
@pytest.mark.parametrize(("sizes", "parts"), [((1, 2, 5, 6, 7), ("projection",)), ((3, 2, 33, 20, 20), ())])
def test_lstm_weights_are_rounded(isa: Isa, sizes: tuple[int, int, int, int, int], parts: tuple[str, ...]) -> None:
    case = random_layer(sizes, *parts)
    constant = [i for i, a in enumerate(case.inputs) if a is not None and i not in STATES]
    subgraph, inputs = subgraph_of(case, constant), [a for i in STATES if (a := case.inputs[i]) is not None]
    exact, found, again = (
        natively(subgraph, inputs, isa, threads, precision=precision)
        for threads, precision in ((1, "exact"), (1, "bf16"), (3, "bf16"))
    )
    assert_close(found, evaluated(subgraph, inputs), 2e-2)
    assert not np.array_equal(exact[0], found[0])
    np.testing.assert_array_equal(found[0], again[0])


@ISAS
def test_products_of_depth_one_are_not_rounded(isa: Isa, taken: list[Terms]) -> None:
    x, weights = _numbers(2, 1), _numbers(30, 1, seed=1)
    _check_bound(FullyConnected(), x, weights, isa, taken)
    assert set(taken) == {Terms.FLOAT}


@ABLE
def test_weights_without_a_finite_bfloat16_value_are_not_rounded(isa: Isa, taken: list[Terms]) -> None:
    x = abs(_numbers(5, 8)) * np.float32(1e-3)
    for value in (np.inf, np.nan, np.finfo(np.float32).max):
        weights = _numbers(20, 8, seed=1)
        weights[3, 4] = value
        subgraph = _layer(FullyConnected(), x, weights)
        assert_close(natively(subgraph, [x], isa, precision="bf16"), evaluated(subgraph, [x]))
    assert set(taken) == {Terms.FLOAT}


@ABLE
@pytest.mark.parametrize(("size", "channels", "n"), [((1, 8, 9), 18, 40), ((2, 9, 6), 64, 65), ((3, 5, 11), 130, 24)])
@pytest.mark.parametrize("value", [0.0, -np.inf])
@pytest.mark.parametrize("stride", [1, 2])
def test_winograd_transforms_are_rounded(
    isa: Isa,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int, int],
    channels: int,
    n: int,
    value: float,
    stride: int,
) -> None:
    taken: list[Terms] = []
    real = winograd_layers.WinogradF32

    def kernel(*args: object) -> object:
        made = real(*args)  # type: ignore[arg-type]
        taken.append(made.terms)
        return made

    monkeypatch.setattr(winograd_layers, "WinogradF32", kernel)
    monkeypatch.setattr(winograd, "_WORTH", 1e9)
    x, weights = _numbers(*size, channels), _numbers(n, 3, 3, channels, seed=1) / np.float32(3 * channels**0.5)
    x[0, 2, 3, 5] += np.float32(value)
    weights[3] = 0
    subgraph = _layer(Conv2D(Padding.SAME, stride, stride), x, weights)
    found = [natively(subgraph, [x], isa, threads, precision="bf16") for threads in (1, 2)]
    assert set(taken) == {Terms.PAIRED}
    with np.errstate(all="ignore"):
        assert_close(found[0], evaluated(subgraph, [x]), WINOGRAD)
    np.testing.assert_array_equal(found[0][0], found[1][0])


_SPECIAL = [0.0, -0.0, 1.0, 1.00390625, 1.01171875, -1.00390625, 3.4e38, -3.4e38, 3.38e38, np.inf, -np.inf, np.nan, 2.5]


@ISAS
def test_rows_are_rounded_to_the_nearest_bfloat16_pairs(isa: Isa) -> None:
    for rows, size, pitch in ((1, 40, 40), (3, 13, 13), (4, 6, 9), (5, 1, 3)):
        _rounded(isa, rows, size, pitch)


def _rounded(isa: Isa, rows: int, size: int, pitch: int) -> None:
    total = (rows - 1) * pitch + size
    x = _numbers(total, seed=2) * np.float32(100)
    x[: len(_SPECIAL)] = _SPECIAL[:total]
    out = guarded(np.full((rows, (size + 1) // 2 * 2), 0x5A5A, np.uint16))
    slots = {"x": guarded(x), "out": out, "rows": rows, "size": size, "pitch": pitch, "total": total, "group": 2}
    run(KernelSpec(RoundRows(), isa), -(-rows // 2), slots, 2)
    expected = np.zeros(out.shape, ml_dtypes.bfloat16)
    for i in range(rows):
        expected[i, :size] = x[i * pitch : i * pitch + size].astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(out.view(ml_dtypes.bfloat16).astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_weights_are_rounded_to_the_nearest_bfloat16_pairs(depth: int) -> None:
    weights = np.concatenate(
        [_numbers(3, depth, 9) * np.float32(1e-3), np.full((3, depth, 2), 1.00390625, np.float32)], 2
    )
    found = pairs(weights).view(np.uint32)
    halves = np.stack([found & 0xFFFF, found >> 16], 2).reshape(3, -1, 11).astype(np.uint16).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(halves[:, :depth], weights.astype(ml_dtypes.bfloat16))
    assert (halves[:, depth:] == 0).all()


def test_values_that_would_round_to_infinity_are_not_roundable() -> None:
    largest = np.float32(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    beyond = np.nextafter(np.float32(largest + np.float32(2.0**119)), np.float32(np.inf))
    assert [roundable(np.full(2, v, np.float32)) for v in (0, largest, -largest, beyond, np.inf, np.nan)] == [
        True, True, True, False, False, False
    ]  # fmt: skip
