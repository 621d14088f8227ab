"""Int8 Winograd convolutions are exact, between guard pages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Quantization, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.kernels.contraction.winograd.winograd_int8 import WinogradInt8
from onert_llvm.lower.contraction.winograd import byte_layers
from onert_llvm.schedule import winograd_int8
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import assert_close, evaluated, natively, subgraph_of
from .winograd_kernels import winograd_kernels

ISAS = [isa for isa in runnable() if winograd_int8.runs(winograd_int8.Layer(16, 16, isa), 16)]


class Shape(NamedTuple):
    """The size of a batch of pictures, their channels, the number of filters, the padding and the dilation."""

    size: tuple[int, int, int]
    channels: int
    n: int
    padding: Padding | Margins
    rates: tuple[int, int]


SHAPES = [
    Shape((1, 8, 9), 16, 16, Padding.SAME, (1, 1)),
    Shape((1, 7, 7), 34, 40, Padding.SAME, (1, 1)),
    Shape((2, 9, 6), 18, 65, Padding.VALID, (1, 1)),
    Shape((3, 5, 11), 64, 24, Padding.SAME, (1, 1)),
    Shape((1, 30, 31), 48, 130, Padding.SAME, (1, 1)),
    Shape((1, 6, 8), 20, 16, Margins(((2, 1), (0, 3))), (1, 1)),
    Shape((1, 17, 19), 32, 24, Padding.SAME, (2, 2)),
    Shape((2, 13, 22), 18, 33, Padding.VALID, (3, 2)),
    Shape((1, 9, 11), 64, 16, Margins(((6, 5), (1, 7))), (6, 4)),
    Shape((1, 5, 21), 16, 16, Padding.SAME, (1, 12)),
    Shape((1, 9, 10), 128, 130, Padding.SAME, (1, 1)),
]
EVERY_ISA = pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[WinogradInt8]:
    return winograd_kernels(monkeypatch, winograd_int8, byte_layers, "WinogradInt8")


def _layer(
    x: Array,
    w: Array,
    zeros: tuple[int, int],
    padding: Padding | Margins,
    scale: float,
    rates: tuple[int, int] = (1, 1),
) -> Subgraph:
    """A layer with per-channel weight scales, or with one scale and a zero point."""
    bias = np.random.default_rng(5).integers(-3000, 3000, len(w)).astype(np.int32)
    filters = Quantization((scale,), (zeros[1],))
    if zeros[1] == 0:
        filters = Quantization(tuple(scale * (1 + i % 5 / 7) for i in range(len(w))), (0,) * len(w), 0)
    own = Quantization(tuple(0.02 * s for s in filters.scales), (0,) * len(filters.scales), filters.axis)
    scales, result = (Quantization((0.02,), (zeros[0],)), filters, own), (Quantization((0.1,), (zeros[0] // 2,)),)
    op = Conv2D(padding, dilation_height=rates[0], dilation_width=rates[1])
    return subgraph_of(Case("", op, (x, w, bias), quantization=scales, result_quantization=result), constant=(1, 2))


@EVERY_ISA
@EVERY_SHAPE
@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
def test_int8_winograd_convolutions_of_any_size_are_exact(
    isa: Isa, taken: list[WinogradInt8], shape: Shape, signed: bool
) -> None:
    size, channels, n, padding, rates = shape
    rng, (low, high, dtype) = np.random.default_rng(n), (-128, 128, np.int8) if signed else (0, 256, np.uint8)
    x = rng.integers(low, high, (*size, channels)).astype(dtype)
    w = rng.integers(low, high, (n, 3, 3, channels)).astype(dtype)
    subgraph = _layer(x, w, (-7, 0) if signed else (119, 141), padding, 0.012 / channels**0.5, rates)
    expected = evaluated(subgraph, [x])
    assert len(np.unique(expected[0])) > 30
    for threads in (1, 2, 3):
        assert_close(natively(subgraph, [x], isa, threads), expected)
    assert len(taken) == 3


@EVERY_ISA
@EVERY_SHAPE
@pytest.mark.parametrize("each", [True, False], ids=["a scale each", "one scale"])
@pytest.mark.parametrize("activation", [Activation.RELU, Activation.TANH])
def test_dynamic_range_winograd_convolutions_are_exact(
    isa: Isa, taken: list[WinogradInt8], shape: Shape, each: bool, activation: Activation
) -> None:
    size, channels, n, padding, rates = shape
    rng = np.random.default_rng(n)
    x = rng.normal(0.3, 1, (*size, channels)).astype(np.float32)
    w, bias = rng.integers(-127, 128, (n, 3, 3, channels)).astype(np.int8), rng.normal(size=n).astype(np.float32)
    scales = Quantization(tuple(1e-3 * (1 + i % 5 / 7) for i in range(n)), (0,) * n, 0)
    op = Conv2D(padding, dilation_height=rates[0], dilation_width=rates[1], activation=activation)
    given = (None, scales if each else Quantization((1e-3,), (0,)), None)
    counts = {len(x), 1}  # a single image may share its command with following work
    for count in counts:
        images = x[:count]
        subgraph = subgraph_of(Case("", op, (images, w, bias), quantization=given), constant=(1, 2))
        expected = evaluated(subgraph, [images])
        for threads in (1, 3):
            assert_close(natively(subgraph, [images], isa, threads), expected)
    assert len(taken) == 2 * len(counts)


@EVERY_ISA
@pytest.mark.parametrize("window", [5, 6])
def test_transposed_convolutions_with_phases_of_3_by_3_are_exact(
    isa: Isa, taken: list[WinogradInt8], window: int
) -> None:
    rng = np.random.default_rng(window)
    x, shape = rng.integers(-128, 128, (1, 14, 13, 32)).astype(np.int8), np.array([1, 28, 26, 16], np.int32)
    w = rng.integers(-127, 128, (16, window, window, 32)).astype(np.int8)
    scales = (None, Quantization((0.01,) * 16, (0,) * 16, 0), Quantization((0.02,), (5,)))
    op = TransposeConv2D(Padding.SAME, stride_height=2, stride_width=2)
    case = Case("", op, (shape, w, x), quantization=scales, result_quantization=(Quantization((0.9,), (-3,)),))
    subgraph = subgraph_of(case, constant=(0, 1))
    for threads in (1, 2):
        assert_close(natively(subgraph, [x], isa, threads), evaluated(subgraph, [x]))
    assert len(taken) == 2


@EVERY_ISA
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("beyond", [0, 1])
def test_the_largest_sums_are_exact_and_larger_ones_use_another_algorithm(
    isa: Isa, taken: list[WinogradInt8], sign: int, beyond: int
) -> None:
    w = np.full((16, 3, 3, 116), sign * 126, np.int8)
    w.reshape(16, -1)[:, : 42 + beyond] = sign * 127  # 255 times their sum is just below 2**25, or above
    x = np.random.default_rng(0).choice(np.array([-128, 127], np.int8), (1, 6, 7, 116), p=[0.01, 0.99])
    x[0, :4, :4] = 127
    subgraph = _layer(x, w, (-128, 0), Padding.VALID, 0.9e-5)
    assert_close(natively(subgraph, [x], isa), evaluated(subgraph, [x]))
    assert len(taken) == 1 - beyond


def test_sums_fit_up_to_26_bits() -> None:
    w = np.zeros((9, 200, 2), np.int16)
    w[:8, :, 1] = -80
    assert winograd_int8.fits(w)
    most = ((1 << 25) - 1) // 255
    for sign in (1, -1):
        w[:, :, 0] = 0
        w.reshape(-1, 2)[: most // 127, 0] = sign * 127
        w.reshape(-1, 2)[most // 127, 0] = sign * (most % 127)
        assert winograd_int8.fits(w)
        w.reshape(-1, 2)[most // 127, 0] += sign
        assert not winograd_int8.fits(w)


@pytest.mark.skipif(not ISAS, reason="no runnable target has products of pairs")
@pytest.mark.parametrize(
    ("size", "channels", "n", "faster"), [(56, 64, 64, True), (40, 32, 32, True), (5, 16, 16, False)]
)
def test_the_cost_model_chooses_by_size(size: int, channels: int, n: int, faster: bool) -> None:
    layer = winograd_int8.Layer(channels, n, ISAS[-1])
    assert winograd_int8.is_faster(layer, (-(-size // 4)) ** 2, size * size) == faster
