"""Convolutions with few filters are exact: several outputs side by side, and several small groups together."""

from __future__ import annotations

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Quantization
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert_llvm.lower.contraction import int8_conv_fc
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, natively, subgraph_of

LAYERS = [
    ((1, 9, 16, 5), 1, Conv2D(Padding.SAME)),
    ((2, 7, 12, 16), 3, Conv2D(Padding.SAME)),
    ((1, 6, 15, 4), 2, Conv2D(Padding.SAME)),
    ((1, 8, 32, 3), 4, Conv2D(Padding.SAME, stride_height=2, stride_width=2)),
    ((1, 8, 18, 33), 1, Conv2D(Padding.VALID)),
    ((1, 5, 10, 8), 2, Conv2D(Margins(((2, 1), (3, 5))), dilation_height=2)),
    ((1, 6, 24, 1), 3, DepthwiseConv2D(Padding.SAME)),
]


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize(("size", "n", "op"), LAYERS)
@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize("width", [3, 5])
def test_layers_with_few_filters_are_exact(
    monkeypatch: pytest.MonkeyPatch,
    isa: Isa,
    size: tuple[int, ...],
    n: int,
    op: Conv2D | DepthwiseConv2D,
    signed: bool,
    width: int,
) -> None:
    rng, (low, dtype) = np.random.default_rng(n), (-128, np.int8) if signed else (0, np.uint8)
    taken, chosen = [], int8_conv_fc._abreast

    def recorded(*args: object) -> object:
        found = chosen(*args)  # type: ignore[arg-type]
        taken.append(found[0].abreast)
        return found

    monkeypatch.setattr(int8_conv_fc, "_abreast", recorded)
    x = rng.integers(low, low + 256, size).astype(dtype)
    depthwise = isinstance(op, DepthwiseConv2D)
    w = rng.integers(-127, 128, (1, 3, width, n) if depthwise else (n, 3, width, size[3])).astype(np.int8)
    bias = rng.integers(-3000, 3000, n).astype(np.int32)
    each = tuple(0.01 * (1 + i / 7) / size[3] ** 0.5 for i in range(n))
    filters = Quantization(each, (0,) * n, 3 if depthwise else 0)
    own = Quantization(tuple(0.02 * s for s in each), (0,) * n, 0)
    scales, result = (Quantization((0.02,), (low + 100,)), filters, own), (Quantization((0.1,), (low + 90,)),)
    subgraph = subgraph_of(Case("", op, (x, w, bias), quantization=scales, result_quantization=result), constant=(1, 2))
    expected = evaluated(subgraph, [x])
    assert len(np.unique(expected[0])) > 20
    for threads in (1, 2):
        assert_close(natively(subgraph, [x], isa, threads), expected)
    assert taken or width == 3  # only windows of 3x3 may be multiplied by Winograd's algorithm instead
    assert n > 1 or not taken or min(taken) > 1


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize(("channels", "n", "groups"), [(12, 12, 3), (16, 32, 16), (6, 15, 3), (40, 10, 5), (24, 48, 6)])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_small_groups_are_exact(isa: Isa, channels: int, n: int, groups: int, kind: str) -> None:
    rng, dtype = np.random.default_rng(n), np.dtype(kind)
    least, stored = np.iinfo(dtype).min, np.uint8 if kind == "uint8" else np.int8
    zeros = {"int8": (-20, 0, 10), "uint8": (119, 141, 120), "int16": (0, 0, 0)}[kind]
    x = rng.integers(least, np.iinfo(dtype).max + 1, (2, 6, 7, channels)).astype(dtype)
    w = rng.integers(np.iinfo(stored).min, np.iinfo(stored).max + 1, (n, 3, 3, channels // groups)).astype(stored)
    bias = rng.integers(-3000, 3000, n).astype(np.int64 if kind == "int16" else np.int32)
    each = (0.01,) if zeros[1] else tuple(0.01 * (1 + i % 5 / 7) for i in range(n))
    filters = Quantization(each, (zeros[1],) * len(each), 0 if len(each) > 1 else None)
    own = Quantization(tuple(0.02 * s for s in each), (0,) * len(each), filters.axis)
    scales, result = (Quantization((0.02,), (zeros[0],)), filters, own), (Quantization((0.4,), (zeros[2],)),)
    case = Case("", Conv2D(Padding.SAME), (x, w, bias), quantization=scales, result_quantization=result)
    subgraph = subgraph_of(case, constant=(1, 2))
    expected = evaluated(subgraph, [x])
    assert len(np.unique(expected[0])) > 20
    for threads in (1, 2):
        assert_close(natively(subgraph, [x], isa, threads), expected)
