"""Winograd convolutions match their definition on every target and between guard pages."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from onert.compiler.settings.config_keys import PRECISIONS
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.symbolic.instructions import instructions
from onert.ir.symbolic.trace import Trace
from onert_llvm.kernels.contraction.winograd.form import Form, line_form
from onert_llvm.kernels.contraction.winograd.winograd_f32 import WinogradF32
from onert_llvm.lower.contraction.winograd import layers
from onert_llvm.schedule import winograd
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import assert_close, evaluated, natively
from .winograd_kernels import winograd_kernels

TOLERANCES = {2: 2e-6, 4: 6e-6}
"""Documented tolerances, relative to the range of the results."""

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPES = [
    ((1, 8, 9), 17, 16, Padding.SAME),
    ((1, 7, 7), 33, 40, Padding.SAME),
    ((2, 9, 6), 17, 65, Padding.VALID),
    ((3, 5, 11), 64, 24, Padding.SAME),
    ((1, 30, 31), 48, 130, Padding.SAME),
    ((1, 6, 8), 20, 16, Margins(((2, 1), (0, 3)))),
]


@pytest.fixture(params=[2, 4], ids=["F2", "F4"])
def always(taken: list[WinogradF32], monkeypatch: pytest.MonkeyPatch, request: Any) -> list[WinogradF32]:
    """Use Winograd kernels of one form wherever possible; returns the kernels that were used."""
    monkeypatch.setitem(layers.FORMS, "exact", (Form(request.param),))
    return taken


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[WinogradF32]:
    return winograd_kernels(monkeypatch, winograd, layers, "WinogradF32")


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _layer(
    x: Array,
    weights: Array,
    padding: Padding | Margins,
    bias: Array | None = None,
    stride: int | tuple[int, int] = 1,
    dilation: tuple[int, int] = (1, 1),
) -> Subgraph:
    b, strides = Builder(), stride if isinstance(stride, tuple) else (stride, stride)
    operands = [b.input(TensorType(DType.FLOAT32, x.shape)), b.constant(weights)]
    operands += [] if bias is None else [b.constant(bias)]
    return b.subgraph([b.add(Conv2D(padding, *strides, *dilation, activation=Activation.RELU6), *operands)])


@ISAS
@pytest.mark.parametrize("precision", PRECISIONS)
def test_windows_of_three_are_computed_at_every_precision(isa: Isa, precision: str) -> None:
    x, weights = _numbers(1, 12, 13, 32), _numbers(32, 3, 3, 32, seed=1) / 10
    subgraph = _layer(x, weights, Padding.SAME)
    assert_close(natively(subgraph, [x], isa, precision=precision), evaluated(subgraph, [x]), 2e-2)


@ISAS
@pytest.mark.parametrize(("size", "channels", "n", "padding"), SHAPES)
def test_winograd_convolutions_of_any_size_match_their_definition(
    isa: Isa, always: list[WinogradF32], size: tuple[int, int, int], channels: int, n: int, padding: Padding | Margins
) -> None:
    x, weights = _numbers(*size, channels), _numbers(n, 3, 3, channels, seed=1) / np.float32(3 * channels**0.5)
    subgraph = _layer(x, weights, padding, _numbers(n, seed=2))
    expected = evaluated(subgraph, [x])
    found = [natively(subgraph, [x], isa, threads) for threads in (1, 2, 3)]
    assert always
    for answer in found:
        assert_close(answer, expected, TOLERANCES[always[0].form.outputs])
        np.testing.assert_array_equal(answer[0], found[0][0])


class Windows(NamedTuple):
    """A convolution: the size of its pictures, its window, channels, filters, padding, strides and dilation."""

    size: tuple[int, int, int]
    window: tuple[int, int]
    channels: int
    n: int
    padding: Padding | Margins
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)


OTHER_WINDOWS = [
    Windows((1, 8, 9), (3, 3), 17, 16, Padding.SAME, strides=(2, 2)),
    Windows((2, 9, 6), (3, 3), 33, 65, Padding.VALID, strides=(2, 2)),
    Windows((1, 13, 12), (3, 3), 20, 130, Margins(((2, 1), (0, 3))), strides=(2, 2)),
    Windows((1, 17, 17), (1, 7), 17, 33, Padding.SAME),
    Windows((2, 17, 9), (7, 1), 20, 16, Padding.SAME),
    Windows((2, 1, 23), (1, 3), 40, 65, Padding.VALID),
    Windows((1, 9, 7), (3, 1), 17, 24, Margins(((2, 1), (0, 3)))),
    Windows((1, 13, 12), (5, 5), 20, 48, Padding.SAME),
    Windows((1, 8, 11), (2, 4), 33, 17, Padding.VALID),
    Windows((2, 1, 41), (1, 3), 40, 33, Padding.SAME, dilation=(1, 4)),
    Windows((1, 15, 14), (3, 3), 17, 40, Padding.SAME, dilation=(2, 3)),
    Windows((2, 19, 11), (3, 3), 20, 17, Padding.VALID, dilation=(4, 4)),
    Windows((1, 9, 17), (3, 5), 17, 16, Margins(((2, 5), (0, 3))), dilation=(3, 2)),
    Windows((1, 7, 9), (3, 3), 17, 16, Padding.SAME, dilation=(6, 12)),
    Windows((2, 1, 43), (1, 4), 20, 33, Padding.VALID, strides=(1, 2)),
    Windows((1, 21, 13), (5, 5), 20, 33, Padding.SAME, strides=(2, 2)),
    Windows((1, 23, 9), (7, 1), 20, 33, Margins(((2, 1), (0, 3))), strides=(2, 1)),
    Windows((1, 9, 31), (3, 7), 20, 33, Padding.SAME, strides=(1, 3)),
    Windows((1, 17, 15), (3, 3), 20, 33, Padding.SAME, strides=(2, 1)),
]


@ISAS
@pytest.mark.parametrize("windows", OTHER_WINDOWS)
@pytest.mark.parametrize("value", [0.0, np.inf])
def test_winograd_convolutions_with_other_windows_strides_and_dilations_match_their_definition(
    isa: Isa, taken: list[WinogradF32], windows: Windows, value: float
) -> None:
    size, window, channels, n, padding, strides, dilation = windows
    x, weights = _numbers(*size, channels), _numbers(n, *window, channels, seed=1)
    x[0, size[1] // 2, 3, 5] += np.float32(value)
    weights[3] = 0
    weights /= np.float32(weights[0].size ** 0.5)
    subgraph = _layer(x, weights, padding, _numbers(n, seed=2), strides, dilation)
    found = [natively(subgraph, [x], isa, threads) for threads in (1, 2, 3)]
    forms = {(kernel.form.window, kernel.form.strides, kernel.form.dilated) for kernel in taken}
    assert forms == {(window, strides, dilation != (1, 1))}
    with np.errstate(all="ignore"):
        expected = evaluated(subgraph, [x])
    for answer in found:
        assert_close(answer, expected, TOLERANCES[2])
        np.testing.assert_array_equal(answer[0], found[0][0])


@ISAS
@pytest.mark.parametrize("kind", [UnaryKind.TANH, UnaryKind.RELU])
def test_a_convolution_and_its_epilogue_are_one_kernel(isa: Isa, always: list[WinogradF32], kind: UnaryKind) -> None:
    x, weights = _numbers(1, 9, 9, 20), _numbers(40, 3, 3, 20, seed=1) / np.float32(12)
    b = Builder()
    operand, beside = (b.input(TensorType(DType.FLOAT32, shape)) for shape in (x.shape, (1, 9, 9, 40)))
    made = b.add(Conv2D(Padding.SAME), operand, b.constant(weights), b.constant(_numbers(40, seed=3)))
    subgraph = b.subgraph([b.add(Unary(kind), b.add(Binary(BinaryKind.ADD), made, beside))])
    inputs = [x, _numbers(1, 9, 9, 40, seed=4)]
    found = natively(subgraph, inputs, isa, 2)
    assert len(always) == 1
    assert_close(found, evaluated(subgraph, inputs), TOLERANCES[always[0].form.outputs])


@ISAS
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_non_finite_inputs_stay_in_their_windows(isa: Isa, always: list[WinogradF32], value: float) -> None:
    x, weights = _numbers(1, 8, 7, 20), _numbers(32, 3, 3, 20, seed=1)
    weights[3] = 0
    x[0, 2, 3, 5], x[0, 7, 6, 0] = value, -value
    subgraph = _layer(x, weights / np.float32(12), Padding.SAME)
    with np.errstate(all="ignore"):
        found = natively(subgraph, [x], isa)
        assert always
        assert_close(found, evaluated(subgraph, [x]), TOLERANCES[always[0].form.outputs])


@ISAS
@pytest.mark.parametrize("scale", [1.0, 1e-38])
def test_zero_weights_times_non_finite_inputs_are_nan(
    isa: Isa, taken: list[WinogradF32], scale: float, subtests: pytest.Subtests
) -> None:
    x, weights = _numbers(1, 8, 7, 20), _numbers(32, 3, 3, 20, seed=1)
    weights[_numbers(32, 3, 3, 20, seed=2) < 0] = 0
    x[0, 2, 3], x[0, 7, 6, 0] = np.inf, -np.inf
    for dilation in ((1, 1), (2, 3)):
        subgraph = _layer(x, weights * np.float32(scale), Padding.SAME, dilation=dilation)
        with subtests.test(dilation=dilation), np.errstate(all="ignore"):
            assert_close(natively(subgraph, [x], isa), evaluated(subgraph, [x]), TOLERANCES[2])
    assert len(taken) == 2


def test_weights_that_do_not_survive_the_transform_use_another_algorithm(always: list[WinogradF32]) -> None:
    x, weights = _numbers(1, 8, 8, 20), _numbers(32, 3, 3, 20, seed=1)
    (form,) = layers.FORMS["exact"]
    for value in (np.inf, 1e30) if form.keeps_zeros else (0.0, np.inf, 1e30):
        weights[5, 1, 1, 2] = value
        subgraph = _layer(x, weights, Padding.SAME)
        assert_close(natively(subgraph, [x], runnable()[-1]), evaluated(subgraph, [x]), 2e-6)
    assert not always


@pytest.mark.parametrize(
    ("precision", "size", "channels", "n", "outputs"),
    [
        ("exact", 56, 64, 64, 2),
        ("fast", 56, 64, 64, 4),
        ("exact", 14, 256, 256, 2),
        ("exact", 2, 64, 64, None),
        ("fast", 56, 3, 64, None),
        ("fast", 56, 64, 3, None),
    ],
)
def test_the_cost_model_chooses_by_precision_and_size(
    precision: str, size: int, channels: int, n: int, outputs: int | None
) -> None:
    found = winograd.fastest(layers.FORMS[precision], channels, n, runnable()[-1], 1, (size, size))
    assert (None if found is None else found.form.outputs) == outputs


@pytest.mark.parametrize(
    "forms",
    [(Form(2),), (Form(2), Form(4)), (Form(2, stride=2),), (line_form((1, 7)),)],
    ids=["F2", "F4", "by twos", "line"],
)
@ISAS
def test_a_choice_for_dynamic_sizes_equals_that_for_each_size(isa: Isa, forms: tuple[Form, ...]) -> None:
    r = Random(len(forms))
    held = 0
    for _ in range(40):
        channels, n = r.choice([16, 24, 64, 300]), r.choice([16, 32, 130, 256])
        first = r.randint(1, 60), r.randint(1, 60)
        trace = Trace(first, [4 * size for size in first])
        choice = winograd.fastest(forms, channels, n, isa, 1, trace.lengths)
        assert choice == winograd.fastest(forms, channels, n, isa, 1, first)
        assert not instructions(trace, []).python_checks
        for other in ((first[0], r.randint(1, 4 * first[1])), (2 * first[0], first[1] + 1)):
            if trace.at(other) is not None:
                held += 1
                assert choice == winograd.fastest(forms, channels, n, isa, 1, other)
    assert held > 40
