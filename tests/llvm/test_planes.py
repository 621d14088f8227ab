"""Convolutions with few output channels match their definition for any windows, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.symbolic.trace import Trace
from onert_llvm.schedule.planes import plane_registers
from onert_llvm.target.isa import Isa, runnable, target

from .harness import Array
from .natively import check, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _drawn(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + shape[-1]).standard_normal(shape).astype(np.float32)


# The image, filters as [n, height, width], padding, dilation and activation.
PICTURES = [
    ((2, 9, 33, 8), (1, 3, 3), Padding.SAME, 1, Activation.NONE),
    ((1, 5, 16, 3), (8, 5, 5), Padding.SAME, 1, Activation.RELU),
    ((1, 7, 40, 16), (3, 9, 9), Padding.SAME, 1, Activation.RELU6),
    ((2, 6, 40, 4), (2, 3, 3), Padding.VALID, 2, Activation.NONE),
    ((1, 12, 50, 5), (4, 3, 3), Padding.SAME, 4, Activation.RELU),
    ((1, 3, 17, 12), (7, 3, 2), Padding.SAME, 1, Activation.TANH),
    ((3, 4, 130, 17), (5, 1, 1), Padding.VALID, 1, Activation.NONE),
    ((2, 5, 70, 16), (1, 1, 1), Padding.VALID, 1, Activation.TANH),
    ((2, 8, 40, 6), (1, 2, 3), Padding.VALID, 1, Activation.NONE),  # two rows of results at a time
    ((1, 3, 20, 5), (1, 9, 3), Padding.SAME, 1, Activation.NONE),
    ((1, 9, 70, 8), (1, 5, 7), Padding.SAME, 1, Activation.RELU),
    ((1, 4, 20, 8), (1, 4, 3), Padding.VALID, 1, Activation.NONE),  # and one, because there are no more
    ((1, 9, 40, 8), (1, 3, 3), Padding.SAME, 2, Activation.NONE),  # or they are dilated
]


@ISAS
@pytest.mark.parametrize(("picture", "filters", "padding", "dilation", "activation"), PICTURES)
def test_convolutions_with_few_output_channels_match_their_definition(
    isa: Isa,
    picture: tuple[int, ...],
    filters: tuple[int, int, int],
    padding: Padding,
    dilation: int,
    activation: Activation,
) -> None:
    weights, bias = _drawn(*filters, picture[3]), _drawn(filters[0])
    op = Conv2D(padding, dilation_height=dilation, dilation_width=dilation, activation=activation)
    check(*single(op, _drawn(*picture), weights, bias, constant=(1, 2)), isa)
    check(*single(op, _drawn(*picture), weights, None, constant=(1,)), isa, threads=2)


def test_non_finite_inputs_affect_only_the_windows_that_contain_them() -> None:
    x = _drawn(1, 6, 40, 8)
    x[0, 0, 0, 3], x[0, 5, 39, 1] = np.inf, np.nan
    for shape in ((1, 3, 3, 8), (4, 5, 3, 8)):
        check(*single(Conv2D(Padding.SAME), x, _drawn(*shape), None, constant=(1,)), target("native"))


def test_results_are_bitwise_equal_for_any_thread_count() -> None:
    isa = target("native")
    given = single(Conv2D(Padding.SAME), _drawn(1, 37, 65, 8), _drawn(2, 3, 3, 8), _drawn(2), constant=(1, 2))
    (one,), *others = (natively(*given, isa, threads) for threads in (1, 2, 3))
    assert all(np.array_equal(one, found) for (found,) in others)


def test_plane_convolutions_are_used_only_if_filters_do_not_fill_a_register() -> None:
    isa = target("x86-64-v4")
    assert plane_registers(1, 9, 8, 256, isa) == 8
    assert not plane_registers(16, 9, 8, 256, isa)
    assert not plane_registers(1, 9, 8, 15, isa), "the image is narrower than a register"
    assert not plane_registers(1, 1, 16, 192, isa)
    assert plane_registers(1, 1, 16, 192, isa, little=False), "a product would apply the epilogue per pixel"


def test_dynamic_widths_keep_the_choice_made_for_the_traced_one() -> None:
    isa = target("x86-64-v4")
    for first in (15, 40, 256):
        trace = Trace([first], [4 * first])
        taken = plane_registers(2, 7, 8, trace.lengths[0], isa)
        for width in range(1, 4 * first):
            alone = plane_registers(2, 7, 8, width, isa)
            if trace.at([width]) is not None:
                assert bool(alone) == bool(taken)
                assert taken * isa.f32 <= width


# The results of all phases are in scratch memory while the convolutions use scratch memory of their own.
TRANSPOSED = [
    ((1, 10, 12, 48), (48, 6, 6), 2),
    ((1, 9, 40, 8), (1, 2, 2), 2),
    ((2, 9, 40, 8), (2, 4, 4), 2),
    ((1, 5, 7, 4), (32, 3, 3), 2),
    ((1, 6, 9, 20), (16, 5, 5), 3),
    ((1, 1, 1, 8), (17, 3, 5), 2),
    ((2, 7, 70, 8), (1, 9, 9), 2),  # phases one by one, from the same planes
    ((1, 5, 66, 24), (3, 5, 4), 2),
    ((1, 4, 65, 5), (1, 7, 7), 3),
]


@ISAS
@pytest.mark.parametrize(("picture", "filters", "stride"), TRANSPOSED)
def test_phases_of_transposed_convolutions_match_their_definition(
    isa: Isa, picture: tuple[int, ...], filters: tuple[int, int, int], stride: int
) -> None:
    shape = np.array([picture[0], stride * picture[1], stride * picture[2], filters[0]], np.int32)
    op = TransposeConv2D(Padding.SAME, stride, stride, Activation.RELU)
    given = single(op, shape, _drawn(*filters, picture[3]), _drawn(*picture), _drawn(filters[0]), constant=(0, 1, 3))
    check(*given, isa, threads=2)
