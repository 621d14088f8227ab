"""circle's own operators, and the custom operators written by ONE's tools."""

from __future__ import annotations

from onert.frontend.tflite_schema.flexbuffer_options import flag, flexible_map, number, text
from onert.ir import ModelError, Op
from onert.ir.ops.contraction.attention import Attention, Pairing, RoPE
from onert.ir.ops.contraction.binary_coding import BcqFullyConnected, BcqGather
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.data_movement.diagonal import MatrixBandPart
from onert.ir.ops.data_movement.random_numbers import StatelessUniform
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import BatchNorm
from onert.ir.ops.reduction.reduce import Reduce, Reduction

from .importer import Operator, Table, choice, fixed, read, unranked_results


def _run_model(operator: Operator) -> Op:
    location = operator.text("location")
    return Call(operator.external.entry(location, operator.text("signature")), unranked_results(operator))


def _batch_matmul(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    return BatchMatMul(adjoint_x=flag(options, "adj_x"), adjoint_y=flag(options, "adj_y"))


def _all(operator: Operator) -> Op:
    return Reduce(Reduction.ALL, keep_dims=flag(flexible_map(operator.custom_options, operator.budget), "keep_dims"))


def _batch_norm(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    if flag(options, "is_training"):
        raise ModelError("is_training is set, expected a model for inference")
    layout = text(options, "data_format", "NHWC")
    if layout != "NHWC":
        raise ModelError(f"data_format is {layout}, expected NHWC")
    if len(operator.outputs) != 1:
        raise ModelError(f"has {len(operator.outputs)} outputs, expected 1: the statistics are for training")
    return BatchNorm(number(options, "epsilon", 1e-3))


TABLE: Table = {
    "ATTENTION": fixed(Attention()),
    "BCQ_FULLY_CONNECTED": read(BcqFullyConnected, hidden="weights_hidden_size"),
    "BCQ_GATHER": read(BcqGather, hidden="input_hidden_size"),
    "ROPE": lambda operator: RoPE(choice(operator, "mode", (Pairing.HALVES, Pairing.NEIGHBORS))),
    "RUN_MODEL": _run_model,
}
CUSTOM: Table = {
    "AddV2": fixed(Binary(BinaryKind.ADD)),
    "All": _all,
    "BatchMatMulV2": _batch_matmul,
    "BroadcastTo": fixed(BroadcastTo()),
    "Einsum": lambda operator: Einsum(text(flexible_map(operator.custom_options, operator.budget), "equation")),
    **dict.fromkeys(("Erf", "FlexErf"), fixed(Unary(UnaryKind.ERF))),
    "FusedBatchNormV3": _batch_norm,
    "MatrixBandPart": fixed(MatrixBandPart()),
    "StatelessRandomUniform": fixed(StatelessUniform()),
}
