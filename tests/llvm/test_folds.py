"""Reductions, normalisations, pooling and resizing in float32 match their definitions on every target."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from onert.ir import DType, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.reduction.norm import L2Normalization, RmsNorm
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, single, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _draw(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _ints(*values: Any) -> Array:
    return np.array(values, np.int32)


AXES = [(0,), (1,), (-1,), (1, 2), (0, 2), (0, 1, 3), (1, 3), (0, 1, 2, 3), ()]
TYPES = (np.float32, np.int32, np.int64, np.bool_)


LOGICAL = (Reduction.ANY, Reduction.ALL)
KINDS = [
    pytest.param(kind, dtype, id=f"{kind.name} {dtype.__name__}")
    for kind, dtype in product(Reduction, TYPES)
    if (kind in LOGICAL) is (dtype is np.bool_) and (kind is not Reduction.MEAN or dtype is np.float32)
]


@ISAS
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_reductions_over_any_axes_match_their_definition(isa: Isa, kind: Reduction, dtype: Any) -> None:
    x = _draw(3, 4, 5, 35)
    x = 1 + x / 50 if kind is Reduction.PROD else x * 3
    if dtype in (np.int32, np.int64):
        x = whole_range(dtype, x.shape) | dtype(1)  # odd, because products of even numbers would become 0
    elif dtype is np.bool_:
        x = x > 1.5
    for axes in AXES:
        check(*single(Reduce(kind, keep_dims=len(axes) == 2), x, _ints(*axes), constant=(1,)), isa, threads=2)
    check(*single(Reduce(kind), x[:, :1], _ints(1), constant=(1,)), isa)
    few = x[..., :3].copy()
    if dtype is np.float32:
        few[0, 0] = [[np.nan, 1, 2], [1, np.nan, 2], [1, 2, np.nan], [np.inf, -np.inf, 0], [-0.0, 0.0, -0.0]]
    check(*single(Reduce(kind), few, _ints(-1), constant=(1,)), isa)


@ISAS
def test_reductions_of_booleans_treat_them_as_numbers(isa: Isa) -> None:
    x = _draw(4, 5, 50) > -1.5
    for kind in (Reduction.SUM, Reduction.PROD, Reduction.MAX, Reduction.MIN):
        check(*single(Reduce(kind), x, _ints(1, 2), constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.int64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("kind", list(Extreme), ids=lambda k: k.name)
def test_argmax_and_argmin_match_their_definition(isa: Isa, dtype: Any, kind: Extreme) -> None:
    x = _draw(4, 5, 35) if dtype is np.float32 else whole_range(dtype, (4, 5, 35))
    for axis, wide in ((0, DType.INT64), (1, DType.INT32), (-1, DType.INT64)):
        check(*single(ArgReduce(kind, wide), x, np.array(axis, np.int32), constant=(1,)), isa)


ROWS: list[Op] = [Softmax(), Softmax(0.3), LogSoftmax(), L2Normalization(), RmsNorm(1e-3)]


@ISAS
@pytest.mark.parametrize("kind", list(Extreme), ids=lambda k: k.name)
def test_argmax_in_rows_of_bytes_returns_the_first_position(isa: Isa, kind: Extreme) -> None:
    rng = np.random.default_rng(0)
    for width, dtype in product((1, 2, 16, 21, 64, 255, 256, 300), (np.int8, np.uint8)):
        info = np.iinfo(dtype)
        x = rng.choice(np.array([info.min, info.min + 1, 0, info.max], dtype), (9, width))
        x[0], x[1], x[2], x[2, -1] = info.min, info.max, 1, info.max
        wide = DType.INT64 if width % 2 else DType.INT32
        check(*single(ArgReduce(kind, wide), x, np.array(-1, np.int32), constant=(1,)), isa, threads=2)


@ISAS
@pytest.mark.parametrize("kind", list(Extreme), ids=lambda k: k.name)
def test_argmax_in_rows_with_infinities_and_nan_matches_its_definition(isa: Isa, kind: Extreme) -> None:
    rng = np.random.default_rng(1)
    for width in (2, 21, 50):
        x = rng.choice([np.inf, -np.inf, np.nan, 0, -0.0, 1, 2], (40, width)).astype(np.float32)
        x[:5] = [[np.inf], [-np.inf], [np.nan], [0], [-0.0]]
        check(*single(ArgReduce(kind), x, np.array(-1, np.int32), constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.label)
@pytest.mark.parametrize("width", [1, 7, 16, 33, 200])
def test_softmax_and_normalisations_match_their_definition(isa: Isa, op: Op, width: int) -> None:
    check(*single(op, _draw(3, 4, width) * 5), isa, threads=2)
    if isinstance(op, RmsNorm):
        check(*single(op, _draw(6, width), _draw(width), _draw(1, width)[0]), isa)


POOLS = [
    (2, 2, 2, 2, Padding.VALID), (3, 3, 1, 1, Padding.SAME), (3, 2, 2, 1, Padding.SAME), (7, 9, 1, 1, Padding.VALID),
    (5, 6, 2, 3, Padding.SAME), (20, 20, 1, 1, Padding.SAME), (20, 20, 30, 30, Padding.SAME),
    (1, 1, 2, 2, Padding.SAME),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize("kind", list(Pooling), ids=lambda k: k.name)
@pytest.mark.parametrize(("height", "width", "down", "across", "padding"), POOLS)
@pytest.mark.parametrize("channels", [1, 16, 37])
def test_pools_match_their_definition(
    isa: Isa, kind: Pooling, height: int, width: int, down: int, across: int, padding: Padding, channels: int
) -> None:
    for activation in (Activation.NONE, Activation.RELU6):
        op = Pool2D(kind, height, width, padding, down, across, activation)
        check(*single(op, _draw(2, 7, 9, channels)), isa, threads=2)


@ISAS
@pytest.mark.parametrize("size", [(1, 1), (7, 3), (10, 18), (13, 9), (3, 40)])
@pytest.mark.parametrize(("width", "channels"), [(9, 1), (9, 21), (9, 64), (75, 1), (200, 1)])
def test_bilinear_resizing_matches_its_definition(isa: Isa, size: tuple[int, int], width: int, channels: int) -> None:
    for op in (ResizeBilinear(), ResizeBilinear(align_corners=True), ResizeBilinear(half_pixel_centers=True)):
        check(*single(op, _draw(2, 5, width, channels), _ints(*size), constant=(1,)), isa, threads=2)


def test_operations_without_a_native_form_state_the_reason() -> None:
    axis = np.array(0, np.int32)
    assert why_not(single(Reduce(Reduction.SUM, True), _draw(3), axis)[0]) == "a shape is not known before the run"
    assert why_not(single(Softmax(), _draw(3).astype(np.float16))[0]) == "only float32 is native"
