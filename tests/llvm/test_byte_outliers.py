"""Uint8 layers with a weight zero point: the few weights that do not fit int8 are multiplied separately."""

from __future__ import annotations

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Quantization
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.schedule.byte_outliers import split, with_row_again
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, subgraph_of

ZERO = 141
SHAPES = {
    "first": ((1, 9, 13, 3), (24, 3, 3, 3), 2),
    "pointwise": ((1, 5, 7, 16), (70, 1, 1, 16), 1),
    "odd": ((1, 5, 7, 37), (20, 1, 1, 37), 1),
    "layer": ((3, 130), (33, 130), 1),
}


def _weights(shape: tuple[int, ...], beyond: int, seed: int) -> Array:
    """Random weights, `beyond` of which do not fit int8 once the zero point is subtracted."""
    rng = np.random.default_rng(seed)
    out = rng.integers(ZERO - 128, 256, shape).astype(np.uint8)
    places = rng.choice(out.size, beyond, replace=False)
    out.reshape(-1)[places] = rng.integers(0, ZERO - 128, beyond)
    out.reshape(-1)[places[-1:]] = 0
    return out


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize(("name", "beyond"), [*((name, few) for name in SHAPES for few in (0, 3)), ("odd", 200)])
def test_layers_are_exact(isa: Isa, name: str, beyond: int) -> None:
    shape, filters, stride = SHAPES[name]
    rng = np.random.default_rng(beyond)
    x, w = rng.integers(0, 256, shape).astype(np.uint8), _weights(filters, beyond, beyond)
    bias = rng.integers(-2000, 2000, filters[0]).astype(np.int32)
    op = FullyConnected() if len(shape) == 2 else Conv2D(Padding.SAME, stride, stride)
    scales = Quantization((0.02,), (119,)), Quantization((0.01,), (ZERO,)), Quantization((0.0002,), (0,))
    case = Case("", op, (x, w, bias), quantization=scales, result_quantization=(Quantization((0.1,), (100,)),))
    check(subgraph_of(case, constant=(1, 2)), [x], isa)


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize(("window", "channels", "rows"), [(3, 70, (2,)), (5, 24, (0,)), (3, 9, (0, 1))])
def test_depthwise_layers_are_exact(isa: Isa, window: int, channels: int, rows: tuple[int, ...]) -> None:
    rng = np.random.default_rng(channels)
    x = rng.integers(0, 256, (2, 6, 7, channels)).astype(np.uint8)
    w = rng.integers(ZERO - 128, 256, (1, window, window, channels)).astype(np.uint8)
    for row in rows:
        w[0, row, 1, channels - 2 - row] = row
    bias = rng.integers(-2000, 2000, channels).astype(np.int32)
    scales = Quantization((0.02,), (119,)), Quantization((0.01,), (ZERO,)), Quantization((0.0002,), (0,))
    result = (Quantization((0.1,), (100,)),)
    case = Case("", DepthwiseConv2D(Padding.SAME), (x, w, bias), quantization=scales, result_quantization=result)
    check(subgraph_of(case, constant=(1, 2)), [x], isa)


def test_a_window_row_with_outliers_is_repeated_if_its_group_has_room() -> None:
    stored = np.full((3, 3, 5), -20, np.int8)
    stored[1, 2, 3] = -128
    found = with_row_again(stored, 13, 4)
    assert found is not None
    assert found.number == 1
    total = found.bytes[:3].astype(np.int64)
    total[1] += found.bytes[3]
    np.testing.assert_array_equal(total, stored.astype(np.int64) - 13)
    assert with_row_again(stored[:2], 13, 2) is None
    assert with_row_again(stored, 0, 4) is None
    stored[0, 0, 0] = -128
    assert with_row_again(stored, 13, 4) is None


@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize(("taps", "depth"), [(1, 4), (1, 130), (3, 9), (3, 6)])
def test_bytes_and_outliers_sum_to_the_weights(group: int, taps: int, depth: int) -> None:
    numbers = 0
    for seed in range(20):
        stored = (_weights((taps, depth, 5), 3, seed).astype(np.int16) - 128).astype(np.int8)
        found = split(stored, ZERO - 128, group)
        if found is None:
            continue
        numbers += len(found.taps)
        total = found.bytes.astype(np.int64)
        for tap, first, beyond in zip(found.taps, found.firsts, found.beyond, strict=True):
            assert first + group <= depth
            total[tap, first : first + group] += beyond
        np.testing.assert_array_equal(total, stored.astype(np.int64) - (ZERO - 128))
        np.testing.assert_array_equal(total, found.whole)
    assert numbers > 0


def test_weights_without_a_zero_point_or_with_too_many_outliers_are_not_split() -> None:
    stored = np.full((1, 64, 4), -128, np.int8)
    assert split(stored, 0, 4) is None
    assert split(stored, 5, 4) is None
    assert split(stored[:, :3], 5, 4) is None
    stored[:, 1:] = 0
    assert split(stored, 5, 4) is not None
