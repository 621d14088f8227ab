"""Operators that compute: convolutions, matrix products, pooling, reductions, normalisations, resizing."""

from __future__ import annotations

from onert.ir import DType, ModelError, Op
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.matmul import BatchMatMul
from onert.ir.ops.norm import InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm
from onert.ir.ops.pool import Pool2D, Pooling
from onert.ir.ops.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.ops.softmax import LogSoftmax, Softmax
from onert.ir.ops.transpose_conv import TransposeConv2D

from .importer import Importer, Operator, Table, activation, dilation, fixed, fused, same_or_valid

_INDEX_TYPES = {2: DType.INT32, 4: DType.INT64}


def _result_other_than(operator: Operator, index: int) -> DType | None:
    """The result's declared element type where it is not that of input `index`."""
    x = operator.inputs[index] if index < len(operator.inputs) else None
    if x is None or not operator.outputs or operator.outputs[0].dtype is x.dtype:
        return None
    return operator.outputs[0].dtype


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


def _transpose_conv(operator: Operator) -> Op:
    return TransposeConv2D(
        padding=same_or_valid(operator),
        stride_height=operator.integer("stride_h"),
        stride_width=operator.integer("stride_w"),
        activation=activation(operator),
    )


def _fully_connected(operator: Operator) -> Op:
    layout = operator.integer("weights_format")
    if layout != 0:
        raise ModelError(f"weights_format is {layout}, expected 0 (DEFAULT): shuffled filters cannot be read")
    return FullyConnected(
        activation=activation(operator),
        keep_dims=operator.flag("keep_num_dims"),
        asymmetric_inputs=operator.flag("asymmetric_quantize_inputs"),
        output=_result_other_than(operator, 0),
    )


def _batch_matmul(operator: Operator) -> Op:
    return BatchMatMul(
        adjoint_x=operator.flag("adj_x"),
        adjoint_y=operator.flag("adj_y"),
        asymmetric_inputs=operator.flag("asymmetric_quantize_inputs"),
        output=_result_other_than(operator, 0),
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


def _softmax(operator: Operator) -> Op:
    return Softmax(beta=operator.number("beta"), output=_result_other_than(operator, 0))


def _local_response_normalization(operator: Operator) -> Op:
    return LocalResponseNormalization(
        radius=operator.integer("radius"),
        bias=operator.number("bias"),
        alpha=operator.number("alpha"),
        beta=operator.number("beta"),
    )


def _instance_norm(operator: Operator) -> Op:
    """An epsilon of 0 stands for the usual one, as ONE's loader reads it."""
    return InstanceNorm(epsilon=operator.number("epsilon") or 1e-5, activation=activation(operator))


def _rms_norm(operator: Operator) -> Op:
    """An epsilon of 0 stands for the usual one, as ONE's loader reads it."""
    return RmsNorm(epsilon=operator.number("epsilon") or 1e-6)


def _resize(kind: type[ResizeBilinear] | type[ResizeNearestNeighbor]) -> Importer:
    def build(operator: Operator) -> Op:
        return kind(
            align_corners=operator.flag("align_corners"),
            half_pixel_centers=operator.flag("half_pixel_centers"),
        )

    return build


TABLE: Table = {
    "ARG_MAX": _arg(Extreme.MAX),
    "ARG_MIN": _arg(Extreme.MIN),
    "AVERAGE_POOL_2D": _pool(Pooling.AVERAGE),
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _dilated(Conv2D),
    "DEPTHWISE_CONV_2D": _dilated(DepthwiseConv2D),
    "FULLY_CONNECTED": _fully_connected,
    "INSTANCE_NORM": _instance_norm,
    "L2_NORMALIZATION": fused(L2Normalization),
    "L2_POOL_2D": _pool(Pooling.L2),
    "LOCAL_RESPONSE_NORMALIZATION": _local_response_normalization,
    "LOG_SOFTMAX": fixed(LogSoftmax()),
    "MAX_POOL_2D": _pool(Pooling.MAX),
    "MEAN": _reduce(Reduction.MEAN),
    "REDUCE_ALL": _reduce(Reduction.ALL),
    "REDUCE_ANY": _reduce(Reduction.ANY),
    "REDUCE_MAX": _reduce(Reduction.MAX),
    "REDUCE_MIN": _reduce(Reduction.MIN),
    "REDUCE_PROD": _reduce(Reduction.PROD),
    "RESIZE_BILINEAR": _resize(ResizeBilinear),
    "RESIZE_NEAREST_NEIGHBOR": _resize(ResizeNearestNeighbor),
    "RMS_NORM": _rms_norm,
    "SOFTMAX": _softmax,
    "SUM": _reduce(Reduction.SUM),
    "TRANSPOSE_CONV": _transpose_conv,
}
CUSTOM: Table = {}
