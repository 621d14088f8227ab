"""The basis of all of a builder's operations: names, variables, constants."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from onert.flow.errors import DefinedError
from onert.flow.graph import DT_FLOAT, DT_FLOAT32, DT_INT32, Connector, Function, Graph, Operation, Variable
from onert.frontend.flow.elements import DTYPES
from onert.ir import Array, DType, ModelError


class Core:
    """A function under construction, and the flow that it belongs to."""

    def __init__(self, flow: Graph, func: str | Function | None = None) -> None:
        self.flow = flow
        self.func = None if func is None else flow.func(func)

    # ---- names

    def opname(self, optype: str) -> str:
        """An unused name for an operation of the function."""
        return self._unique(optype, self.flow.ops)

    def varname(self, var: str) -> str:
        """An unused name for a variable of the function."""
        return self._unique(var, self.flow.vars)

    def _prefixed(self, name: str) -> str:
        return name if self.func is None else f"{self.func.name}/{name}"

    def _unique(self, name: str, taken: Container[str]) -> str:
        found = first = self._prefixed(name)
        number = 0
        while found in taken:
            number += 1
            found = f"{first}_{number}"
        return found

    # ---- variables

    def _undefined(self, name: str, var: Variable | None = None) -> str:
        """The full name. Raises DefinedError if it is the name of a variable other than `var`."""
        full = self._prefixed(name)
        if full in self.flow.vars and self.flow.vars[full] is not var:
            raise DefinedError(f"variable '{full}' is defined already")
        return full

    def var(self, name: str, dtype: str = DT_FLOAT, shape: Sequence[int] = ()) -> Variable:
        """A new variable of the function. Raises DefinedError, an IndexError, if the name exists."""
        return self.flow.var(self._undefined(name), dtype, shape)

    def rename(self, var: Variable, new_suffix: str) -> Variable:
        """Rename a variable within the function, and return it. Raises DefinedError if another has the name."""
        name = self._undefined(new_suffix, var)
        self.flow.vars.pop(var.name, None)
        var.name = name
        self.flow.vars[var.name] = var
        return var

    def cnx(self, name: str, args: Iterable[Variable]) -> Connector:
        """A connector of the function that links these variables."""
        connector = self.flow.cnx(self._prefixed(name))
        for variable in args:
            connector.add(variable)
        return connector

    def const(
        self, value: Any, dtype: str | None = None, shape: Sequence[int] | None = None, name: str | None = None
    ) -> Variable:
        """A constant: a number, a (nested) list, or any object with a buffer.

        Without `dtype`, floats become float32 and integers int32; typed objects keep their element type.
        """
        elements = _elements(value, dtype)
        if shape is not None:
            elements = elements.reshape(tuple(shape))
        variable = self.flow.var(self.varname("const") if name is None else name)
        variable.type = _name_of(elements)
        variable.shape = list(elements.shape)
        variable.data = elements
        return variable

    def array(self, name: str, value: Any) -> Variable:
        """A constant with this name and the elements of an array, of a list, or of any object with a buffer.

        An array is not copied: its elements are read when the flow is saved or compiled.
        """
        elements = _elements(value, None)
        variable = self.var(name, _name_of(elements), elements.shape)
        variable.data = elements
        return variable

    # ---- operations

    def rawop(self, optype: str, name: str | None = None) -> Operation:
        """An operation without operands and results."""
        full = self.opname(optype if name is None else name)
        operation = self.flow.op(full)
        operation.type = optype
        if self.func is not None:
            self.func.add(operation)
        return operation

    def op(self, optype: str, args: Sequence[Any], name: str | None = None) -> Variable:
        """Add an operation whose result has the first operand's type and the shape to which the operands broadcast."""
        operation, operands = self.begun(optype, args, name)
        type_ = operands[0].type if operands else DT_FLOAT32
        return self.result(operation, type_, self.broadcasting(operation, operands))

    def broadcasting(self, operation: Operation, operands: Sequence[Variable]) -> list[int]:
        """The shape to which operands broadcast. Raises ModelError, and removes the operation, if they do not."""
        try:
            return broadcast(operation, operands)
        except ModelError:
            for operand in operands:
                operand.consumers.remove(operation)
            if operation.func is not None:
                operation.func.ops.remove(operation)
            del self.flow.ops[operation.name]
            raise

    def begun(self, optype: str, args: Sequence[Any], name: str | None) -> tuple[Operation, list[Variable]]:
        """Add an operation with its operands; numbers become constants of the type of the first variable."""
        like = next((arg.type.removeprefix("&") for arg in args if isinstance(arg, Variable)), None)
        operands = [self.value(arg, like) for arg in args]
        operation = self.rawop(optype, name)
        for operand in operands:
            operation.add_input(operand)
        return operation, operands

    def value(self, given: Any, like: str | None = None) -> Variable:
        """A variable unchanged, anything else as a constant: a number with type `like`."""
        if isinstance(given, Variable):
            return given
        return self.const(given, like if isinstance(given, int | float) else None)

    def result(self, operation: Operation, type_: str, shape: Sequence[int], number: int = 0) -> Variable:
        """A new variable that the operation computes."""
        variable = self.flow.var(f"{operation.name}:{number}", type_.removeprefix("&"), shape)
        operation.add_output(variable)
        return variable

    def made(
        self, optype: str, args: Sequence[Any], name: str | None, shape: Sequence[int], dtype: str | None = None
    ) -> Variable:
        """Add an operation whose result has another shape or type than with `op`."""
        operation, operands = self.begun(optype, args, name)
        return self.result(operation, operands[0].type if dtype is None else dtype, shape)


