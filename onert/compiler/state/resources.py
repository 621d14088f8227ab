"""Resource variables as operands: state that an executor, or a caller in C, can allocate.

A read returns the value assigned earlier in the same run, otherwise the value that the previous run left. What a
subgraph that is called once assigns is the variable's initial value.

    CallOnce (n := 5)                         %s = variable 'n', initially 5
    %h = VarHandle 'n'
    %a = ReadVariable %h            -->       %b = ADD %s, 1
    %b = ADD %a, 1                            after the run: %s := %b
    AssignVariable %h, %b
    %c = ReadVariable %h                      (%c is %b)
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field

from onert.compiler.rewrite.effects import is_function, subgraph_effects
from onert.ir import (
    Array,
    CompileError,
    Constant,
    DType,
    Effect,
    Operand,
    Operation,
    Resource,
    StateUpdate,
    Subgraph,
    Subgraphs,
    TensorType,
    evaluate,
)
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.value import ByIdentity

Key = tuple[str, str]
"""Container and name of a variable."""


def with_variables(graph: Subgraph, model: Subgraphs) -> Subgraph:
    """The subgraph of a model with its resource variables as operands; the same object if it has none.

    Raises CompileError if a variable's identity or type is unknown before the run.
    """
    if not any(isinstance(o.op, VarHandle | CallOnce) for o in graph.operations):
        return graph
    effects = subgraph_effects(model)
    found = _Conversion(graph, model)
    for operation in graph.operations:
        called = operation.op.subgraphs
        if any(effects[i] is not Effect.NONE for i in called) and not isinstance(operation.op, CallOnce):
            raise CompileError(f"{operation} runs a subgraph with resource variables")
        found.convert(operation)
    return found.done()


@define(eq=False)
class _Conversion(ByIdentity):
    """The conversion of a subgraph, operation by operation.

    `handles` has the variable of each handle operand, `initial` the initial values, `variables` the operands that are
    variables, `current` the operand with a variable's current value, `replacements` the replacements of operands.
    """

    graph: Subgraph
    model: Subgraphs
    operands: list[Operand] = field(init=False)
    operations: list[Operation] = field(factory=list)
    handles: dict[int, Key] = field(factory=dict)
    initial: dict[Key, Array] = field(factory=dict)
    variables: dict[Key, int] = field(factory=dict)
    current: dict[Key, int] = field(factory=dict)
    replacements: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.operands = list(self.graph.operands)

    def convert(self, operation: Operation) -> None:
        """Process the next operation: resolve it, or keep it with its operands replaced."""
        op = operation.op
        if isinstance(op, VarHandle):
            self.handles[operation.outputs[0]] = (op.container, op.shared_name)
        elif isinstance(op, CallOnce):
            if self.current:
                raise CompileError(f"{operation} comes after variables are read or assigned, expected before")
            self.initial |= assigned(self.model[op.subgraph])
        elif isinstance(op, AssignVariable):
            handle, value = operation.used
            self.current[self._key(operation, handle)] = self._replaced(value)
        elif isinstance(op, ReadVariable):
            self._read(operation)
        else:
            for handle in operation.used:
                if handle in self.handles:
                    raise CompileError(f"{operation} reads the handle of variable {self.handles[handle][1]!r}")
            self.operations.append(operation.with_inputs(self._replaced))

    def _replaced(self, operand: int) -> int:
        return self.replacements.get(operand, operand)

    def _key(self, operation: Operation, handle: int) -> Key:
        if handle not in self.handles:
            raise CompileError(f"{operation} has a handle that is known only at run time")
        return self.handles[handle]

    def _read(self, operation: Operation) -> None:
        (handle,), (result,) = operation.used, operation.outputs
        key, type_ = self._key(operation, handle), self.graph.type(result)
        if key not in self.current:
            self.current[key] = self._variable(key, type_)
        value = self.current[key]
        require_type(key, self.operands[value].type, type_)
        if result in self.graph.outputs:
            self.operations.append(Operation(Copy(), (value,), (result,), operation.location))
        else:
            self.replacements[result] = value

    def _variable(self, key: Key, type_: TensorType) -> int:
        """A new variable operand, with the variable's value at the start of a run."""
        initial = self.initial.get(key)
        if initial is not None:
            require_type(key, TensorType(DType.from_numpy(initial.dtype), initial.shape), type_)
        elif not type_.is_static or type_.dtype.is_handle:
            raise CompileError(f"variable {key[1]!r} has {type_}, expected a type that is known before the run")
        resource = Resource(*key, None if initial is None else Constant(initial))
        self.operands.append(Operand(evolve(type_, data=None), key[1], variable=True, resource=resource))
        self.variables[key] = len(self.operands) - 1
        return self.variables[key]

    def done(self) -> Subgraph:
        """The converted subgraph, once all operations are processed."""
        if handles := [o for o in (*self.graph.inputs, *self.graph.outputs) if self._is_handle(o)]:
            raise CompileError(f"{self.graph.label(handles[0])}, an input or output, is a handle")
        updates = list(self.graph.state)
        for key, value in self.current.items():
            type_ = self.operands[value].type
            variable = self.variables[key] if key in self.variables else self._variable(key, type_)
            if value != variable:
                require_type(key, type_, self.operands[variable].type)
                updates.append(StateUpdate(variable, value))
        operands, operations = tuple(self.operands), tuple(self.operations)
        return evolve(self.graph, operands=operands, operations=operations, state=tuple(updates))

    def _is_handle(self, operand: int) -> bool:
        return self.graph.type(operand).dtype is DType.RESOURCE


def require_type(key: Key, type_: TensorType, expected: TensorType) -> None:
    """Raises CompileError unless a variable's type is the expected one, and known before the run."""
    if (type_.dtype, type_.shape) != (expected.dtype, expected.shape) or not type_.is_static:
        raise CompileError(f"variable {key[1]!r} has {type_}, expected {expected}")


def assigned(graph: Subgraph) -> Mapping[Key, Array]:
    """What a subgraph that is called once assigns. Raises CompileError if it does more than assign known values."""
    known: dict[int, Array] = {i: o.data.array for i, o in enumerate(graph.operands) if o.data is not None}
    handles: dict[int, Key] = {}
    found: dict[Key, Array] = {}
    for operation in graph.operations:
        op, arrays = operation.op, [known.get(i) for i in operation.used]
        if isinstance(op, VarHandle):
            handles[operation.outputs[0]] = (op.container, op.shared_name)
        elif isinstance(op, AssignVariable) and operation.used[0] in handles and arrays[1] is not None:
            found[handles[operation.used[0]]] = arrays[1]
        elif is_function(operation) and all(array is not None for array in arrays):
            operands = [None if i is None else known[i] for i in operation.inputs]
            known |= dict(zip(operation.outputs, evaluate(op, operands, graph.types(operation)), strict=True))
        else:
            raise CompileError(f"{operation}, which is called once, does more than assign known values")
    return found
