"""Resource variables: native code works on copies of them, which a run takes before and gives back after."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import Side, move, operand, side
from onert_llvm.lower.variable_slots import key_of

Stateful = VarHandle | ReadVariable | AssignVariable


def why_not(op: Stateful, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    if isinstance(op, VarHandle):
        return None
    elements = types.output if isinstance(op, ReadVariable) else types.input(1)
    if not elements.is_static:
        return "a shape is not known before the run"
    if elements.dtype.is_handle or 0 in elements.shape:
        return "the variable has no plain elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A handle, made when a kernel is bound; or elements copied from the copy of a variable, or to it."""
    (at,) = operations
    operation = lowering.operation(at)
    if isinstance(operation.op, VarHandle):
        lowering.handle(operation.outputs[0], key_of(operation.op))
    elif isinstance(operation.op, ReadVariable):
        (handle,), (result,) = operation.used, operation.outputs
        lowering.transfer(at, handle, result, store=False)
        move(lowering, at, _copy(lowering, handle, result), operand(lowering, result))
    else:
        handle, value = operation.used
        move(lowering, at, operand(lowering, value), _copy(lowering, handle, value), (value,))
        lowering.transfer(at, handle, value, store=True)


def _copy(lowering: Lowering, handle: int, elements: int) -> Side:
    """The copy of a variable, with the type of these elements."""
    return side(lowering.variable(handle, elements), lowering.shape(elements), lowering.type(elements).dtype.itemsize)
