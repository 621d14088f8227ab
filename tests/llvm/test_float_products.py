"""Float32 products and convolutions agree with float64 and stay within their tensors, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Fn, Leaf, clamp
from onert_llvm.kernels.contraction.direct.conv_row_f32 import LineConvF32, Lines
from onert_llvm.kernels.contraction.direct.depthwise_f32 import DepthwiseF32
from onert_llvm.kernels.contraction.epilogue import ACC, Epilogue
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.schedule.cost_model import Shape, product_tile, row_work
from onert_llvm.schedule.depthwise import MOST_ACROSS, strip
from onert_llvm.schedule.float_packing import pack_f32, panel_bytes_f32, panels
from onert_llvm.schedule.line_tiles import line_tile
from onert_llvm.target.isa import Isa, runnable

from .contractions import conv_f32, gemm_f32
from .harness import Array, guarded, run
from .picture import FEW_CHANNELS, PICTURES, Picture, same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
PRODUCTS = [(1, 1, 1), (1, 70, 33), (2, 16, 7), (3, 5, 64), (7, 129, 48), (13, 64, 40), (50, 31, 100), (29, 3, 200)]


def _numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _close(found: Array, expected: Array) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=2e-6 * scale * 8, rtol=0)


def _product_slots(c: Array, m: int, n: int, weights: Array, tile: Tile, isa: Isa, mc: int) -> dict[str, Any]:
    b = guarded(pack_f32(weights, tile.columns, isa))
    taps, depth = weights.shape[:-1] if weights.ndim == 3 else (1, weights.shape[0])
    return {
        **dict.fromkeys(tile.slots, b),
        "b": b,
        "c": c,
        "m": m,
        "n": n,
        "mc": mc,
        "panels": panels(n, tile.columns, isa),
        "panel_bytes": panel_bytes_f32(taps, depth, tile.columns, isa),
    }


@ISAS
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(("m", "k", "n"), PRODUCTS)
def test_products_agree_with_float64(isa: Isa, m: int, k: int, n: int, at_end: bool) -> None:
    tile = product_tile(m, n, k, isa)
    spec = KernelSpec(gemm_f32(tile, Epilogue(clamp(ACC, -1.0, 6.0), bias=True)), isa)
    a, b, bias = _numbers((m, k)), _numbers((k, n), 1), _numbers((n,), 2)
    c = guarded(np.zeros((m, n), np.float32), at_end)
    work = row_work(Shape(m, n, k), tile, panels(n, tile.columns, isa), k * 4, isa)
    slots = _product_slots(c, m, n, b, tile, isa, work.mc)
    slots |= {"a": guarded(a, at_end), "k": k, "lda": k, "ldc": n, "bias": guarded(bias, at_end)}
    run(spec, work.tiles, slots, pieces=3)
    _close(c, np.clip(a.astype(np.float64) @ b + bias, -1.0, 6.0))


@ISAS
@pytest.mark.parametrize("mr", [1, 3, 4])
def test_a_residual_and_a_scale_are_applied(isa: Isa, mr: int) -> None:
    m, k, n, wide = 7, 12, 37, 50
    tree: Expr = Apply(Fn.MUL, (Apply(Fn.ADD, (ACC, Leaf("residual"))), Leaf("scale")))
    tile = Tile(mr, columns(n, 2, isa))
    spec = KernelSpec(gemm_f32(tile, Epilogue(tree, columns=("scale",))), isa)
    a, b, scale = _numbers((m, k)), _numbers((k, n), 1), _numbers((n,), 2)
    c = guarded(_numbers((m, wide), 3))
    before = c.copy()
    slots = _product_slots(c, m, n, b, tile, isa, mr)
    slots |= {
        "a": guarded(a),
        "k": k,
        "lda": k,
        "ldc": wide,
        "residual": guarded(before),
        "residual_stride": wide,
        "scale": guarded(scale),
    }
    run(spec, -(-m // mr) * panels(n, tile.columns, isa), slots)
    _close(c[:, :n], (a.astype(np.float64) @ b + before[:, :n]) * scale)
    np.testing.assert_array_equal(c[:, n:], before[:, n:])


@ISAS
@pytest.mark.parametrize("picture", [*PICTURES, same(2, (9, 7), 20, (3, 3), 1, 6)])
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("skips", [False, True])
def test_convolutions_agree_with_float64(isa: Isa, picture: Picture, n: int, skips: bool) -> None:
    x, taps = _numbers(picture.shape), picture.window[0] * picture.window[1]
    w, bias = _numbers((taps, picture.channels, n), 1), _numbers((n,), 2)
    tile = product_tile(picture.rows, n, taps * picture.channels, isa)
    c = guarded(np.zeros((picture.rows, n), np.float32))
    work = row_work(Shape(picture.rows, n, 1), tile, panels(n, tile.columns, isa), taps * picture.channels * 4, isa)
    slots = _product_slots(c, picture.rows, n, w, tile, isa, work.mc)
    slots |= picture.slots(guarded(x), guarded(np.zeros(picture.channels, np.float32)))
    slots |= {"k": picture.channels, "ldc": n, "bias": guarded(bias)}
    run(KernelSpec(conv_f32(tile, Epilogue(bias=True), skips=skips), isa), work.tiles, slots, pieces=2)
    _close(c, np.einsum("rtk,tkn->rn", picture.windows(x, 0), w.astype(np.float64)) + bias)


@ISAS
@pytest.mark.parametrize("picture", [*FEW_CHANNELS, same(1, (2, 2), 4, (5, 5))])
def test_convolutions_with_few_input_channels_agree_with_float64(isa: Isa, picture: Picture) -> None:
    n = 24
    lines = Lines(picture.window[0], picture.window[1] * picture.channels, picture.stride[1] * picture.channels)
    x, w = _numbers(picture.shape), _numbers((lines.depth, n), 1)
    tile = line_tile(picture.window, picture.stride[1], picture.channels, picture.out[1], n, isa, alone=True).tile
    c = guarded(np.zeros((picture.rows, n), np.float32))
    slots = _product_slots(c, picture.rows, n, w, tile, isa, 0)
    slots |= picture.slots(guarded(x), guarded(np.zeros(picture.channels, np.float32)))
    slots |= {"ldc": n, "pitch": picture.out[1]}
    tiles = picture.images * picture.out[0] * panels(n, tile.columns, isa)
    run(KernelSpec(LineConvF32(tile, lines), isa), tiles, slots, pieces=2)
    _close(c, picture.windows(x, 0).reshape(picture.rows, -1) @ w)


@ISAS
@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("chunk", [0, 1, 2])
def test_depthwise_convolutions_agree_with_float64(isa: Isa, picture: Picture, chunk: int) -> None:
    x, taps, channels = _numbers(picture.shape), picture.window[0] * picture.window[1], picture.channels
    w, bias = _numbers((taps, channels), 1), _numbers((channels,), 2)
    across = (picture.window, picture.stride[1], picture.dilation[1], picture.out[1])
    cut = strip(*across, channels, isa, MOST_ACROSS)
    cut, lines = evolve(cut, chunked=chunk > 0, near=chunk > 0 and picture.near), picture.images * picture.out[0]
    c = guarded(np.zeros((picture.rows, channels), np.float32))
    slots = picture.slots(guarded(x), guarded(np.zeros(channels, np.float32)))
    slots |= {"w": guarded(w), "c": c, "channels": channels, "ldc": channels, "bias": guarded(bias)}
    tree = clamp(ACC, 0.0, None)
    chunks = -(-channels // (chunk * isa.f32)) if chunk else 1
    block = max(1, lines - chunk)  # the last block has fewer lines
    slots |= dict(zip(cut.slots, (lines, block, chunk * isa.f32, block * chunks), strict=False))
    tiles = lines * chunks
    run(KernelSpec(DepthwiseF32(cut, Epilogue(tree, bias=True)), isa), tiles, slots, pieces=2)
    _close(c, np.maximum(np.einsum("rtk,tk->rk", picture.windows(x, 0), w.astype(np.float64)) + bias, 0))
