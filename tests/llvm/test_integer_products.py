"""Products and convolutions of bytes equal TFLite's integer arithmetic bit for bit, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from onert.ir.fixed_point import multiply_by_quantized_multiplier, quantize_multipliers
from onert_llvm.abi import KernelSpec, Task
from onert_llvm.build import I32, Kernel, Val
from onert_llvm.kernels.depthwise_int8 import DepthwiseInt8
from onert_llvm.kernels.dot import GROUP
from onert_llvm.kernels.gemm_int8 import ConvInt8, GemmInt8, PatchConvInt8
from onert_llvm.kernels.patch import Patch
from onert_llvm.kernels.requantize import Requantize, load_lanes, requantize
from onert_llvm.kernels.row_sums import RowSums, WindowSums
from onert_llvm.kernels.tile import Tile
from onert_llvm.layout import TaskLayout
from onert_llvm.packing import folded_bias, pack_columns, pack_depthwise_int8, pack_int8, panels
from onert_llvm.schedule import product_tile, row_work, strip
from onert_llvm.target import Isa, runnable

from .harness import Array, guarded, run
from .picture import PICTURES, Picture, same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIGNED = pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])


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

    def slots(
        self, weights: Array, isa: Isa, signed: bool, weight_zero: int = 0, shifted_sums: bool = False
    ) -> dict[str, Any]:
        folded = folded_bias(weights, self.bias, self.input_zero, weight_zero, isa, signed, shifted_sums)
        columns = pack_columns(folded, self.mantissas, self.shifts, isa)
        limits = {"zero_point": self.output_zero, "low": self.low, "high": self.high}
        return {"columns": guarded(columns), **limits}


def _layer(n: int, terms: int, signed: bool, large: bool, seed: int = 0) -> Layer:
    rng = np.random.default_rng(seed)
    low, high = (-128, 127) if signed else (0, 255)
    reals = rng.uniform(0.001, 3.0, n) if large else rng.uniform(0.2, 1.0, n) / (150 * terms**0.5)
    mantissas, shifts = quantize_multipliers(list(reals))
    zeros = rng.integers(low, high + 1, 2)
    return Layer(rng.integers(-3000, 3000, n), mantissas, shifts, int(zeros[0]), int(zeros[1]), low + 3, high)


def _bytes(shape: tuple[int, ...], signed: bool, seed: int = 0) -> Array:
    dtype = np.int8 if signed else np.uint8
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def _product_slots(c: Array, m: int, n: int, w: Array, tile: Tile, isa: Isa, mc: int) -> dict[str, Any]:
    b, step = pack_int8(w, tile.columns, isa)
    shape = {"m": m, "n": n, "mc": mc, "panels": panels(n, tile.columns, isa), "panel_bytes": step}
    return {"b": guarded(b), "c": c, **shape}


@ISAS
@SIGNED
@pytest.mark.parametrize("large", [False, True], ids=["shrinking", "growing"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (1, 70, 33), (3, 5, 64), (13, 64, 40), (20, 31, 100), (50, 259, 16)]
)
def test_products_are_exact(isa: Isa, m: int, k: int, n: int, signed: bool, large: bool) -> None:
    x, w, layer = _bytes((m, k), signed), _bytes((k, n), True, 1), _layer(n, k, signed, large)
    tile = product_tile(m, n, k, isa, integer=True)
    c = guarded(np.zeros((m, n), x.dtype))
    work = row_work(m, tile, panels(n, tile.columns, isa), k)
    slots = _product_slots(c, m, n, w, tile, isa, work.mc) | layer.slots(w, isa, signed)
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n}
    run(
        KernelSpec(GemmInt8(tile, k % GROUP[isa.dot], signed, Requantize(left=large)), isa), work.tiles, slots, pieces=2
    )
    np.testing.assert_array_equal(c, layer.expected((x.astype(np.int64) - layer.input_zero) @ w.astype(np.int64)))


@ISAS
def test_weights_may_have_a_zero_point(isa: Isa) -> None:
    m, k, n, zero = 9, 37, 21, -7
    x, w, layer = _bytes((m, k), False), _bytes((k, n), True, 1), _layer(n, k, False, False)
    tile = product_tile(m, n, k, isa, integer=True)
    c = guarded(np.zeros((m, n), x.dtype))
    work = row_work(m, tile, panels(n, tile.columns, isa), k)
    sums = x.astype(np.int32).sum(1, dtype=np.int32)
    slots = _product_slots(c, m, n, w, tile, isa, work.mc) | layer.slots(w, isa, False, zero)
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n, "row_sums": guarded(sums), "weight_zero": zero}
    how = Requantize(weight_zero_point=True)
    run(KernelSpec(GemmInt8(tile, k % GROUP[isa.dot], False, how), isa), work.tiles, slots)
    np.testing.assert_array_equal(
        c, layer.expected((x.astype(np.int64) - layer.input_zero) @ (w.astype(np.int64) - zero))
    )


@ISAS
@SIGNED
@pytest.mark.parametrize("picture", PICTURES)
def test_convolutions_are_exact(isa: Isa, picture: Picture, signed: bool) -> None:
    n, taps, channels = 40, picture.window[0] * picture.window[1], picture.channels
    x, w = _bytes(picture.shape, signed), _bytes((taps, channels, n), True, 1)
    layer = _layer(n, taps * channels, signed, False)
    tile = product_tile(picture.rows, n, taps * channels, isa, integer=True)
    c = guarded(np.zeros((picture.rows, n), x.dtype))
    work = row_work(picture.rows, tile, panels(n, tile.columns, isa), taps * channels)
    slots = _product_slots(c, picture.rows, n, w, tile, isa, work.mc) | layer.slots(w, isa, signed)
    slots |= picture.slots(guarded(x), guarded(np.full(channels, layer.input_zero, x.dtype))) | {
        "k": channels,
        "ldc": n,
    }
    run(KernelSpec(ConvInt8(tile, channels % GROUP[isa.dot], signed), isa), work.tiles, slots)
    seen = picture.windows(x, layer.input_zero).astype(np.int64) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(np.einsum("rtk,tkn->rn", seen, w.astype(np.int64))))


@ISAS
@SIGNED
@pytest.mark.parametrize(
    "picture", [same(1, (17, 13), 3, (3, 3), 2), same(2, (9, 8), 1, (10, 4), 2), same(1, (6, 20), 3, (7, 7), 2)]
)
def test_copied_windows_are_exact(isa: Isa, picture: Picture, signed: bool) -> None:
    n, patch = 24, Patch(picture.window[0], picture.window[1] * picture.channels)
    x, w, layer = (
        _bytes(picture.shape, signed),
        _bytes((patch.depth, n), True, 1),
        _layer(n, patch.depth, signed, False),
    )
    tile = product_tile(picture.rows, n, patch.depth, isa, integer=True)
    c = guarded(np.zeros((picture.rows, n), x.dtype))
    work = row_work(picture.rows, tile, panels(n, tile.columns, isa), patch.depth)
    slots = _product_slots(c, picture.rows, n, w, tile, isa, work.mc) | layer.slots(w, isa, signed) | {"ldc": n}
    slots |= picture.slots(guarded(x), guarded(np.full(picture.channels, layer.input_zero, x.dtype)))
    run(KernelSpec(PatchConvInt8(tile, patch, signed), isa), work.tiles, slots)
    seen = picture.windows(x, layer.input_zero).astype(np.int64).reshape(picture.rows, -1) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(seen @ w.astype(np.int64)))


@ISAS
@SIGNED
@pytest.mark.parametrize("zero", [0, -77])
@pytest.mark.parametrize("picture", PICTURES)
def test_depthwise_convolutions_are_exact(isa: Isa, picture: Picture, zero: int, signed: bool) -> None:
    taps, channels = picture.window[0] * picture.window[1], picture.channels
    x, w = _bytes(picture.shape, signed), _bytes((*picture.window, channels), True, 1)
    layer = _layer(channels, taps, signed, False)
    cut = strip(picture.window, picture.stride[1], picture.dilation[1], picture.out[1], channels, isa)
    c = guarded(np.zeros((picture.rows, channels), x.dtype))
    flat = w.reshape(taps, channels)
    slots = picture.slots(guarded(x), guarded(np.full(channels, layer.input_zero, x.dtype)))
    slots |= layer.slots(flat, isa, signed, zero, shifted_sums=True) | {
        "w": guarded(pack_depthwise_int8(w, isa)),
        "c": c,
    }
    slots |= {"channels": channels, "ldc": channels}
    how = Requantize(weight_zero_point=zero != 0)
    slots |= {"weight_zero": zero} if zero else {}
    run(KernelSpec(DepthwiseInt8(cut, signed, how), isa), picture.images * picture.out[0], slots, pieces=2)
    seen = picture.windows(x, layer.input_zero).astype(np.int64) - layer.input_zero
    np.testing.assert_array_equal(c, layer.expected(np.einsum("rtk,tk->rk", seen, flat.astype(np.int64) - zero)))


@ISAS
@SIGNED
@pytest.mark.parametrize("picture", PICTURES)
def test_sums_of_windows_are_exact(isa: Isa, picture: Picture, signed: bool) -> None:
    x, zero = _bytes(picture.shape, signed), 3
    count = picture.images * picture.size[0] * picture.size[1]
    pixels, sums = guarded(np.zeros(count, np.int32)), guarded(np.zeros(picture.rows, np.int32))
    rows = {"x": guarded(x), "lda": picture.channels, "k": picture.channels, "out": pixels}
    run(KernelSpec(RowSums(signed), isa), count, rows, pieces=2)
    np.testing.assert_array_equal(pixels, x.reshape(count, -1).astype(np.int64).sum(1))
    plain = evolve(picture, channels=1)
    outside = guarded(np.array([zero * picture.channels], np.int32))
    run(KernelSpec(WindowSums(), isa), picture.rows, plain.slots(pixels, outside) | {"out": sums}, pieces=2)
    np.testing.assert_array_equal(sums, picture.windows(x, zero).sum((1, 2)))


SCALING = TaskLayout(("columns", "x", "y"))


@frozen
class Scaling:
    """A kernel of nothing but the arithmetic of `requantize`, one sum for each column."""

    how: Requantize
    name: str = "scaling"
    layout: TaskLayout = SCALING

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as i:
            at = i * k.isa.f32
            x = task.view("x", I32, 1)[at].load(k.isa.f32)
            task.view("y", I32, 1)[at].store(requantize(self.how, x, load_lanes(k, task, at)))


@ISAS
@pytest.mark.parametrize("left", [False, True])
def test_scaling_is_exact_for_every_sum_and_multiplier(isa: Isa, left: bool) -> None:
    rng = np.random.default_rng(0)
    edges = np.array(
        [-(1 << 31), -(1 << 31) + 1, -(1 << 30), -3, -2, -1, 0, 1, 2, 3, (1 << 30) - 1, 1 << 30, (1 << 31) - 1]
    )
    mantissas = np.concatenate([[0, 1 << 30, (1 << 30) + 1, (1 << 31) - 1], rng.integers(1 << 30, 1 << 31, 40)])
    shifts = np.arange(-31, 8 if left else 1)
    random = rng.integers(-(1 << 31), 1 << 31, 30) >> rng.integers(0, 31, 30)
    x, m, s = (a.ravel() for a in np.meshgrid(np.concatenate([edges, random]), mantissas, shifts))
    whole = len(x) // 16 * 16
    x, m, s = x[:whole], m[:whole], s[:whole]
    found = guarded(np.zeros(whole, np.int32))
    columns = pack_columns(np.zeros(whole, np.int32), m, s, isa)
    slots = {"columns": guarded(columns), "x": guarded(x.astype(np.int32)), "y": found}
    run(KernelSpec(Scaling(Requantize(left=left)), isa), whole // isa.f32, slots)
    np.testing.assert_array_equal(found, multiply_by_quantized_multiplier(x, m, s))
