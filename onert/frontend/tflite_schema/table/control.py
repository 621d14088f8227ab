"""Operators that run subgraphs or hold state, and those with FlexBuffers options."""

from __future__ import annotations

from attrs import evolve

from onert.frontend.tflite_schema.flexbuffer_options import flag, flexible_map, integer, number
from onert.ir import DType, Op, TensorType
from onert.ir.ops.control_flow.control import Call, CallOnce, If, While
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.vision_audio.detection import DetectionPostProcess, NonMaxSuppression

from .importer import Operator, Table, fixed, read, unranked_results


def _declared(operator: Operator) -> tuple[TensorType, ...]:
    return tuple(evolve(t, data=None, quantization=None) for t in operator.outputs)


def _detection(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    return DetectionPostProcess(
        integer(options, "max_detections"),
        integer(options, "max_classes_per_detection"),
        integer(options, "num_classes"),
        number(options, "nms_score_threshold"),
        number(options, "nms_iou_threshold"),
        number(options, "y_scale"),
        number(options, "x_scale"),
        number(options, "h_scale"),
        number(options, "w_scale"),
        flag(options, "use_regular_nms"),
        integer(options, "detections_per_class", 100),
    )


WHILE = read(While, condition="cond_subgraph_index", results=unranked_results)

TABLE: Table = {
    "IF": read(If, then="then_subgraph_index", otherwise="else_subgraph_index", results=unranked_results),
    "WHILE": WHILE,
    "CALL": read(Call, results=unranked_results),
    "CALL_ONCE": read(CallOnce, subgraph="init_subgraph_index"),
    "VAR_HANDLE": read(VarHandle),
    "READ_VARIABLE": read(ReadVariable, results=_declared),
    "ASSIGN_VARIABLE": fixed(AssignVariable()),
    "NON_MAX_SUPPRESSION_V4": fixed(NonMaxSuppression()),
    "NON_MAX_SUPPRESSION_V5": fixed(NonMaxSuppression()),
    "DENSIFY": lambda operator: Cast(operator.outputs[0].dtype if operator.outputs else DType.FLOAT32),
}
CUSTOM: Table = {
    "TFLite_Detection_PostProcess": _detection,
}