def broadcast(operation: Operation, operands: Sequence[Variable]) -> list[int]:
    """The shape to which shapes broadcast, aligned at their ends. Raises ModelError if they do not broadcast."""
    rank = max((v.rank() for v in operands), default=0)
    found = [1] * rank
    for variable in operands:
        for at, size in enumerate(variable.shape, rank - variable.rank()):
            if size in (1, found[at]):
                continue
            if found[at] != 1:
                shapes = " and ".join(str(v.shape) for v in operands)
                raise ModelError(
                    f"{operation.type} '{operation.name}' is given shapes {shapes}, which do not broadcast"
                )
            found[at] = size
    return found


def _elements(value: Any, dtype: str | None) -> Array:
    """The array of a constant. Raises ModelError if the value cannot become one."""
    wanted = None if dtype is None else DTYPES.get(dtype)
    if dtype is not None and (wanted is None or wanted.is_handle):
        raise ModelError(f"a constant cannot have type '{dtype}', expected a numeric element type")
    try:
        found = np.asarray(value)
    except ValueError as error:  # lists of unequal lengths
        raise ModelError(f"a constant cannot be made from {value!r:.80}: {error}") from error
    if isinstance(value, array | memoryview | bytes | bytearray):
        found = np.asarray(memoryview(value))
    if wanted is None and isinstance(value, bool | int | float | list | tuple):
        kinds = {"f": DTYPES[DT_FLOAT32], "i": DTYPES[DT_INT32], "b": DType.BOOL}
        wanted = kinds.get(found.dtype.kind) if found.size else DTYPES[DT_FLOAT32]
    if found.dtype.kind not in "fiub" and wanted is None and found.dtype.name != "bfloat16":
        raise ModelError(f"a constant cannot be made from a {type(value).__name__}, expected numbers")
    if wanted is not None and found.dtype != wanted.numpy:
        try:
            found = found.astype(wanted.numpy)
        except (TypeError, ValueError) as error:
            raise ModelError(f"a constant cannot be made from {value!r:.80}: {error}") from error
    return found


def _name_of(elements: Array) -> str:
    """The name of an array's element type. Raises ModelError if flows have no name for it."""
    name: str = elements.dtype.name
    if name not in DTYPES:
        raise ModelError(f"flows have no element type {name}, expected one of {', '.join(sorted(DTYPES))}")
    return name
