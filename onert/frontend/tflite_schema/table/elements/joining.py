"""Operators that concatenate and split tensors."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, read
from onert.ir import ModelError, Op
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack


def _unpack(operator: Operator) -> Op:
    count = operator.integer("num")
    if count != len(operator.outputs):
        raise ModelError(f"num is {count}, but there are {len(operator.outputs)} outputs")
    return Unpack(count, operator.integer("axis"))


def _pack(operator: Operator) -> Op:
    count = operator.integer("values_count")
    if count != len(operator.inputs):
        raise ModelError(f"values_count is {count}, but there are {len(operator.inputs)} inputs")
    return Pack(operator.integer("axis"))


TABLE: Table = {
    "CONCATENATION": read(Concat),
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": read(Split, count="num_splits"),
    "SPLIT_V": read(SplitV, count="num_splits"),
}
CUSTOM: Table = {}
