"""Convolutions, matrix products, pooling and reductions."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import (
    Operator,
    Table,
    fixed,
    index_type,
    other_result,
    read,
)
from onert.ir import DType, ModelError, Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax


def _fully_connected(operator: Operator) -> Op:
    layout = operator.integer("weights_format")
    if layout != 0:
        raise ModelError(f"weights_format is {layout}, expected 0 (DEFAULT): shuffled weights are not supported")
    return _UNSHUFFLED(operator)


_UNSHUFFLED = read(FullyConnected, keep_dims="keep_num_dims", output=other_result)


def _index(operator: Operator) -> DType:
    if operator.has("output_type"):
        return index_type(operator, "output_type")
    return operator.outputs[0].dtype if operator.outputs else DType.INT64


TABLE: Table = {
    "ARG_MAX": read(ArgReduce, Extreme.MAX, output=_index),
    "ARG_MIN": read(ArgReduce, Extreme.MIN, output=_index),
    "AVERAGE_POOL_2D": read(Pool2D, Pooling.AVERAGE),
    "CONV_2D": read(Conv2D),
    "DEPTHWISE_CONV_2D": read(DepthwiseConv2D),
    "FULLY_CONNECTED": _fully_connected,
    "L2_POOL_2D": read(Pool2D, Pooling.L2),
    "LOG_SOFTMAX": fixed(LogSoftmax()),
    "MAX_POOL_2D": read(Pool2D, Pooling.MAX),
    "MEAN": read(Reduce, Reduction.MEAN),
    "REDUCE_ALL": read(Reduce, Reduction.ALL),
    "REDUCE_ANY": read(Reduce, Reduction.ANY),
    "REDUCE_MAX": read(Reduce, Reduction.MAX),
    "REDUCE_MIN": read(Reduce, Reduction.MIN),
    "REDUCE_PROD": read(Reduce, Reduction.PROD),
    "SOFTMAX": read(Softmax, output=other_result),
    "SUM": read(Reduce, Reduction.SUM),
}
CUSTOM: Table = {}
