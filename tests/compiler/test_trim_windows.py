"""Elements of constant windows that only ever meet margins are trimmed, without changing any result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onert.compiler.passes.windows.trim_windows import trim_windows
from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.symbolic.trace import Trace

from .test_movement_passes import numbers, ops, same
from .toy import Draft

SAME, VALID = Padding.SAME, Padding.VALID


SHAPES = {Conv2D: lambda *k: (3, *k, 2), DepthwiseConv2D: lambda *k: (1, *k, 4), Conv3D: lambda *k: (*k, 2, 3)}


def sliding(op: Any, size: tuple[int | None, ...], kernel: tuple[int, ...]) -> Subgraph:
    """A convolution with a constant filter over [2, *size, 2]."""
    d = Draft()
    weight = d.constant(numbers(SHAPES[type(op)](*kernel)))
    return d.graph(d.op(op, d.input(2, *size, 2), weight))


def margins(*sides: tuple[int, int]) -> Margins:
    return Margins(sides)


@pytest.mark.parametrize(
    "op", [Conv2D(SAME, 1, 1, 2, 2), DepthwiseConv2D(margins((9, 9), (1, 1)), 2, 1, 9, 1), Conv2D(SAME, 1, 1, 1, 24)]
)
def test_symbolic_sizes_are_not_trimmed_and_gain_no_conditions(op: Any) -> None:
    trace = Trace([6], [24])
    (length,) = trace.lengths
    for size in ((length, 14), (14, length), (length, length)):
        graph = sliding(op, size, (3, 3))
        before = dict(trace.conditions)
        assert trim_windows(graph) is graph
        assert trace.conditions == before


@pytest.mark.parametrize(
    ("op", "size", "kernel", "expected", "left"),
    [
        (Conv2D(SAME, 1, 1, 24, 24), (14, 14), (3, 3), Conv2D(SAME), (1, 1)),
        (Conv2D(margins((24, 24), (24, 24)), 1, 1, 24, 24), (14, 14), (3, 3), Conv2D(), (1, 1)),
        (Conv2D(SAME, 1, 1, 6, 3), (6, 6), (3, 3), Conv2D(SAME, 1, 1, 1, 3), (1, 3)),
        (Conv2D(SAME, 1, 1, 3, 3), (7, 7), (7, 3), Conv2D(SAME, 1, 1, 3, 3), (5, 3)),
        (Conv2D(margins((5, 0), (0, 0)), 1, 1, 2, 1), (3, 4), (4, 2), Conv2D(margins((1, 0), (0, 0)), 1, 1, 2), (2, 2)),
        (Conv2D(margins((4, 2), (3, 1)), 2, 2, 1, 1), (1, 2), (3, 3), Conv2D(margins((4, 2), (2, 0)), 2, 2), (3, 2)),
        (DepthwiseConv2D(SAME), (1, 2), (3, 5), DepthwiseConv2D(SAME), (1, 3)),
        (Conv3D(SAME), (1, 4, 2), (3, 3, 5), Conv3D(SAME), (1, 3, 3)),
    ],
)
def test_elements_that_only_meet_margins_are_trimmed(
    op: Any, size: tuple[int, ...], kernel: tuple[int, ...], expected: Any, left: tuple[int, ...]
) -> None:
    graph = sliding(op, size, kernel)
    after = trim_windows.checked(trim_windows(graph))
    assert ops(after) == [expected]
    first = 0 if isinstance(op, Conv3D) else 1
    assert after.type(after.operations[0].used[1]).shape[first : first + len(kernel)] == left
    same(graph, after)
    assert trim_windows(after) is after


@pytest.mark.parametrize(
    "graph",
    [
        sliding(Conv2D(SAME, 1, 1, 6, 6), (7, 7), (3, 3)),  # every element meets a corner
        sliding(Conv2D(SAME, 1, 1, 24, 24), (None, 14), (3, 3)),
        sliding(Conv2D(margins((1, 0), (0, 0)), 1, 1, 5, 1), (5, 5), (2, 1)),  # the remaining window would begin inside
        sliding(Conv2D(margins((9, 9), (9, 9)), 40, 40), (2, 2), (3, 3)),  # no element meets the input
        sliding(Conv2D(VALID), (5, 5), (3, 3)),
    ],
)
def test_windows_whose_elements_meet_the_input_are_not_trimmed(graph: Subgraph) -> None:
    assert trim_windows(graph) is graph


def test_windows_that_are_not_constant_are_not_trimmed() -> None:
    d = Draft()
    graph = d.graph(d.op(Conv2D(SAME), d.input(1, 1, 1, 2), d.input(3, 3, 3, 2)))
    assert trim_windows(graph) is graph


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(1, 6),
    st.one_of(st.sampled_from(Padding), st.tuples(st.integers(0, 9), st.integers(0, 9))),
    st.sampled_from([Conv2D, DepthwiseConv2D]),
)  # fmt: skip
def test_trimming_windows_does_not_change_results(
    size: int, kernel: int, stride: int, dilation: int, padding: Any, kind: type[Conv2D] | type[DepthwiseConv2D]
) -> None:
    around = padding if isinstance(padding, Padding) else Margins((padding, (0, 0)))
    room = sum(padding) if isinstance(padding, tuple) else 0
    if around is not SAME and (kernel - 1) * dilation + 1 > size + room:
        return
    graph = sliding(kind(around, stride, 1, dilation, 1), (size, 3), (kernel, 1))
    after = trim_windows.checked(trim_windows(graph))
    same(graph, after)
    assert trim_windows(after) is after


BYTES = Quantization((0.5,), (3,))


@pytest.mark.parametrize(
    ("stored", "zeros"), [(DType.INT8, BYTES), (DType.INT16, Quantization((0.5,), (0,))), (DType.FLOAT32, None)]
)
def test_trimmed_quantised_filters_keep_their_scales(stored: DType, zeros: Quantization | None) -> None:
    d = Draft()
    x = d.quantized_input(stored, zeros, 1, 5, 5, 4) if zeros else d.input(1, 5, 5, 4)
    scales = Quantization((0.1, 0.2, 0.3), (0,) * 3, axis=0)
    weight = d.constant(numbers((3, 3, 3, 4)).astype(np.int8), scales)
    like = TensorType(stored, (1, 5, 5, 3), zeros)
    graph = d.graph(d.op(Conv2D(SAME, 1, 1, 5, 5), x, weight, like=like))
    after = trim_windows.checked(trim_windows(graph))
    assert ops(after) == [Conv2D(SAME)]
    assert after.type(after.operations[0].used[1]).quantization == scales
    same(graph, after)


def test_infinite_elements_that_only_meet_margins_do_not_give_nan() -> None:
    d = Draft()
    values = numbers((3, 3, 3, 2))
    values[:, 0], values[:, :, 2] = np.inf, np.nan
    graph = d.graph(d.op(Conv2D(SAME, 1, 1, 4, 4), d.input(1, 4, 4, 2), d.constant(values)))
    after = trim_windows(graph)
    assert ops(after) == [Conv2D(SAME)]
    same(graph, after)
