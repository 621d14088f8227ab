"""Requantisation by float multipliers equals TFLite's integer arithmetic bit for bit wherever it is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multipliers
from onert.ir.quant import round_half_away
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.schedule.float_scaling import FloatMultipliers, Sums, fitted
from onert_llvm.schedule.weight_packing import pack_floats
from onert_llvm.target.isa import runnable

from .harness import Array
from .test_integer_products import scaled_sums

ISAS = [isa for isa in runnable() if isa.rounds]
SIZES = [3.0, 0.9, 0.03, 1e-3, 1e-4]


def _late(shifts: Array) -> Array:
    return np.where(shifts < 0, np.ldexp(0.5, shifts.astype(np.int32)), 0.0)


def _real(mantissas: Array, shifts: Array) -> Array:
    return np.ldexp(mantissas.astype(np.float64), shifts.astype(np.int32) - 31)


def _near_results(reals: Array, bounds: Array) -> Array:
    """For each column, sums around those where the result changes, and the outermost sums."""
    halves = np.arange(-258, 259)[:, None] + np.array([-0.5, 0.5])
    near = np.rint(halves.reshape(-1, 1) / reals) + np.arange(-2, 3)[:, None, None]
    every = np.concatenate([near.reshape(-1, len(reals)), [bounds, -bounds, 0 * bounds]])
    return np.clip(every, -bounds, bounds).astype(np.int64)


def _found(found: FloatMultipliers, sums: Array, limits: tuple[int, int], rectified: bool) -> Array:
    """The kernel's results for each row of sums, or the same computed in Python if no runnable target supports it."""
    n = sums.shape[1]
    begun = sums + found.steps
    if ISAS:
        how = Requantize(Scaling.FLOAT, clamped=True, rectified=rectified)
        columns = pack_floats(np.zeros(n, np.int64), found, ISAS[0])
        low, high = limits
        rows = len(sums)
        out = scaled_sums(ISAS[0], how, np.tile(columns, rows), begun.reshape(-1), low=low, high=high)
        return out.reshape(rows, n)
    x = begun.astype(np.float32).astype(np.float64)
    inner = (x * found.rest + np.where(sums < 0, found.below, found.added)).astype(np.float32)
    product = x.astype(np.longdouble) * found.factor + inner
    return np.clip(np.floor(product), *limits).astype(np.int64)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("limits", "zero"), [((-128, 127), -128), ((-128, 127), 5), ((0, 255), 130), ((-60, 90), -60)])
def test_results_equal_those_of_fixed_point_multipliers(size: float, limits: tuple[int, int], zero: int) -> None:
    rng = np.random.default_rng(0)
    mantissas, shifts = quantize_multipliers(size * rng.uniform(0.3, 1.0, 32))
    reals, rectified = _real(mantissas, shifts), limits[0] >= zero
    bounds = np.minimum(np.full(32, 1 << 22), (1 << 29) / reals).astype(np.int64)
    found = fitted(reals, _late(shifts), Sums(bounds * 0, bounds), limits, zero, rectified=rectified, alike=False)
    assert found is not None
    sums = _near_results(reals, bounds)
    expected = np.clip(multiply_by_quantized_multiplier(sums, mantissas, shifts) + zero, *limits)
    np.testing.assert_array_equal(_found(found, sums, limits, rectified), expected)


@pytest.mark.parametrize("zero", [-128, 5])
def test_results_equal_those_of_real_multipliers(zero: int) -> None:
    reals = 0.01 * np.random.default_rng(0).uniform(0.3, 1.0, 32)
    limits, bounds = (-128, 127), np.full(32, 1 << 20)
    found = fitted(reals, reals * 0, Sums(bounds * 0, bounds), limits, zero, rectified=zero == -128, alike=True)
    assert found is not None
    sums = _near_results(reals, bounds)
    expected = np.clip(round_half_away(sums * reals) + zero, *limits)
    np.testing.assert_array_equal(_found(found, sums, limits, zero == -128), expected)


def test_power_of_two_and_short_multipliers_are_exact_if_results_have_one_sign() -> None:
    mantissas, shifts = np.array([1 << 30, 151 << 23, 3 << 29] * 16), np.repeat([-6, -9, -1], 16)
    reals, bounds = _real(mantissas, shifts), np.full(48, 1 << 20)
    arguments = reals, _late(shifts), Sums(bounds * 0, bounds), (-128, 127)
    found = fitted(*arguments, -128, rectified=True, alike=False)
    assert found is not None
    sums = _near_results(reals, bounds)
    expected = np.clip(multiply_by_quantized_multiplier(sums, mantissas, shifts) - 128, -128, 127)
    np.testing.assert_array_equal(_found(found, sums, (-128, 127), True), expected)
    assert fitted(*arguments, 3, rectified=False, alike=False) is None


@pytest.mark.parametrize("rectified", [True, False])
@pytest.mark.parametrize("results", [0.2, 1.0, 1.9])
def test_columns_with_tiny_multipliers_are_exact_if_they_have_few_results(results: float, rectified: bool) -> None:
    rng = np.random.default_rng(0)
    mantissas, shifts = quantize_multipliers(rng.uniform(3e-7, 2e-6, 32))
    reals, zero = _real(mantissas, shifts), -128 if rectified else 4
    bias = (rng.uniform(-140, 140, 32) / reals).astype(np.int64)
    spread = (0.5 * results / reals).astype(np.int64)
    arguments = _late(shifts), Sums(bias, spread), (-128, 127), zero
    found = fitted(reals, *arguments, rectified=rectified, alike=False)
    assert found is not None
    inside = np.rint(bias + spread * np.linspace(-1, 1, 301)[:, None]).astype(np.int64)
    steps = (np.rint(bias * reals) + np.arange(-2, 3)[:, None] - 0.5) / reals
    near = np.rint(steps)[:, None] + np.arange(-3, 4)[:, None]
    sums = np.concatenate([inside, np.clip(near.reshape(-1, 32), bias - spread, bias + spread).astype(np.int64)])
    expected = np.clip(multiply_by_quantized_multiplier(sums, mantissas, shifts) + zero, -128, 127)
    np.testing.assert_array_equal(_found(found, sums, (-128, 127), rectified), expected)
    wide = Sums(bias * 0, (30 / reals).astype(np.int64))
    assert fitted(reals, _late(shifts), wide, (-128, 127), zero, rectified=rectified, alike=False) is None


@pytest.mark.parametrize("real", [np.nan, np.inf, -0.01, 1e-5])
def test_invalid_multipliers_and_wrapping_sums_are_not_converted_to_floats(real: float) -> None:
    reals, spread = np.array([0.01, real]), np.array([1000, 1 << 31 if real == 1e-5 else 1000])
    sums = Sums(spread * 0, spread)
    assert fitted(reals, np.zeros(2), sums, (-128, 127), 0, rectified=False, alike=True) is None


def test_only_avx512_targets_scale_with_float_multipliers() -> None:
    assert {isa.name for isa in runnable() if isa.rounds} == {i.name for i in runnable() if "x86-64-v4" in i.name}
