"""Int8 and uint8 products and convolutions equal TFLite's integer arithmetic bit for bit, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from onert.ir.ops.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multipliers
from onert.ir.quant import round_half_away
from onert_llvm.codegen.kernel_abi import KernelSpec, Task
from onert_llvm.irbuilder import I32, Kernel, Val
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, fixed
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.direct.sliding_window import slide, together
from onert_llvm.kernels.contraction.im2col import Patch
from onert_llvm.kernels.contraction.register_tile import Tile
from onert_llvm.schedule.cost_model import Shape, product_tile, row_work, with_prefetch
from onert_llvm.schedule.depthwise import registers_together
from onert_llvm.schedule.float_packing import panels
from onert_llvm.schedule.weight_packing import (
    PACKS,
    channel_order,
    folded_bias,
    pack_columns,
    pack_depthwise,
    pack_reals,
    panel_bytes_int8,
    real_scaling,
    scaling,
    sum_bounds,
)
from onert_llvm.target.isa import Isa, runnable

from .contractions import conv_int8, gemm_int8, patch_conv_int8
from .harness import Array, guarded, run
from .picture import FEW_CHANNELS, PICTURES, Picture, same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIGNED = pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
ZEROS = pytest.mark.parametrize("zero", [0, -77])


@frozen
class Layer:
    """Random parameters of a quantised layer with `n` outputs."""

    bias: Array
    mantissas: Array
    shifts: Array
    input_zero: int
    output_zero: int
    low: int
    high: int

    def expected(self, sums: Array) -> Array:
        scaled = multiply_by_quantized_multiplier(sums + self.bias, self.mantissas, self.shifts)
        out: Array = np.clip(scaled + self.output_zero, self.low, self.high)
        return out

    def scaled(
        self, weights: Array, isa: Isa, signed: bool, weight_zero: int = 0, places: Array | None = None
    ) -> tuple[Requantize, dict[str, Any]]:
        bounds = sum_bounds(weights, self.bias, self.input_zero, weight_zero, signed)
        how = scaling(bounds, (self.mantissas, self.shifts), self.output_zero)
        folded = folded_bias(weights, self.bias, self.input_zero, weight_zero, isa, signed)
        scales = self.mantissas, self.shifts
        columns = pack_columns(how, folded, scales, self.output_zero, isa, places=places)
        kind = Requantize(how, True, weight_zero != 0)
        values = {"zero_point": self.output_zero, "low": self.low, "high": self.high, "weight_zero": weight_zero}
        return kind, {"columns": guarded(columns), **{n: values[n] for n in kind.slots if n in values}}


def layer_of(n: int, terms: int, signed: bool, large: bool, seed: int = 0) -> Layer:
    rng = np.random.default_rng(seed)
    low, high = (-128, 127) if signed else (0, 255)
    reals = rng.uniform(0.001, 3.0, n) if large else rng.uniform(0.2, 1.0, n) / (150 * terms**0.5)
    mantissas, shifts = quantize_multipliers(list(reals))
    zeros = rng.integers(low, high + 1, 2)
    return Layer(rng.integers(-3000, 3000, n), mantissas, shifts, int(zeros[0]), int(zeros[1]), low + 3, high)


def bytes_of(shape: tuple[int, ...], signed: bool, seed: int = 0) -> Array:
    dtype = np.int8 if signed else np.uint8
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def product_slots(c: Array, m: int, n: int, w: Array, tile: Tile, isa: Isa, mc: int, bits: int = 8) -> dict[str, Any]:
    step = panel_bytes_int8(*w.shape[:-1] if w.ndim == 3 else (1, w.shape[0]), tile.columns, isa, bits)
    shape = {"m": m, "n": n, "mc": mc, "panels": panels(n, tile.columns, isa), "panel_bytes": step}
    matrix = guarded(PACKS[bits](w, tile.columns, isa))
    return {"b": matrix, "c": c, **shape, **dict.fromkeys(tile.slots, matrix)}


@ISAS
@SIGNED
@pytest.mark.parametrize("large", [False, True], ids=["shrinking", "growing"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (1, 70, 33), (3, 5, 64), (13, 64, 40), (20, 31, 100), (50, 259, 16)]
)
def test_int8_products_are_exact(isa: Isa, m: int, k: int, n: int, signed: bool, large: bool) -> None:
    x, w, layer = bytes_of((m, k), signed), bytes_of((k, n), True, 1), layer_of(n, k, signed, large)
    tile = with_prefetch(product_tile(m, n, k, isa, integer=True), isa)
    c = guarded(np.zeros((m, n), x.dtype))
    work = row_work(Shape(m, n, k), tile, panels(n, tile.columns, isa), k, isa)
    how, scale = layer.scaled(w, isa, signed)
    assert (how.scaling is Scaling.WIDE) == large
    slots = product_slots(c, m, n, w, tile, isa, work.mc) | scale
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n}
    run(KernelSpec(gemm_int8(tile, k % isa.group, signed, how), isa), work.tiles, slots, pieces=2)
    np.testing.assert_array_equal(c, layer.expected((x.astype(np.int64) - layer.input_zero) @ w.astype(np.int64)))


@ISAS
@SIGNED
@pytest.mark.parametrize("k", [1, 37, 64, 130])
def test_products_with_a_weight_zero_point_are_exact(isa: Isa, k: int, signed: bool) -> None:
    m, n, zero = 9, 21, -7
    x, w, layer = bytes_of((m, k), signed), bytes_of((k, n), True, 1), layer_of(n, k, signed, False)
    tile = with_prefetch(product_tile(m, n, k, isa, integer=True), isa)
    c = guarded(np.zeros((m, n), x.dtype))
    work = row_work(Shape(m, n, k), tile, panels(n, tile.columns, isa), k, isa)
    how, scale = layer.scaled(w, isa, signed, zero)
    slots = product_slots(c, m, n, w, tile, isa, work.mc) | scale
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n}
    run(KernelSpec(gemm_int8(tile, k % isa.group, signed, how), isa), work.tiles, slots)
    np.testing.assert_array_equal(
        c, layer.expected((x.astype(np.int64) - layer.input_zero) @ (w.astype(np.int64) - zero))
    )


@ISAS
@SIGNED
@ZEROS
@pytest.mark.parametrize("picture", PICTURES)
def test_int8_convolutions_are_exact(isa: Isa, picture: Picture, zero: int, signed: bool) -> None:
    n, taps, channels = 40, picture.window[0] * picture.window[1], picture.channels
    x, w = bytes_of(picture.shape, signed), bytes_of((taps, channels, n), True, 1)
    layer = layer_of(n, taps * channels, signed, False)
    tile = with_prefetch(product_tile(picture.rows, n, taps * channels, isa, integer=True), isa)
    c = guarded(np.zeros((picture.rows, n), x.dtype))
    work = row_work(Shape(picture.rows, n, 1), tile, panels(n, tile.columns, isa), taps * channels, isa)
    how, scale = layer.scaled(w, isa, signed, zero)
    slots = product_slots(c, picture.rows, n, w, tile, isa, work.mc) | scale
    slots |= picture.slots(guarded(x), guarded(np.full(channels, layer.input_zero, x.dtype))) | {
        "k": channels,
        "ldc": n,
    }
    run(KernelSpec(conv_int8(tile, channels % isa.group, signed, how), isa), work.tiles, slots)
    seen = picture.windows(x, layer.input_zero).astype(np.int64) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(np.einsum("rtk,tkn->rn", seen, w.astype(np.int64) - zero)))


@ISAS
@SIGNED
@ZEROS
@pytest.mark.parametrize(
    "picture",
    [
        *FEW_CHANNELS,
        same(2, (5, 50), 3, (3, 3)),
        Picture(2, (4, 41), 3, (3, 3), (1, 2), (1, 1), (0, 0), (2, 20)),
        Picture(1, (5, 33), 4, (3, 2), (1, 1), (2, 1), (0, 0), (1, 32)),
        Picture(1, (3, 40), 2, (2, 3), (1, 1), (1, 1), (0, 0), (2, 30)),
    ],
)
def test_int8_convolutions_with_few_channels_are_exact(isa: Isa, picture: Picture, zero: int, signed: bool) -> None:
    n, patch = 24, Patch(picture.window[0], picture.window[1] * picture.channels)
    x, w, layer = (
        bytes_of(picture.shape, signed),
        bytes_of((patch.depth, n), True, 1),
        layer_of(n, patch.depth, signed, False),
    )
    tile = product_tile(picture.rows, n, patch.depth, isa, integer=True)
    c = guarded(np.zeros((picture.rows, n), x.dtype))
    work = row_work(Shape(picture.rows, n, 1), tile, panels(n, tile.columns, isa), patch.depth, isa)
    how, scale = layer.scaled(w, isa, signed, zero)
    rows = w.reshape(patch.height, patch.segment, n)
    slots = product_slots(c, picture.rows, n, rows, tile, isa, work.mc) | scale | {"ldc": n}
    slots |= picture.slots(guarded(x), guarded(np.full(picture.channels, layer.input_zero, x.dtype)))
    run(KernelSpec(patch_conv_int8(tile, patch, signed, how), isa), work.tiles, slots)
    seen = picture.windows(x, layer.input_zero).astype(np.int64).reshape(picture.rows, -1) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(seen @ (w.astype(np.int64) - zero)))


@ISAS
@SIGNED
@ZEROS
@pytest.mark.parametrize("picture", PICTURES)
def test_int8_depthwise_convolutions_are_exact(isa: Isa, picture: Picture, zero: int, signed: bool) -> None:
    taps, channels = picture.window[0] * picture.window[1], picture.channels
    x, w = bytes_of(picture.shape, signed), bytes_of((*picture.window, channels), True, 1)
    layer = layer_of(channels, taps, signed, False)
    path, wide = slide(picture.window, picture.stride[1], picture.dilation[1], channels, isa), registers_together(isa)
    places = channel_order(channels, wide, isa)
    c = guarded(np.zeros((picture.rows, channels), x.dtype))
    flat = w.reshape(taps, channels)
    slots = picture.slots(guarded(x), guarded(np.full(channels, layer.input_zero, x.dtype)))
    how, scale = layer.scaled(flat, isa, signed, zero, places)
    slots |= _across(picture)
    slots |= scale | {
        "w": guarded(pack_depthwise(w, places, isa, isa.group, wide)),
        "c": c,
        "channels": channels,
        "ldc": channels,
    }
    run(KernelSpec(DepthwiseIntegers(path, wide, signed, how), isa), picture.images * picture.out[0], slots, pieces=2)
    seen = picture.windows(x, layer.input_zero).astype(np.int64) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(np.einsum("rtk,tk->rk", seen, flat.astype(np.int64) - zero)))


def _across(picture: Picture) -> dict[str, int]:
    """The additional task slots of a sliding window."""
    window, stride, dilation, pad = (of[1] for of in (picture.window, picture.stride, picture.dilation, picture.pads))
    return together(window, stride, dilation, pad, picture.size[1], picture.out[1])


@frozen
class Scaled:
    """A kernel that only requantises sums to bytes, one sum per column."""

    how: Requantize
    signed: bool = True
    slots: tuple[str, ...] = ("columns", "x", "y", "low", "high", "zero_point")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as i:
            at = i * k.isa.f32
            x = task.view("x", I32, 1)[at].load(k.isa.f32)
            lanes = self.how.lanes(k, task, at)
            x = fixed(x, lanes) if self.how == RAW else self.how.stored(task, self.signed, x, lanes)
            task.view("y", I32, 1)[at].store(x)


RAW = Requantize(Scaling.WIDE)
"""Multiplication only, without zero point and clamping."""


def _sums(shifts: Array) -> tuple[Array, Array, Array]:
    """Sums, mantissas and shifts in all combinations, including edge cases; their number is a multiple of 16."""
    rng = np.random.default_rng(0)
    edges = [-(1 << 31), -(1 << 31) + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, (1 << 30) - 1, 1 << 30, (1 << 31) - 1]
    mantissas = np.concatenate([[0, 1 << 30, (1 << 30) + 1, (1 << 31) - 1], rng.integers(1 << 30, 1 << 31, 40)])
    random = rng.integers(-(1 << 31), 1 << 31, 300) >> rng.integers(0, 31, 300)
    x, m, s = (a.ravel() for a in np.meshgrid(np.concatenate([edges, random]), mantissas, shifts))
    whole = len(x) // 16 * 16
    return x[:whole], m[:whole], s[:whole]


def scaled_sums(isa: Isa, how: Requantize, columns: Array, x: Array, **bounds: int) -> Array:
    found = guarded(np.zeros(len(x), np.int32))
    limits = {"low": -128, "high": 127, "zero_point": 0} | bounds
    slots = {"columns": guarded(columns), "x": guarded(x.astype(np.int32)), "y": found, **limits}
    run(KernelSpec(Scaled(how), isa), len(x) // isa.f32, slots)
    return found


@ISAS
def test_wide_scaling_is_exact_for_all_sums_and_multipliers(isa: Isa) -> None:
    x, m, s = _sums(np.arange(-31, 8))
    columns = pack_columns(Scaling.WIDE, np.zeros(len(x), np.int32), (m, s), 0, isa)
    np.testing.assert_array_equal(scaled_sums(isa, RAW, columns, x), multiply_by_quantized_multiplier(x, m, s))


@ISAS
@pytest.mark.parametrize("zero", [-128, 0, 127])
def test_narrow_scaling_is_exact_wherever_it_is_chosen(isa: Isa, zero: int) -> None:
    x, m, s = _sums(np.arange(-24, 0))
    chosen = [scaling(np.abs(x[i : i + 1]), (m[i], s[i]), zero) is Scaling.NARROW for i in range(0, len(x), 997)]
    assert any(chosen)
    assert not all(chosen)
    reach = np.abs(x) + (1 << np.maximum(-s - 1, 0)) + ((abs(zero) + 1) << -s)
    kept = np.flatnonzero(reach + 1 < 1 << 31)
    x, m, s = (a[kept][: len(kept) // 16 * 16] for a in (x, m, s))
    assert scaling(np.abs(x), (m, s), zero) is Scaling.NARROW
    columns = pack_columns(Scaling.NARROW, np.zeros(len(x), np.int32), (m, s), zero, isa)
    expected = np.clip(multiply_by_quantized_multiplier(x, m, s) + zero, -100, 90)
    found = scaled_sums(isa, Requantize(Scaling.NARROW, clamped=True), columns, x + (1 << 31), low=-100, high=90)
    np.testing.assert_array_equal(found, expected)
    columns = pack_columns(Scaling.NARROW, np.zeros(len(x), np.int32), (m, s), zero, isa, rectified=True)
    how = Requantize(Scaling.NARROW, clamped=True, rectified=True)
    found = scaled_sums(isa, how, columns, x + (1 << 31), low=zero, high=127)
    np.testing.assert_array_equal(found, np.clip(multiply_by_quantized_multiplier(x, m, s) + zero, zero, 127))


@ISAS
@pytest.mark.parametrize("zero", [-128, 0, 127])
@pytest.mark.parametrize("shift", [-1, -2, -9, -23])
def test_narrow_scaling_holds_up_to_the_largest_sums_it_is_chosen_for(isa: Isa, shift: int, zero: int) -> None:
    # Added to the sum in the product's high half: half the divisor, and the zero point plus one.
    largest = (1 << 31) - 2 - (1 << (-shift - 1)) - ((abs(zero) + 1) << -shift)
    mantissas = np.array([1 << 30, (1 << 31) - 1, 0x5A827999, (1 << 30) + 1])
    for at, mantissa in enumerate(mantissas):
        one = (np.array([mantissa]), np.array([shift]))
        assert scaling(np.array([largest]), one, zero) is Scaling.NARROW, at
        assert scaling(np.array([largest + 1]), one, zero) is Scaling.WIDE, at
    sums = np.array([largest, -largest, largest - 1, 1 - largest, 0, 1, -1, largest // 3])
    x, m = (a.ravel() for a in np.meshgrid(sums, mantissas))
    s = np.full(len(x), shift)
    columns = pack_columns(Scaling.NARROW, np.zeros(len(x), np.int32), (m, s), zero, isa)
    found = scaled_sums(isa, Requantize(Scaling.NARROW), columns, x + (1 << 31))
    np.testing.assert_array_equal(found, np.clip(multiply_by_quantized_multiplier(x, m, s) + zero, -128, 127))


def test_scaling_is_chosen_by_the_worst_column() -> None:
    small, large = np.array([1 << 30, 1 << 30]), np.array([-4, -4])
    assert scaling(np.array([100, 100]), (small, large), 0) is Scaling.NARROW
    assert scaling(np.array([100, (1 << 31) - 1]), (small, large), 0) is Scaling.WIDE
    assert scaling(np.array([100, 100]), (small, np.array([-4, 0])), 0) is Scaling.WIDE
    assert scaling(np.array([100, 100]), (np.array([1 << 30, 0]), np.array([-4, 0])), 0) is Scaling.NARROW


DOUBLES = pytest.mark.parametrize("doubles", [True, False], ids=["by floats", "by integers"])
"""Real multipliers are applied in float64, or in integers on processors without float64."""


@ISAS
@DOUBLES
def test_values_just_below_a_half_are_rounded_down(isa: Isa, doubles: bool) -> None:
    isa = evolve(isa, doubles=doubles)
    below = [float(np.nextafter(h, 0)) for h in (0.5, 1.5, 2.5, 63.5)]
    reals = np.array([*below, *below, 0.5, 1.5, 2.5, 63.5, 0.5, 1.5, 2.5, 63.5])
    x = np.array([1] * 4 + [-1] * 4 + [1] * 4 + [-1] * 4)
    found = scaled_sums(isa, Requantize(real_scaling(isa)), pack_reals(np.zeros(16), reals, isa), x)
    assert found.tolist() == [0, 1, 2, 63, 0, -1, -2, -63, 1, 2, 3, 64, -1, -2, -3, -64]


@ISAS
@DOUBLES
def test_real_scaling_rounds_once_with_halves_away_from_zero(isa: Isa, doubles: bool) -> None:
    isa = evolve(isa, doubles=doubles)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.integers(-(1 << 31), 1 << 31, 500) >> rng.integers(0, 31, 500), np.arange(-262, 262)])
    reals = np.concatenate([rng.uniform(0, 2, 500) ** 20, np.full(524, 0.5)])
    found = scaled_sums(isa, Requantize(real_scaling(isa)), pack_reals(np.zeros(1024), reals, isa), x, zero_point=-5)
    np.testing.assert_array_equal(found, np.clip(round_half_away(x * reals) - 5, -128, 127))


@ISAS
@DOUBLES
def test_products_that_float64_rounds_to_a_half_are_rounded_as_halves(isa: Isa, doubles: bool) -> None:
    isa = evolve(isa, doubles=doubles)
    rng = np.random.default_rng(1)
    x = rng.integers(-(1 << 31), 1 << 31, 4096)
    x[:4] = [-(1 << 31), (1 << 31) - 1, 1, -1]
    near = (rng.integers(0, 127, 4096) + 0.5) / np.maximum(np.abs(x), 1)
    reals = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, 1)])
    x = np.tile(x, 3)
    found = scaled_sums(isa, Requantize(real_scaling(isa)), pack_reals(np.zeros(len(x)), reals, isa), x)
    np.testing.assert_array_equal(found, np.clip(round_half_away(x * reals), -128, 127))


@ISAS
@DOUBLES
@pytest.mark.parametrize("real", [0.0, 2.0**-1022, 2.0**-44, 2.0**-43, 2.0**19, 2.0**20, 2.0**300])
def test_real_multipliers_of_any_size_are_applied(isa: Isa, doubles: bool, real: float) -> None:
    isa = evolve(isa, doubles=doubles)
    x = np.array([0, 1, -1, 2, -3, 127, -128, (1 << 31) - 1, -(1 << 31), 5, -5, 9, 10, -11, 12, 13])
    found = scaled_sums(isa, Requantize(real_scaling(isa)), pack_reals(np.zeros(16), np.full(16, real), isa), x)
    np.testing.assert_array_equal(found, np.clip(round_half_away(np.clip(x * real, -1e9, 1e9)), -128, 127))
