"""Convolutions with computed filters, and float64 convolutions, run natively and match their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import Array, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.elementwise.unary import LeakyRelu
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.target.isa import runnable

from .natively import assert_close, evaluated, natively, single

Operands = list[tuple[int, ...] | Array]
ROWS: dict[str, tuple[Op, Operands]] = {
    "a picture searched for a smaller one": (DepthwiseConv2D(Padding.VALID), [(1, 16, 15, 4), (1, 8, 7, 4)]),
    "the same of several for each channel": (DepthwiseConv2D(Padding.SAME, 2, 1), [(2, 9, 8, 3), (1, 7, 6, 6), (6,)]),
    "a few elements of each channel": (
        DepthwiseConv2D(Padding.SAME, activation=Activation.RELU6),
        [(2, 6, 7, 3), (1, 3, 3, 3), (3,)],
    ),
    "groups": (Conv2D(Padding.SAME, 2, 1), [(2, 6, 7, 4), (6, 3, 2, 2), (6,)]),
    "a picture grown to twice its size": (
        TransposeConv2D(Padding.SAME, 2, 2),
        [np.int32([2, 8, 10, 3]), (3, 3, 4, 2), (2, 4, 5, 2)],
    ),
    "the same with all that windows reach": (
        TransposeConv2D(Padding.VALID, 3, 1, Activation.RELU),
        [np.int32([1, 10, 7, 2]), (2, 2, 3, 4), (1, 3, 5, 4), (2,)],
    ),
    "the same with margins": (
        TransposeConv2D(Margins(((1, 0), (0, 2))), 2, 3),
        [np.int32([1, 7, 12, 2]), (2, 3, 3, 4), (1, 4, 5, 4)],
    ),
    "a window that steps over elements": (
        TransposeConv2D(Padding.VALID, 4, 4),
        [np.int32([1, 10, 10, 2]), (2, 2, 2, 3), (1, 3, 3, 3)],
    ),
    "volumes": (Conv3D(Padding.SAME, 2, 1, 2), [(2, 5, 6, 7, 2), (3, 2, 3, 2, 4), (4,)]),
    "volumes with holes and margins": (
        Conv3D(Margins(((1, 0), (2, 1), (0, 1))), dilation_depth=2, dilation_width=2),
        [(1, 6, 5, 6, 2), (3, 2, 2, 2, 3)],
    ),
    "slopes": (LeakyRelu(0.3), [(3, 5)]),
    "another size": (ResizeBilinear(half_pixel_centers=True), [(1, 5, 6, 3), np.int32([9, 4])]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROWS)
def test_convolutions_with_computed_filters_or_float64_are_native(name: str, dtype: type[np.floating]) -> None:
    op, operands = ROWS[name]
    rng = np.random.default_rng(len(name))
    given = [o if isinstance(o, np.ndarray) else rng.uniform(-1, 1, o).astype(dtype) for o in operands]
    constant = [at for at, o in enumerate(operands) if isinstance(o, np.ndarray)]
    graph, inputs = single(op, *given, constant=constant)
    expected = evaluated(graph, inputs)
    single_precision = dtype is np.float32 or isinstance(op, ResizeBilinear)  # which always computes in float32
    for isa in runnable():
        assert_close(natively(graph, inputs, isa), expected, 1e-5 if single_precision else 1e-12, where=isa.name)


def test_nan_affects_only_the_windows_that_contain_it() -> None:
    """Padding takes no part in the sums, so a non-finite filter must not turn it into NaN."""
    for name in ("a few elements of each channel", "groups", "the same with margins", "volumes"):
        op, operands = ROWS[name]
        given = [o if isinstance(o, np.ndarray) else np.ones(o, np.float32) for o in operands]
        at = next(i for i, o in enumerate(operands) if not isinstance(o, np.ndarray) and len(o) >= 4 and i)
        for place in ((0, 0, 0), (0, -1, -1), (-1, 1, 0)):
            given[at][place] = np.nan
            constant = [i for i, o in enumerate(operands) if isinstance(o, np.ndarray)]
            graph, inputs = single(op, *given, constant=constant)
            assert_close(natively(graph, inputs, runnable()[-1]), evaluated(graph, inputs), where=f"{name} {place}")
