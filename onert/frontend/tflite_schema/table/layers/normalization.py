"""Operators that attention is made of, and its forerunners: normalisations, products of two activations."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, activation, fused, result_other_than
from onert.ir import Op
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.reduction.norm import InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm


def _batch_matmul(operator: Operator) -> Op:
    return BatchMatMul(
        adjoint_x=operator.flag("adj_x"),
        adjoint_y=operator.flag("adj_y"),
        asymmetric_inputs=operator.flag("asymmetric_quantize_inputs"),
        output=result_other_than(operator, 0),
    )


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


TABLE: Table = {
    "BATCH_MATMUL": _batch_matmul,
    "INSTANCE_NORM": _instance_norm,
    "L2_NORMALIZATION": fused(L2Normalization),
    "LOCAL_RESPONSE_NORMALIZATION": _local_response_normalization,
    "RMS_NORM": _rms_norm,
}
CUSTOM: Table = {}
