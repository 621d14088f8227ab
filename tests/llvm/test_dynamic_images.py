"""Float activations with int8 filters (dynamic range): each image has its own scale; transposed convolutions too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Op, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _drawn(images: int, height: int, width: int, channels: int) -> Array:
    rng = np.random.default_rng(images)
    return (rng.normal(size=(images, height, width, channels)) * (1 + np.arange(images))[:, None, None, None]).astype(
        np.float32
    )


def _filter(*shape: int) -> Array:
    return np.random.default_rng(1).integers(-127, 128, shape).astype(np.int8)


def _scales(count: int, axis: int) -> Quantization:
    scales = tuple(float(np.float32(0.01 * (i + 1))) for i in range(count))
    return Quantization(scales, (0,) * count, axis) if count > 1 else Quantization(scales, (0,))


def _run(
    isa: Isa,
    op: Op,
    operands: tuple[Any, ...],
    place: int,
    scales: Quantization,
    constant: Any,
    tolerance: float = 0.0,
) -> None:
    given: list[Quantization | None] = [None] * len(operands)
    given[place] = scales
    case = Case("", op, operands, quantization=tuple(given), constant=constant)
    inputs = [a for i, a in enumerate(operands) if a is not None and i not in constant]
    check(subgraph_of(case), inputs, isa, tolerance, threads=2)


@ISAS
@pytest.mark.parametrize(("kernel", "channels", "outputs"), [(1, 16, 20), (3, 5, 7), (3, 16, 33), (5, 16, 3)])
@pytest.mark.parametrize("each", [False, True])
def test_convolutions_quantise_images_separately(
    isa: Isa, kernel: int, channels: int, outputs: int, each: bool
) -> None:
    x, w = _drawn(3, 6, 7, channels), _filter(outputs, kernel, kernel, channels)
    bias = np.linspace(-1, 1, outputs).astype(np.float32)
    scales = _scales(outputs if each else 1, 0)
    _run(isa, Conv2D(Padding.SAME, activation=Activation.RELU), (x, w, bias), 1, scales, (1, 2))
    _run(isa, Conv2D(Padding.VALID, 2, 2), (x, w), 1, scales, (1,))


@ISAS
@pytest.mark.parametrize(
    ("groups", "inner", "outer", "kernel"),
    [(2, 16, 20, 1), (4, 5, 3, 3), (32, 2, 2, 3), (37, 1, 1, 5), (5, 1, 3, 2), (300, 1, 1, 2)],
)
@pytest.mark.parametrize("each", [False, True])
def test_grouped_convolutions_quantise_all_channels_of_an_image_together(
    isa: Isa, groups: int, inner: int, outer: int, kernel: int, each: bool
) -> None:
    outputs = groups * outer
    w, bias = _filter(outputs, kernel, kernel, inner), np.linspace(-1, 1, outputs).astype(np.float32)
    scales = _scales(outputs if each else 1, 0)
    for images in (1, 2):
        x = _drawn(images, 6, 7, groups * inner)
        _run(isa, Conv2D(Padding.SAME, activation=Activation.RELU), (x, w, bias), 1, scales, (1, 2))
        _run(isa, Conv2D(Padding.VALID, 2, 2), (x, w), 1, scales, (1,))


@ISAS
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize(
    ("channels", "times", "kernel"), [(16, 1, 3), (5, 1, 2), (37, 1, 5), (6, 3, 3), (1, 8, 3), (1, 20, 1)]
)
def test_depthwise_convolutions_with_several_images_match_their_definition(
    isa: Isa, images: int, channels: int, times: int, kernel: int
) -> None:
    outputs = channels * times
    x, w = _drawn(images, 6, 7, channels), _filter(1, kernel, kernel, outputs)
    bias = np.linspace(-1, 1, outputs).astype(np.float32)
    _run(isa, DepthwiseConv2D(Padding.SAME), (x, w, bias), 1, _scales(outputs, 3), (1, 2))


@ISAS
@pytest.mark.parametrize(
    ("left", "right"), [((2, 3, 5, 7), (7, 6)), ((2, 1, 5, 7), (3, 7, 6)), ((5, 7), (2, 7, 6)), ((2, 5, 7), (2, 7, 20))]
)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_batched_products_with_int8_matrices_broadcast(
    isa: Isa, left: tuple[int, ...], right: tuple[int, ...], turned: tuple[bool, bool], asymmetric: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=left).astype(np.float32), _filter(*right)
    x, y = (np.ascontiguousarray(a.swapaxes(-1, -2)) if t else a for a, t in zip((x, y), turned, strict=True))
    scales = _scales(right[-1], len(right) - (2 if turned[1] else 1))
    _run(isa, BatchMatMul(*turned, asymmetric_inputs=asymmetric), (x, y), 1, scales, (1,))


@ISAS
@pytest.mark.parametrize("asymmetric", [False, True])
def test_rows_with_extreme_or_non_finite_floats_are_quantised_as_defined(isa: Isa, asymmetric: bool) -> None:
    x = np.random.default_rng(3).normal(size=(14, 37)).astype(np.float32)
    largest = np.finfo(np.float32).max
    scales = (1, 0, 1e-45, 1e-41, 1e-38, 1e-36, 1e30, 0.7 * largest / np.abs(x).max())
    x[: len(scales)] *= np.array(scales, np.float32)[:, None]
    x[8:14, 5] = np.nan, np.inf, -np.inf, largest, -largest, -0.0
    x[11, 6] = -largest
    x[13, :5] = 0
    w, one = _filter(20, 37), _scales(1, 0)
    _run(isa, FullyConnected(asymmetric_inputs=asymmetric), (x, w), 1, one, (1,))


@ISAS
@pytest.mark.parametrize(
    ("images", "padding", "kernel", "stride", "each"),
    [
        (1, Padding.SAME, 3, 2, False),
        (2, Padding.SAME, 4, 2, True),
        (1, Padding.VALID, 2, 2, True),
        (2, Padding.SAME, 3, 1, False),
        (1, Padding.VALID, 5, 3, False),
        (2, Padding.VALID, 1, 1, True),
    ],
)
def test_transposed_convolutions_match_their_definition(
    isa: Isa, images: int, padding: Padding, kernel: int, stride: int, each: bool
) -> None:
    height, width = ((n - 1) * stride + kernel if padding is Padding.VALID else n * stride for n in (4, 5))
    x, w = _drawn(images, 4, 5, 6), _filter(9, kernel, kernel, 6)
    size = np.array([images, height, width, 9], np.int32)
    bias = np.linspace(-1, 1, 9).astype(np.float32)
    scales = _scales(9 if each else 1, 0)
    op = TransposeConv2D(padding, stride, stride, Activation.RELU6)
    _run(isa, op, (size, w, x, bias), 1, scales, (0, 1, 3), tolerance=1e-5)
