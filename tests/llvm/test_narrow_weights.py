"""Products with low-bit weights, or with blockwise scales along the depth, are exact on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import DType, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.dtype import packed_codes
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.contraction.blockwise.gemm_blocks import GemmBlocks, lift
from onert_llvm.kernels.contraction.blockwise.gemm_codes import GemmCodes
from onert_llvm.kernels.contraction.blockwise.run_sums import RunSums
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.int8_microkernel import step_terms
from onert_llvm.kernels.contraction.scaled_results import BlockScaled
from onert_llvm.schedule.cost_model import (
    Shape,
    code_tile,
    decoded_work,
    product_tile,
    row_work,
    run_tile,
    with_prefetch,
)
from onert_llvm.schedule.float_packing import panel_bytes_f32, panels
from onert_llvm.schedule.weight_packing import pack_run_scales, pack_words, shortest
from onert_llvm.target.isa import Dot, Isa, multiplying, runnable, target

from .contractions import gemm_int8
from .harness import guarded, run
from .natively import specs
from .test_integer_products import ISAS, SIGNED, bytes_of, layer_of, product_slots

EVERY = pytest.mark.parametrize(
    "isa",
    dict.fromkeys(each for isa in runnable() for each in (isa, multiplying(isa, 4))),
    ids=lambda isa: f"{isa.name}-{isa.dot.value.name}",
)
"""Targets, with each of the instructions that they may multiply low-bit weights with."""


@EVERY
@SIGNED
@pytest.mark.parametrize("bits", [4, 2])
@pytest.mark.parametrize("extreme", [False, True], ids=["random", "extreme"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (1, 70, 33), (3, 5, 64), (13, 64, 40), (20, 31, 100), (2, 259, 16)]
)
def test_products_with_low_bit_weights_are_exact(
    isa: Isa, m: int, k: int, n: int, bits: int, signed: bool, extreme: bool
) -> None:
    x, layer = bytes_of((m, k), signed), layer_of(n, k, signed, False)
    w = np.random.default_rng(1).integers(-(1 << bits - 1), 1 << bits - 1, (1, k, n)).astype(np.int8)
    if extreme:
        w[:], x[:] = -(1 << bits - 1), np.iinfo(x.dtype).max
    tile = with_prefetch(product_tile(m, n, k, isa, integer=True), isa)
    c = guarded(np.zeros((m, n), x.dtype))
    work = row_work(Shape(m, n, k), tile, panels(n, tile.columns, isa), k, isa)
    how, scale = layer.scaled(w[0], isa, signed)
    slots = product_slots(c, m, n, w, tile, isa, work.mc, bits) | scale
    slots |= {"a": guarded(x), "k": k, "lda": k, "ldc": n}
    spec = KernelSpec(gemm_int8(tile, k % step_terms(isa, bits), signed, how, bits), isa)
    run(spec, work.tiles, slots, pieces=2)
    np.testing.assert_array_equal(c, layer.expected((x.astype(np.int64) - layer.input_zero) @ w[0].astype(np.int64)))


@ISAS
@pytest.mark.parametrize("short", [False, True], ids=["float32", "float16"])
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize(("m", "length", "runs", "n"), [(1, 16, 1, 1), (1, 32, 3, 70), (7, 256, 2, 33), (4, 48, 5, 64)])
def test_products_with_blockwise_weight_scales_are_exact(
    isa: Isa, m: int, length: int, runs: int, n: int, bits: int, short: bool
) -> None:
    isa = multiplying(isa, bits)
    rng, k, moved = np.random.default_rng(2), length * runs, lift(isa, bits)
    x = bytes_of((m, k), True)
    w = rng.integers(-(1 << bits - 1), 1 << bits - 1, (k, n)).astype(np.int8)
    scales = rng.uniform(0.5, 1.5, (n, runs)).astype(np.float32)
    if short:
        scales = (scales * np.float32(2) ** rng.integers(-13, 12, scales.shape)).astype(np.float16).astype(np.float32)
        scales[0, 0] = np.finfo(np.float16).smallest_normal
    stored_scales = shortest(scales)
    assert stored_scales.dtype == (np.float16 if short else np.float32)
    row_scales, offsets = rng.uniform(0.5, 1.5, m).astype(np.float32), rng.integers(-128, 128, m).astype(np.int32)
    sums, scaled = guarded(np.zeros((m, runs), np.int32)), guarded(np.zeros(-(-n // isa.f32) * isa.f32, np.float32))
    values = guarded(x)
    run(KernelSpec(RunSums(), isa), m * runs, {"x": values, "out": sums, "run": length, "times": -moved}, pieces=2)
    np.testing.assert_array_equal(sums, -moved * x.reshape(m, runs, length).sum(-1, dtype=np.int32))
    expected = np.zeros((m, n), np.float32)
    for number in range(runs):
        part = slice(number * length, (number + 1) * length)
        expected += (x[:, part].astype(np.int64) @ w[part]).astype(np.float32) * scales[:, number]
        scaled[:n] += w[part].sum(0, dtype=np.int64).astype(np.float32) * scales[:, number]
    expected = (expected - offsets.astype(np.float32)[:, None] * scaled[:n]) * row_scales[:, None]
    tile = run_tile(m, n, isa)
    c, cut = guarded(np.zeros((m, n), np.float32)), row_work(Shape(m, n, k), tile, panels(n, tile.columns, isa), k, isa)
    stored = (w.view(np.uint8) + np.uint8(moved)).view(np.int8)[None]
    slots = product_slots(c, m, n, stored, tile, isa, cut.mc, bits)
    slots |= {"a": values, "runs": runs, "ldc": n, "starts": sums, "sums": scaled}
    slots |= {"scales": guarded(pack_run_scales(stored_scales, tile.columns, isa))}
    slots |= {"row_scales": guarded(row_scales), "row_offsets": guarded(offsets)}
    run(KernelSpec(GemmBlocks(tile, length, bits, BlockScaled(), short), isa), cut.tiles, slots, pieces=2)
    np.testing.assert_array_equal(c, expected)


@ISAS
@pytest.mark.parametrize("zeros", [False, True], ids=["middle", "zeros"])
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize(
    ("m", "length", "runs", "n"), [(1, 16, 1, 1), (1, 32, 3, 70), (3, 256, 2, 33), (7, 48, 5, 64), (40, 32, 2, 100)]
)
def test_float_products_with_blockwise_quantised_codes_are_exact(
    isa: Isa, m: int, length: int, runs: int, n: int, bits: int, zeros: bool
) -> None:
    rng, k = np.random.default_rng(3), length * runs
    codes = rng.integers(0, 1 << bits, (n, runs, length)).astype(np.uint8)
    zero = rng.integers(0, 1 << bits, (n, runs)).astype(np.uint8)
    scales = np.float32(2) ** rng.integers(-3, 3, (n, runs)).astype(np.float32)
    x = rng.integers(-9, 10, (m, k)).astype(np.float32)
    weights = (codes.astype(np.float64) - (zero[..., None] if zeros else 1 << bits - 1)) * scales[..., None]
    tile, few, many = code_tile(Shape(m, n, k, row_stride=4 * k), isa)
    c, cut = guarded(np.zeros((m, n), np.float32)), decoded_work(m, tile, panels(n, tile.columns, isa), 2)
    step = k * bits // 8 * tile.columns.widest * isa.f32
    slots = {"m": m, "n": n, "mc": cut.mc, "panels": panels(n, tile.columns, isa), "panel_bytes": step, "ldc": n}
    slots |= {
        "a": guarded(x),
        "c": c,
        "runs": runs,
        "b": guarded(pack_words(packed_codes(codes, bits), tile.columns, isa)),
    }
    slots |= {"scales": guarded(pack_run_scales(shortest(scales), tile.columns, isa))}
    slots |= {"zeros": guarded(pack_run_scales(zero, tile.columns, isa))} if zeros else {}
    room = panel_bytes_f32(1, k, tile.columns, isa)
    slots |= {"rooms": guarded(np.zeros(room, np.uint8)), "room": room} if many else {}
    run(KernelSpec(GemmCodes(tile, length, bits, PLAIN, zeros, few, True, many), isa), cut.tiles, slots, pieces=2)
    np.testing.assert_array_equal(c, x @ weights.reshape(n, k).T)


def test_scales_are_stored_as_float16_only_if_that_is_exact() -> None:
    for number in (0.1, 1e-5, 7e4, 2.0**-15):
        scales = np.full((2, 3), number, np.float32)
        assert shortest(scales) is scales
    assert shortest(np.full((2, 3), 0.125, np.float32)).dtype == np.float16


@pytest.mark.parametrize(
    ("source", "block"),
    [(DType.FLOAT32, None), (DType.FLOAT32, 32), (DType.INT8, None)],
    ids=["floats", "floats in blocks", "bytes"],
)
@pytest.mark.parametrize(("dtype", "name"), [(DType.INT4, "x86-64-v3"), (DType.INT2, "x86-64-v4")])
def test_weights_of_few_bits_are_not_widened_without_vnni(
    dtype: DType, name: str, source: DType, block: int | None
) -> None:
    count = 1 if block is None else 5 * 64 // block
    how = Quantization((0.5,) * count, (0,) * count, None if block is None else 1, block)
    b, own = Builder(), None if source.is_float else Quantization((0.5,), (1,))
    x = b.input(TensorType(source, (3, 64), quantization=own), "x")
    w = b.constant(np.ones((5, 64), np.int8), quantization=how, dtype=dtype)
    *_, product = specs(b.subgraph([b.add(FullyConnected(), x, w, quantization=(own,))]), target(name))
    assert product.isa.dot is Dot.SHORT
