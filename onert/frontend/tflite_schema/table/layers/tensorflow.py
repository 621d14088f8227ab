"""TensorFlow's own operators, which converters write with the prefix `Flex` where TFLite has none (SELECT_TF_OPS)."""

from __future__ import annotations

from onert.frontend.tflite_schema.node_definition import flag, node_attributes
from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed
from onert.ir import DType, ModelError, Op
from onert.ir.ops.control_flow.tensor_lists import ListFrom, ListGet, ListReserve, ListSet, ListStack
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation

_KEYS, _LEGACY = -0.5, -0.75
"""The parameter of the cubic filter: of Keys if pixels are at half positions; otherwise as in early versions."""


def _result(operator: Operator) -> DType:
    """The element type of the first result. Raises ModelError if there is none."""
    if not operator.outputs:
        raise ModelError("has no output, expected one")
    return operator.outputs[0].dtype


def _set_item(operator: Operator) -> Op:
    if flag(node_attributes(operator.custom_options, operator.budget), "resize_if_index_out_of_bounds"):
        raise ModelError("resize_if_index_out_of_bounds is set, expected a list of constant length")
    return ListSet()


def _bicubic(operator: Operator) -> Op:
    attributes = node_attributes(operator.custom_options, operator.budget)
    corners, half = flag(attributes, "align_corners"), flag(attributes, "half_pixel_centers")
    if corners and half:
        raise ModelError("align_corners and half_pixel_centers are set, expected one of them")
    where = Coordinates.ALIGN_CORNERS if corners else Coordinates.HALF_PIXEL if half else Coordinates.ASYMMETRIC
    return Interpolate(Interpolation.CUBIC, (1, 2), where, cubic=_KEYS if half else _LEGACY, exclude_outside=half)


TABLE: Table = {}
CUSTOM: Table = {
    "FlexResizeBicubic": _bicubic,
    "FlexTensorListFromTensor": fixed(ListFrom()),
    "FlexTensorListGetItem": lambda operator: ListGet(_result(operator)),
    "FlexTensorListReserve": fixed(ListReserve()),
    "FlexTensorListSetItem": _set_item,
    "FlexTensorListStack": lambda operator: ListStack(_result(operator)),
}
