"""Filter taps outside the image for all outputs of a tile are skipped without changing results."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import onert
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.symbolic.trace import Trace
from onert_llvm.lower.contraction.conv_geometry import MOST_ROWS, Plane
from onert_llvm.lower.contraction.winograd import layers
from onert_llvm.schedule import winograd
from onert_llvm.schedule.cost_model import Shape, packed_tile
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, natively, single
from .picture import same as like_same

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def geometry(size: int, rate: int, window: int = 3, stride: int = 1) -> Plane:
    picture = like_same(1, (size, size), 32, (window, window), stride, rate)
    return Plane(1, (size, size), 32, picture.out, picture.window, picture.stride, picture.dilation, picture.pads)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("plane", "skipped"),
    [
        (geometry(14, 12), True),
        (geometry(33, 24), True),
        (geometry(56, 1), False),
        (geometry(14, 2), False),
        (geometry(14, 1, window=1), False),
    ],
)
def test_taps_are_skipped_if_many_are_outside_the_image(plane: Plane, skipped: bool) -> None:
    assert bool(plane.term_fractions) is skipped
    if skipped:
        assert list(plane.term_fractions) == sorted(plane.term_fractions)  # more outputs together use more taps
        assert len(plane.term_fractions) == MOST_ROWS


@pytest.mark.parametrize(("rate", "skipped"), [(1, False), (2, False), (8, True), (40, True)])
def test_whether_dynamic_sizes_skip_taps_of_dilated_windows_is_no_condition(rate: int, skipped: bool) -> None:
    trace = Trace([33], [132])
    (length,) = trace.lengths
    for size in ((length, 33), (33, length), (length, length)):
        plane = Plane(1, size, 32, size, (3, 3), (1, 1), (rate, rate), (rate, rate))
        assert bool(plane.skipped_fractions) is skipped
    assert not trace.conditions


@pytest.mark.parametrize(("rate", "first"), [(1, 33), (4, 8), (4, 33), (12, 14), (24, 33), (24, 120)])
def test_dynamic_sizes_choose_between_algorithms_by_the_fractions_of_each_length(rate: int, first: int) -> None:
    trace = Trace([first], [132])
    (length,) = trace.lengths
    plane = evolve(geometry(first, rate), size=(length, length), out=(length, length))
    found = [each.index for each in plane.term_fractions]
    for size in range(1, 133):
        expected = geometry(size, rate).term_fractions if rate > 1 else ()
        numbers = trace.at([size])
        same = bool(expected) == bool(found)
        assert (numbers is not None) is same, size
        assert not same or [numbers[at] for at in found] == [*expected]


def test_the_fractions_of_dynamic_sizes_are_those_of_the_first_lengths() -> None:
    (length,) = Trace([33], [132]).lengths
    plane = geometry(33, 24)
    dynamic = evolve(plane, size=(length, length), out=(length, length))
    assert dynamic.skipped_fractions == plane.skipped_fractions == plane.term_fractions


def test_single_outputs_use_the_taps_inside_the_image() -> None:
    plane = geometry(14, 12)
    inside = sum(0 <= o + (t - 1) * 12 < 14 for o in range(14) for t in range(3))
    assert plane.term_fractions[0] == pytest.approx((inside / (14 * 3)) ** 2)


def test_the_cost_model_counts_only_the_remaining_taps() -> None:
    isa, term_fractions = runnable()[-1], geometry(14, 12).term_fractions
    dense, sparse = (packed_tile(Shape(196, 256, 8640, term_fractions=parts), isa) for parts in ((), term_fractions))
    assert sparse.mr < dense.mr
    forms, around = layers.FORMS["exact"], (1, (33, 33), False, (12, 12))
    assert winograd.fastest(forms, 256, 256, isa, *around) is not None
    assert winograd.fastest(forms, 256, 256, isa, *around, (0.01,) * MOST_ROWS) is None


@ISAS
@pytest.mark.parametrize("size", [(9, 13), (2, 2), (5, 30)])
@pytest.mark.parametrize("special", [None, np.inf, np.nan])
def test_layers_with_skipped_taps_keep_their_results(isa: Isa, size: tuple[int, int], special: float | None) -> None:
    x, weight, bias = numbers(2, *size, 17), numbers(20, 3, 3, 17), numbers(20)
    if special is not None:
        weight[3, 0, 0, 1] = weight[7, 1, 1, 5] = special
        x[1, 0, 0, 2] = special
    rate = max(1, min(size) - 1)
    op = Conv2D(Padding.SAME, 1, 1, rate, rate)
    subgraph, inputs = single(op, x, weight, bias, constant=(1, 2))
    assert_close(natively(subgraph, inputs, isa, threads=2), evaluated(subgraph, inputs), 2e-6)


def test_dilated_layers_have_the_bits_of_a_fixed_size_at_every_size() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, None, None, 32)), "x")
    for rate in (4, 12, 24):
        x = b.add(Conv2D(Padding.SAME, 1, 1, rate, rate), x, b.constant(numbers(32, 3, 3, 32)))
    package = Package((b.model([x]),), "dilated")
    execution = onert.Execution(onert.compile(package, num_threads=1))
    for size in ((30, 30), (33, 31), (20, 40), (33, 47), (9, 13), (33, 31)):
        shape = (1, *size, 32)
        fixed = onert.Execution(onert.compile(package, input_shapes={0: shape}, num_threads=1))
        expected, found = (each.run([numbers(*shape)]).values() for each in (fixed, execution))
        np.testing.assert_array_equal(*expected, *found)
