"""Operators that compute: convolutions, matrix products, pooling, reductions."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import (
    Importer,
    Operator,
    Table,
    activation,
    dilation,
    fixed,
    result_other_than,
    same_or_valid,
)
from onert.ir import DType, ModelError, Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax

_INDEX_TYPES = {2: DType.INT32, 4: DType.INT64}


def _dilated(kind: type[Conv2D] | type[DepthwiseConv2D]) -> Importer:
    def build(operator: Operator) -> Op:
        return kind(
            padding=same_or_valid(operator),
            stride_height=operator.integer("stride_h"),
            stride_width=operator.integer("stride_w"),
            dilation_height=dilation(operator, "dilation_h_factor"),
            dilation_width=dilation(operator, "dilation_w_factor"),
            activation=activation(operator),
        )

    return build


def _fully_connected(operator: Operator) -> Op:
    layout = operator.integer("weights_format")
    if layout != 0:
        raise ModelError(f"weights_format is {layout}, expected 0 (DEFAULT): shuffled filters cannot be read")
    return FullyConnected(
        activation=activation(operator),
        keep_dims=operator.flag("keep_num_dims"),
        asymmetric_inputs=operator.flag("asymmetric_quantize_inputs"),
        output=result_other_than(operator, 0),
    )


def _pool(kind: Pooling) -> Importer:
    def build(operator: Operator) -> Op:
        return Pool2D(
            kind,
            filter_height=operator.integer("filter_height"),
            filter_width=operator.integer("filter_width"),
            padding=same_or_valid(operator),
            stride_height=operator.integer("stride_h"),
            stride_width=operator.integer("stride_w"),
            activation=activation(operator),
        )

    return build


def _reduce(kind: Reduction) -> Importer:
    def build(operator: Operator) -> Op:
        return Reduce(kind, keep_dims=operator.flag("keep_dims"))

    return build


def _arg(kind: Extreme) -> Importer:
    def build(operator: Operator) -> Op:
        declared = operator.outputs[0].dtype if operator.outputs else DType.INT64
        if not operator.has("output_type"):
            return ArgReduce(kind, declared)
        code = operator.integer("output_type")
        if code not in _INDEX_TYPES:
            raise ModelError(f"output_type is {code}, expected 2 (INT32) or 4 (INT64)")
        return ArgReduce(kind, _INDEX_TYPES[code])

    return build


TABLE: Table = {
    "ARG_MAX": _arg(Extreme.MAX),
    "ARG_MIN": _arg(Extreme.MIN),
    "AVERAGE_POOL_2D": _pool(Pooling.AVERAGE),
    "CONV_2D": _dilated(Conv2D),
    "DEPTHWISE_CONV_2D": _dilated(DepthwiseConv2D),
    "FULLY_CONNECTED": _fully_connected,
    "L2_POOL_2D": _pool(Pooling.L2),
    "LOG_SOFTMAX": fixed(LogSoftmax()),
    "MAX_POOL_2D": _pool(Pooling.MAX),
    "MEAN": _reduce(Reduction.MEAN),
    "REDUCE_ALL": _reduce(Reduction.ALL),
    "REDUCE_ANY": _reduce(Reduction.ANY),
    "REDUCE_MAX": _reduce(Reduction.MAX),
    "REDUCE_MIN": _reduce(Reduction.MIN),
    "REDUCE_PROD": _reduce(Reduction.PROD),
    "SOFTMAX": lambda operator: Softmax(beta=operator.number("beta"), output=result_other_than(operator, 0)),
    "SUM": _reduce(Reduction.SUM),
}
CUSTOM: Table = {}
