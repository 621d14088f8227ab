"""Fuse the update of one row of a list, which converters write as two slices with the new row between them."""

from __future__ import annotations

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import num_elements
from onert.ir.symbolic.sizes import are_ones

Scalars = tuple[int | str, ...]
"""The elements of a small tensor: known numbers, or `%7` for the single element of operand 7."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fuse_update_row(subgraph: Subgraph) -> Subgraph:
    """Replace a concatenation of a list's rows before index i, one row, and the list's rows after i by `PutRow`.

    The result is the same if i is a valid index. Any other index breaks a rule of `PutRow`, as it does of the slices
    (except i = -1, for which these produce a longer list). The result's shape is known if it was before.

        a = Slice(x, [0, 0], [i, -1]); b = Slice(x, [i + 1, 0], [-1, -1]); y = Concat(a, row, b)
            -->   y = PutRow(x, row, i)
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        found = _put(subgraph, operation)
        if found is not None:
            edit.replace(at, found)
    return edit.done()


def _put(subgraph: Subgraph, operation: Operation) -> Operation | None:
    """The replacement of an operation; None if it is not such a concatenation."""
    op = operation.op
    if not isinstance(op, Concat) or op.activation is not Activation.NONE or len(operation.used) != 3:
        return None
    before, row, after = operation.used
    type_ = subgraph.type(row)
    if not type_.ranked or op.axis not in (0, -type_.rank) or not type_.shape or not are_ones(type_.shape[:1]):
        return None
    if any(subgraph.type(i).quantization != type_.quantization for i in operation.outputs + operation.used):
        return None
    first, second = _slice(subgraph, before), _slice(subgraph, after)
    if first is None or second is None or first[0] != second[0]:
        return None
    (source, begin, size), (_, start, rest) = first, second
    index, whole = size[0], (-1,) * type_.rank
    if any(begin) or size[1:] != whole[1:] or any(start[1:]) or rest != whole or not isinstance(index, str):
        return None
    if len(start) != type_.rank or not _follows(subgraph, start[0], index):
        return None
    return Operation(PutRow(), (source, row, int(index[1:])), operation.outputs, operation.location)


def _slice(subgraph: Subgraph, operand: int) -> tuple[int, Scalars, Scalars] | None:
    """The source, begin and size of the slice that produces an operand; None if there is none."""
    producer = definer(subgraph, operand)
    if producer is None or not isinstance(producer.op, Slice):
        return None
    source, begin, size = producer.used
    found = _scalars(subgraph, begin), _scalars(subgraph, size)
    return None if found[0] is None or found[1] is None else (source, found[0], found[1])


def _scalars(subgraph: Subgraph, operand: int) -> Scalars | None:
    """The elements of a vector that is composed of scalars; None if they cannot be determined."""
    data, type_ = subgraph.operands[operand].data, subgraph.type(operand)
    if data is not None:
        return tuple(int(v) for v in data.array.reshape(-1)) if type_.dtype.is_integer else None
    producer = definer(subgraph, operand)
    if producer is not None and isinstance(producer.op, Concat | Pack) and type_.rank == 1:
        parts = [_scalars(subgraph, i) for i in producer.used]
        return None if None in parts else tuple(v for part in parts if part is not None for v in part)
    if not type_.ranked or num_elements(type_.shape) != 1 or type_.dtype not in (DType.INT32, DType.INT64):
        return None
    while producer is not None and isinstance(producer.op, Reshape | ExpandDims):
        operand = producer.used[0]
        producer = definer(subgraph, operand)
    return (f"%{operand}",)


def _follows(subgraph: Subgraph, following: int | str, index: str) -> bool:
    """Whether `following` is the scalar `index` plus 1."""
    producer = definer(subgraph, int(following[1:])) if isinstance(following, str) else None
    if producer is None or not isinstance(producer.op, Binary) or producer.op.activation is not Activation.NONE:
        return False
    if producer.op.kind is not BinaryKind.ADD:
        return False
    sides = [_scalars(subgraph, i) for i in producer.used]
    return sides in ([(index,), (1,)], [(1,), (index,)])
