"""Explicit, possibly uneven padding equals zero padding before the operation, on every target."""

from __future__ import annotations

from typing import Any

import compute_trials as trials
import numpy as np
import pytest
from attrs import evolve
from cases.case import Case

from onert.ir import Array, ModelError, Quantization
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, check, evaluated, natively, single, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIDES = (((0, 1), (0, 1)), ((2, 0), (1, 3)), ((0, 4), (5, 0)))
"""Height and width, before and after: as for stride 2, on one side only, and wider than a window."""


def _without_padding(cases: Any) -> list[Case]:
    return [c for c in cases if c.op.padding is Padding.VALID and c.op.activation.name == "NONE"]


def _inputs(case: Case) -> list[Array]:
    return [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant]


@ISAS
def test_convolutions_with_uneven_padding_match_their_definition(isa: Isa) -> None:
    native = [c for c in _without_padding(trials.convolutions()) if why_not(subgraph_of(c)) is None]
    for i, case in enumerate(native[::3]):
        wide = evolve(case, op=evolve(case.op, padding=Margins(SIDES[i % len(SIDES)])))  # type: ignore[call-arg]
        check(subgraph_of(wide), _inputs(wide), isa, case.tolerance or 1e-6, threads=2)


@pytest.mark.parametrize("sides", SIDES)
def test_explicit_padding_equals_a_separate_pad(sides: tuple[tuple[int, int], ...]) -> None:
    rng = np.random.default_rng(7)
    x, weight, alone = (rng.normal(size=s).astype(np.float32) for s in ((2, 6, 7, 4), (5, 3, 2, 4), (1, 3, 2, 4)))
    around = np.array(((0, 0), *sides, (0, 0)), np.int32)
    (padded,) = evaluated(*single(Pad(), x, around, constant=(1,)))
    for kind, filters in ((Conv2D, weight), (DepthwiseConv2D, alone)):
        (expected,) = evaluated(*single(kind(Padding.VALID, 2, 1), padded, filters, constant=(1,)))
        assert_close(evaluated(*single(kind(Margins(sides), 2, 1), x, filters, constant=(1,))), [expected])


@ISAS
@pytest.mark.parametrize("counted", [False, True])
def test_pools_exclude_or_count_padding(isa: Isa, counted: bool) -> None:
    rng = np.random.default_rng(8)
    for window, stride, sides in (
        ((3, 3), (2, 2), ((1, 1), (1, 0))),
        ((2, 4), (1, 3), ((1, 0), (2, 3))),
        ((5, 5), (1, 1), ((2, 4), (0, 1))),
        ((7, 8), (2, 2), ((6, 0), (0, 7))),
        ((2, 2), (2, 2), ((1, 0), (1, 0))),
    ):
        around = np.array(((0, 0), *sides, (0, 0)), np.int32)
        x = rng.normal(size=(2, 6, 7, 5)).astype(np.float32)
        for kind in Pooling:
            op = Pool2D(kind, *window, Margins(sides), *stride, counts_margins=counted)
            subgraph, inputs = single(op, x)
            check(subgraph, inputs, isa, threads=2)
            if counted is not (kind is Pooling.MAX):
                fill = np.float32(-np.inf if kind is Pooling.MAX else 0)
                (padded,) = evaluated(*single(Pad(), x, around, fill, constant=(1, 2)))
                assert_close(
                    natively(subgraph, inputs, isa),
                    evaluated(*single(Pool2D(kind, *window, Padding.VALID, *stride), padded)),
                )


@ISAS
def test_integer_pools_with_explicit_padding_match_their_definition(isa: Isa) -> None:
    for i, case in enumerate(_without_padding(trials.pools())):
        op = case.op
        assert isinstance(op, Pool2D)
        sides = tuple(
            (min(a, n - 1), min(b, n - 1))
            for (a, b), n in zip(SIDES[i % 3], (op.filter_height, op.filter_width), strict=True)
        )
        wide = evolve(case, op=evolve(op, padding=Margins(sides), counts_margins=i % 2 == 0))
        check(subgraph_of(wide), _inputs(wide), isa, threads=2)


