"""Operators that run subgraphs or keep state, and those with options of their own form."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from flatbuffers import flexbuffers

from onert.ir import DType, ModelError, Op, TensorType, unranked
from onert.ir.ops.control import Call, CallOnce, If, While
from onert.ir.ops.convert import Cast
from onert.ir.ops.detection import DetectionPostProcess, NonMaxSuppression
from onert.ir.ops.recurrent import SequenceLSTM
from onert.ir.ops.state import AssignVariable, ReadVariable, VarHandle

from .importer import Operator, Table, activation, fixed


def _loose(operator: Operator) -> tuple[TensorType, ...]:
    """Results of which only the element types are sure: a subgraph may give other shapes than the file says."""
    return tuple(unranked(t.dtype) for t in operator.outputs)


def _declared(operator: Operator) -> tuple[TensorType, ...]:
    return tuple(evolve(t, data=None, quantization=None) for t in operator.outputs)


def flexible_map(raw: bytes) -> dict[str, Any]:
    """Custom options written as a FlexBuffers map; ModelError where they are none."""
    try:
        value = flexbuffers.Loads(bytearray(raw)) if raw else {}
    except Exception as error:  # the reader was not made for hostile bytes: it fails in every way there is
        raise ModelError(f"the custom options are no FlexBuffers map: {type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"the custom options are a {type(value).__name__}, expected a map")
    return value


def _number(options: dict[str, Any], key: str, default: float | None = None) -> Any:
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"the custom option {key} is {value!r}, expected a number")
    return value


def _detection(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options)
    return DetectionPostProcess(
        int(_number(options, "max_detections")),
        int(_number(options, "max_classes_per_detection")),
        int(_number(options, "num_classes")),
        float(_number(options, "nms_score_threshold")),
        float(_number(options, "nms_iou_threshold")),
        float(_number(options, "y_scale")),
        float(_number(options, "x_scale")),
        float(_number(options, "h_scale")),
        float(_number(options, "w_scale")),
        bool(options.get("use_regular_nms", False)),
        int(_number(options, "detections_per_class", 100)),
    )


TABLE: Table = {
    "IF": lambda operator: If(
        operator.integer("then_subgraph_index"), operator.integer("else_subgraph_index"), _loose(operator)
    ),
    "WHILE": lambda operator: While(
        operator.integer("cond_subgraph_index"), operator.integer("body_subgraph_index"), _loose(operator)
    ),
    "CALL": lambda operator: Call(operator.integer("subgraph"), _loose(operator)),
    "CALL_ONCE": lambda operator: CallOnce(operator.integer("init_subgraph_index")),
    "STABLEHLO_COMPOSITE": lambda operator: Call(operator.integer("decomposition_subgraph_index"), _loose(operator)),
    "VAR_HANDLE": lambda operator: VarHandle(operator.text("container"), operator.text("shared_name")),
    "READ_VARIABLE": lambda operator: ReadVariable(_declared(operator)),
    "ASSIGN_VARIABLE": fixed(AssignVariable()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda operator: SequenceLSTM(
        activation(operator), operator.flag("time_major"), operator.number("cell_clip"), operator.number("proj_clip")
    ),
    "NON_MAX_SUPPRESSION_V4": fixed(NonMaxSuppression()),
    "NON_MAX_SUPPRESSION_V5": fixed(NonMaxSuppression()),
    "DENSIFY": lambda operator: Cast(operator.outputs[0].dtype if operator.outputs else DType.FLOAT32),
}
CUSTOM: Table = {
    "TFLite_Detection_PostProcess": _detection,
}
