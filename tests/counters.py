"""Parts of models that keep a sum from run to run."""

from __future__ import annotations

from onert.ir import Array, DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

_ADD = Binary(BinaryKind.ADD)
_ONE = TensorType(DType.FLOAT32, (1,))


def resource_sum(b: Builder, x: int) -> int:
    """The sum of `x` and the resource variable "sum", its next value. Subgraph 1 gives the variable its first value."""
    b.add_many(CallOnce(1))
    handle = b.add(VarHandle("", "sum"))
    total = b.add(_ADD, b.add(ReadVariable((b.type(x),)), handle), x)
    b.add_many(AssignVariable(), handle, total)
    return total


def first_value(value: Array) -> Subgraph:
    """A subgraph that sets the resource variable "sum"."""
    once = Builder("initialise")
    once.add_many(AssignVariable(), once.add(VarHandle("", "sum")), once.constant(value))
    return once.subgraph([])


def running_sum() -> tuple[Builder, int]:
    """A graph with one input element, and the sum of its values so far."""
    b = Builder("sum")
    x, total = b.input(_ONE, "x"), b.variable(_ONE, "total")
    new = b.add(_ADD, x, total)
    b.update(total, new)
    return b, new