@ISAS
@pytest.mark.parametrize("kind", [Pooling.AVERAGE, Pooling.MAX])
def test_a_window_as_large_as_the_image_may_be_shifted_by_padding(isa: Isa, kind: Pooling) -> None:
    for dtype, zero in ((np.int8, -3), (np.uint8, 90), (np.int16, 0)):
        quantization = Quantization((0.05,), (zero,))
        x = np.arange(1, 19).astype(dtype).reshape(1, 3, 3, 2)
        for counted in (False, True):
            op = Pool2D(kind, 3, 3, Margins(((1, 0), (0, 2))), 3, 3, counts_margins=counted)
            case = Case("", op, (x,), quantization=(quantization,), result_quantization=(quantization,))
            check(subgraph_of(case), [x], isa)


TRANSPOSED = [
    ((3, 3), (2, 2), ((1, 1), (1, 0)), (2, 5, 7)), ((4, 4), (2, 2), ((1, 1), (2, 1)), (1, 4, 6)),
    ((5, 2), (3, 1), ((0, 2), (1, 0)), (1, 3, 4)), ((2, 2), (2, 2), ((0, 0), (1, 1)), (1, 3, 3)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize("at", range(len(TRANSPOSED)))
@pytest.mark.parametrize("more", [0, 1])
def test_transposed_convolutions_crop_by_their_padding(isa: Isa, at: int, more: int) -> None:
    window, strides, sides, (batch, *plane) = TRANSPOSED[at]
    rng = np.random.default_rng(9)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in ((batch, *plane, 4), (6, *window, 4)))
    grown = [(n - 1) * s + w for n, s, w in zip(plane, strides, window, strict=True)]
    whole = np.array([batch, *grown, 6], np.int32)
    (full,) = evaluated(*single(TransposeConv2D(Padding.VALID, *strides), whole, weight, x, constant=(0, 1)))
    kept = [n - a - b + more for n, (a, b) in zip(grown, sides, strict=True)]
    shape = np.array([batch, *kept, 6], np.int32)
    subgraph, inputs = single(TransposeConv2D(Margins(sides), *strides), shape, weight, x, constant=(0, 1))
    check(subgraph, inputs, isa, threads=2)
    (found,) = evaluated(subgraph, inputs)
    (top, _), (left, _) = sides
    inside = full[:, top : top + kept[0], left : left + kept[1]]
    np.testing.assert_allclose(found[:, : inside.shape[1], : inside.shape[2]], inside, atol=1e-5)


@ISAS
def test_3d_convolutions_with_uneven_padding_match_their_definition(isa: Isa) -> None:
    rng = np.random.default_rng(10)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in ((2, 4, 5, 6, 3), (2, 3, 3, 3, 7)))
    op = Conv3D(Margins(((0, 1), (2, 0), (1, 3))), 1, 2, 1)
    check(*single(op, x, weight, constant=(1,)), isa, threads=2)


@pytest.mark.parametrize(
    ("op", "shapes", "rule"),
    [
        (Conv2D(Margins(((0, 1),))), ((1, 4, 4, 2), (2, 3, 3, 2)), "padding is for 1 axes, expected 2"),
        (Conv2D(Margins(((0, -1), (0, 0)))), ((1, 4, 4, 2), (2, 3, 3, 2)), r"padding of axis 0 is \(0, -1\)"),
        (
            Pool2D(Pooling.MAX, 2, 2, Margins(((0, 0), (0, 2)))),
            ((1, 4, 4, 2),),
            r"padding of axis 1 .* expected 0 to 1",
        ),
        (Pool2D(Pooling.AVERAGE, 2, 2, counts_margins=True), ((1, 4, 4, 2),), "counts_margins is set"),
    ],
)
def test_invalid_padding_is_rejected(op: Any, shapes: tuple[tuple[int, ...], ...], rule: str) -> None:
    arrays = [np.zeros(s, np.float32) for s in shapes]
    with pytest.raises(ModelError, match=rule):
        single(op, *arrays)
