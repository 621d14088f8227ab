"""Less common windowed operators: 3-D convolution, pooling with indices, cumulative sums, window reductions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from onert.frontend.tflite_schema.table.importer import (
    ACTIVATIONS,
    PADDINGS,
    Operator,
    Table,
    fixed,
    read,
)
from onert.ir import ModelError, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.transpose_conv import TransposeConvBias2D
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.ops.reduction.scan import RFFT2D, CumSum
from onert.ir.ops.reduction.unpool import MaxPoolWithArgmax2D, MaxUnpool2D


def _reduce_window(operator: Operator) -> Op:
    code, kinds = operator.integer("reduce_function"), tuple(WindowReduction)
    if not 1 <= code <= len(kinds):
        raise ModelError(f"reduce_function is {code}, expected 1 to {len(kinds)}")
    return ReduceWindow(kinds[code - 1])


TABLE: Table = {
    "CONV_3D": read(Conv3D),
    "CONV_3D_TRANSPOSE": read(TransposeConv3D),
    "CUMSUM": read(CumSum),
    "REDUCE_WINDOW": _reduce_window,
    "RFFT2D": fixed(RFFT2D()),
}


def _words(operator: Operator, count: int) -> tuple[int, ...]:
    """The first 32-bit integers of options stored as a C structure."""
    if len(operator.custom_options) < 4 * count:
        raise ModelError(f"options have {len(operator.custom_options)} bytes, expected at least {4 * count}")
    return struct.unpack_from(f"<{count}i", operator.custom_options)


def _word_padding(code: int) -> Padding:
    """TfLitePadding: 1 is SAME, 2 is VALID."""
    if code not in (1, 2):
        raise ModelError(f"padding is {code}, expected 1 (SAME) or 2 (VALID)")
    return PADDINGS[code - 1]


def _word_activation(code: int) -> Activation:
    if not 0 <= code < len(ACTIVATIONS):
        raise ModelError(f"activation is {code}, expected 0 to {len(ACTIVATIONS) - 1}")
    return ACTIVATIONS[code]


def _transpose_conv_bias(operator: Operator) -> Op:
    """Options: TfLiteTransposeConvParams."""
    padding, stride_width, stride_height = _words(operator, 3)
    return TransposeConvBias2D(_word_padding(padding), stride_height, stride_width)


def _indexed_pool(kind: Callable[..., Op], operator: Operator) -> Op:
    """Options: TfLitePoolParams."""
    padding, stride_width, stride_height, filter_width, filter_height, fused_activation = _words(operator, 6)
    return kind(
        filter_height=filter_height,
        filter_width=filter_width,
        padding=_word_padding(padding),
        stride_height=stride_height,
        stride_width=stride_width,
        activation=_word_activation(fused_activation),
    )


CUSTOM: Table = {
    "Convolution2DTransposeBias": _transpose_conv_bias,
    "MaxPoolingWithArgmax2D": partial(_indexed_pool, MaxPoolWithArgmax2D),
    "MaxUnpooling2D": partial(_indexed_pool, MaxUnpool2D),
}
