"""Operators that change or return a shape without moving elements."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed, index_type, read
from onert.ir import Op
from onert.ir.ops.data_movement.reshape import ExpandDims, Rank, Reshape, ShapeOf, Squeeze


def _reshape(operator: Operator) -> Op:
    given = operator.inputs[1] if len(operator.inputs) > 1 else None
    shape = operator.integers("new_shape")
    # LiteRT's kernel reads the shape only from an operand of rank 1; its delegate also from a constant of other ranks.
    if given is not None and (given.rank == 1 or given.value is not None or not shape):
        return Reshape()
    if not shape and operator.outputs:  # old converters stored the shape only with the result
        declared = operator.outputs[0].shape
        several = declared.count(None) > 1  # then use the 1 that converters write
        return Reshape(tuple((1 if several else -1) if d is None else d for d in declared))
    return Reshape(() if shape == (0,) else shape)


TABLE: Table = {
    "RESHAPE": _reshape,
    "SQUEEZE": read(Squeeze, axes="squeeze_dims"),
    "EXPAND_DIMS": fixed(ExpandDims()),
    "SHAPE": lambda operator: ShapeOf(index_type(operator, "out_type")),
    "RANK": fixed(Rank()),
}
CUSTOM: Table = {}
