"""Operators that change or tell a shape and move nothing."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed, index_type, read
from onert.ir import Op
from onert.ir.ops.data_movement.reshape import ExpandDims, Rank, Reshape, ShapeOf, Squeeze


def _reshape(operator: Operator) -> Op:
    given = operator.inputs[1] if len(operator.inputs) > 1 else None
    shape = operator.integers("new_shape")
    # LiteRT's kernel reads an operand of rank 1 alone, its delegate also a constant one of other ranks.
    if given is not None and (given.rank == 1 or given.value is not None or not shape):
        return Reshape()
    if not shape and operator.outputs:  # old converters wrote the shape only on the result
        declared = operator.outputs[0].shape
        several = declared.count(None) > 1  # the others have the 1 that converters write for an open dimension
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
