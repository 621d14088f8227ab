"""Pooling, reductions and softmax agree with NumPy on every target."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.reduction.elements import Plain
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.pool import Pool
from onert_llvm.kernels.reduction.quantized_elements import Quantized
from onert_llvm.kernels.reduction.reduce import ReduceColumns, ReduceRows
from onert_llvm.kernels.reduction.softmax_norm import Softmax
from onert_llvm.schedule.depthwise import strip
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, guarded, run
from .picture import PICTURES, Picture, same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIGNED = pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
MEAN = pytest.mark.parametrize("mean", [True, False], ids=["mean", "max"])
WIDTHS = pytest.mark.parametrize("width", [1, 3, 16, 31, 64, 65, 200])
FOLDS, INTEGERS = (Fold.SUM, Fold.PROD, Fold.MAX, Fold.MIN), (Kind.I32, Kind.I64, Kind.U8)
POOLED = [p for p in PICTURES if p.dilation == (1, 1) and p.pads < p.window]
NUMPY: dict[Fold, Any] = {
    Fold.SUM: np.sum,
    Fold.PROD: np.prod,
    Fold.MAX: np.max,
    Fold.MIN: np.min,
    Fold.MAX_NUMBER: np.nanmax,
}


def _counts(picture: Picture) -> Array:
    """The number of pixels inside the image for each output of one image."""
    ones = np.ones(picture.shape)
    counts: Array = picture.windows(ones, 0).sum(1)[: picture.out[0] * picture.out[1], 0]
    return counts


def _cut(picture: Picture, isa: Isa) -> Any:
    cut = strip(picture.window, picture.stride[1], picture.dilation[1], picture.out[1], picture.channels, isa)
    return evolve(cut, near=picture.near)


@ISAS
@MEAN
@pytest.mark.parametrize("picture", [*POOLED, same(1, (7, 7), 33, (7, 7))])
def test_float32_pooling_agrees_with_numpy(isa: Isa, picture: Picture, mean: bool) -> None:
    x = np.random.default_rng(0).standard_normal(picture.shape).astype(np.float32)
    channels, counts = picture.channels, _counts(picture)
    c = guarded(np.zeros((picture.rows, channels), np.float32))
    zero = guarded(np.full(channels, 0.0 if mean else -np.inf, np.float32))
    slots = picture.slots(guarded(x), zero) | {"c": c, "channels": channels, "ldc": channels}
    if mean:
        slots["divisors"] = guarded((1 / counts).astype(np.float32))
    elements = Plain(Fold.SUM if mean else Fold.MAX, mean=mean)
    run(KernelSpec(Pool(elements, _cut(picture, isa)), isa), picture.images * picture.out[0], slots)
    if mean:
        expected = picture.windows(x, 0).sum(1) / np.tile(counts, picture.images)[:, None]
    else:
        expected = picture.windows(np.where(x == x, x, 0), 0)
        expected = np.where(_inside(picture)[..., None], expected, -np.inf).max(1)
    np.testing.assert_allclose(c, expected, atol=1e-6)


def _inside(picture: Picture) -> Array:
    inside: Array = picture.windows(np.ones(picture.shape), 0)[:, :, 0] == 1
    return inside


@ISAS
@MEAN
@SIGNED
@pytest.mark.parametrize("picture", POOLED)
def test_byte_pooling_agrees_with_numpy(isa: Isa, picture: Picture, mean: bool, signed: bool) -> None:
    limits = np.iinfo(np.int8 if signed else np.uint8)
    x = np.random.default_rng(0).integers(limits.min, limits.max + 1, picture.shape).astype(limits.dtype)
    channels, counts = picture.channels, _counts(picture).astype(np.int32)
    c = guarded(np.zeros((picture.rows, channels), x.dtype))
    zero = guarded(np.full(channels, 0 if mean else limits.min, x.dtype))
    low, high = limits.min + 5, limits.max - 5
    slots = picture.slots(guarded(x), zero) | {"c": c, "channels": channels, "ldc": channels, "low": low, "high": high}
    if mean:
        slots["divisors"] = guarded(counts)
    fold, kind = Fold.SUM if mean else Fold.MAX, Kind.I8 if signed else Kind.U8
    elements = Quantized(fold, kind, mean, clamped=True)
    run(KernelSpec(Pool(elements, _cut(picture, isa)), isa), picture.images * picture.out[0], slots)
    if mean:
        total, count = picture.windows(x, 0).sum(1), np.tile(counts, picture.images)[:, None]
        expected = np.trunc((total + np.where(total > 0, 1, -1) * (count // 2)) / count)
    else:
        expected = np.where(_inside(picture)[..., None], picture.windows(x, 0), limits.min).max(1)
    np.testing.assert_array_equal(c, np.clip(expected, low, high))


@ISAS
@WIDTHS
@pytest.mark.parametrize("fold", list(Fold))
def test_row_and_column_reductions_agree_with_numpy(isa: Isa, width: int, fold: Fold) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, width)).astype(np.float32)
    rows, columns = guarded(np.zeros(15, np.float32)), guarded(np.zeros((3, width), np.float32))
    slots: dict[str, Any] = {"in": guarded(x), "width": width}
    run(KernelSpec(ReduceRows(Plain(fold)), isa), 15, slots | {"out": rows}, pieces=2)
    np.testing.assert_allclose(rows.reshape(3, 5), NUMPY[fold](x.astype(np.float64), 2), atol=1e-5)
    chunks = -(-width // (isa.f32 * 4))
    down = slots | {"rows": 5, "chunks": chunks, "out": columns}
    run(KernelSpec(ReduceColumns(Plain(fold)), isa), 3 * chunks, down, pieces=2)
    np.testing.assert_allclose(columns, NUMPY[fold](x.astype(np.float64), 1), atol=1e-5)


@ISAS
@pytest.mark.parametrize(("fold", "kind"), [*product(FOLDS, INTEGERS), *((fold, Kind.F32) for fold in Fold)])
def test_rows_of_known_width_are_reduced_together_with_bitwise_equal_results(isa: Isa, fold: Fold, kind: Kind) -> None:
    rng, types = np.random.default_rng(0), {Kind.F32: np.float32, Kind.I32: np.int32, Kind.I64: np.int64}
    dtype = types.get(kind, np.uint8)
    for width in (2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32):
        x = (rng.standard_normal((75, width)) * 5).astype(dtype)
        if kind is Kind.F32:
            x[7] = -0.0
            x[11:30] *= (1, -0.0)[width % 2]
            x[40, width - 1], x[41, 0] = (np.nan, np.nan) if fold in (Fold.MAX, Fold.MIN) else (np.inf, -np.inf)
        slots: dict[str, Any] = {"in": guarded(x), "width": width}
        together, alone = (guarded(np.zeros(75, dtype)) for _ in range(2))
        run(KernelSpec(ReduceRows(Plain(fold, kind), width), isa), 75, slots | {"out": together}, pieces=2)
        run(KernelSpec(ReduceRows(Plain(fold, kind)), isa), 75, slots | {"out": alone}, pieces=2)
        assert together.tobytes() == alone.tobytes(), width


@ISAS
@WIDTHS
@pytest.mark.parametrize("together", [True, False])
def test_softmax_may_be_computed_in_place(isa: Isa, width: int, together: bool) -> None:
    x = (np.random.default_rng(0).standard_normal((4, width)) * 30).astype(np.float32)
    data = guarded(x)
    slots = {"in": data, "out": data, "step": width, "out_step": width, "width": width, "beta": 0.7}
    run(KernelSpec(Softmax(together=together), isa), 4, slots, pieces=2)
    powers = np.exp(np.float32(0.7) * (x - x.max(1, keepdims=True)).astype(np.float64))
    np.testing.assert_allclose(data, powers / powers.sum(1, keepdims=True), atol=2e-7, rtol=1e-5)
