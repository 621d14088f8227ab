"""Resource variables as state of a subgraph, which C has room for.

What is read is what was assigned before in the same run, else what the last run left. What a subgraph that is called
once assigns is known: where it is not what state begins with, it is chosen as long as no run has ended.

    %s = VarHandle 'n'                        state n, started
    CallOnce (n := 5)                         %begin = Select started, n, 5
    %a = ReadVariable %s            -->       %b = ADD %begin, 1
    %b = ADD %a, 1                            after the run: n := %b, started := true
    AssignVariable %s, %b
    %c = ReadVariable %s                      (%c is %b)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from onert.compiler.rewrite.effects import is_function, subgraph_effects
from onert.ir import (
    Array,
    CompileError,
    Constant,
    DType,
    Effect,
    Op,
    Operand,
    Operation,
    StateUpdate,
    Subgraph,
    Subgraphs,
    TensorType,
    evaluate,
)
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.elementwise.select import Select
from onert.ir.value import Value

Key = tuple[str, str]
"""Container and name of a variable."""


@frozen
class Held(Value):
    """A subgraph without resource variables, and those that are its state now."""

    subgraph: Subgraph
    keys: frozenset[Key] = frozenset()


def held(graph: Subgraph, model: Subgraphs) -> Held:
    """The subgraph of a model with its resource variables as state; itself where it has none.

    CompileError if it cannot be known before the run what a variable is or how it begins.
    """
    if not any(isinstance(o.op, VarHandle | CallOnce) for o in graph.operations):
        return Held(graph)
    effects = subgraph_effects(model)
    found = _Holding(graph, model)
    for operation in graph.operations:
        called = operation.op.subgraphs
        if any(effects[i] is not Effect.NONE for i in called) and not isinstance(operation.op, CallOnce):
            raise CompileError(f"{operation} runs a subgraph with resource variables, which a bundle cannot hold")
        found.take(operation)
    return found.done()


@define(eq=False)
class _Holding:
    """A subgraph under conversion, operation by operation.

    `handles` are the keys of operands, `initial` what was assigned once, `current` what a variable is by now.
    """

    graph: Subgraph
    model: Subgraphs
    operands: list[Operand] = field(init=False)
    operations: list[Operation] = field(factory=list)
    handles: dict[int, Key] = field(factory=dict)
    initial: dict[Key, Array] = field(factory=dict)
    states: dict[Key, int] = field(factory=dict)
    current: dict[Key, int] = field(factory=dict)
    instead: dict[int, int] = field(factory=dict)
    started: int | None = None

    def __attrs_post_init__(self) -> None:
        self.operands = list(self.graph.operands)

    def take(self, operation: Operation) -> None:
        """The next operation: resolved, or kept with what its operands have become."""
        op = operation.op
        if isinstance(op, VarHandle):
            self.handles[operation.outputs[0]] = (op.container, op.shared_name)
        elif isinstance(op, CallOnce):
            if self.states or self.current:
                raise CompileError(f"{operation} comes after variables are read or assigned, expected before")
            self.initial |= _assigned(self.model[op.subgraph])
        elif isinstance(op, AssignVariable):
            handle, value = operation.used
            self.current[self._key(operation, handle)] = self._now(value)
        elif isinstance(op, ReadVariable):
            self._read(operation)
        else:
            inputs = tuple(None if i is None else self._now(i) for i in operation.inputs)
            self.operations.append(evolve(operation, inputs=inputs))

    def _now(self, operand: int) -> int:
        return self.instead.get(operand, operand)

    def _key(self, operation: Operation, handle: int) -> Key:
        if handle not in self.handles:
            raise CompileError(f"{operation} is given a handle that is known at run time only")
        return self.handles[handle]

    def _read(self, operation: Operation) -> None:
        (handle,), (result,) = operation.used, operation.outputs
        key, wanted = self._key(operation, handle), self.graph.type(result)
        if key not in self.current:
            if key not in self.initial:
                raise CompileError(f"variable {key[1]!r} is read before anything was assigned to it")
            self.current[key] = self._begun(key, wanted)
        value = self.current[key]
        self._require(key, self.operands[value].type, wanted)
        if result in self.graph.outputs:
            self.operations.append(Operation(Copy(), (value,), (result,), operation.location))
        else:
            self.instead[result] = value

    def _require(self, key: Key, type_: TensorType, wanted: TensorType) -> None:
        if (type_.dtype, type_.shape) != (wanted.dtype, wanted.shape) or not type_.is_static:
            raise CompileError(f"variable {key[1]!r} has {type_} where {wanted} is expected")

    def _begun(self, key: Key, type_: TensorType) -> int:
        """What a variable is when a run begins."""
        self.states[key] = state = self._operand(Operand(type_, key[1], variable=True))
        elements = self.initial[key]
        self._require(key, TensorType(DType.from_numpy(elements.dtype), elements.shape), type_)
        if (elements == type_.cleared).all():
            return state
        if self.started is None:
            self.started = self._operand(Operand(TensorType(DType.BOOL, ()), "started", variable=True))
        constant = self._operand(Operand(evolve(type_, data=None), "", Constant(elements)))
        return self._operation(Select(), (self.started, state, constant), type_)

    def _operand(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1

    def _operation(self, op: Op, inputs: Sequence[int], type_: TensorType) -> int:
        result = self._operand(Operand(type_))
        self.operations.append(Operation(op, tuple(inputs), (result,), f"a variable's {op.label}"))
        return result

    def done(self) -> Held:
        """All operations are taken."""
        updates = list(self.graph.state)
        for key, state in self.states.items():
            if self.current[key] != state:
                self._require(key, self.operands[self.current[key]].type, self.operands[state].type)
                updates.append(StateUpdate(state, self._made(self.current[key])))
        if self.started is not None:
            true = self._operand(Operand(TensorType(DType.BOOL, ()), "", Constant(np.array(True))))
            updates.append(StateUpdate(self.started, self._made(true)))
        graph = evolve(
            self.graph, operands=tuple(self.operands), operations=tuple(self.operations), state=tuple(updates)
        )
        return Held(graph, frozenset(self.handles.values()))

    def _made(self, operand: int) -> int:
        """An operand that an operation defines, with these elements."""
        if any(operand in operation.outputs for operation in self.operations):
            return operand
        return self._operation(Copy(), (operand,), self.operands[operand].type)


def _assigned(graph: Subgraph) -> Mapping[Key, Array]:
    """What a subgraph that is called once assigns; CompileError if it does more than to assign what is known."""
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
            given = [None if i is None else known[i] for i in operation.inputs]
            known |= dict(zip(operation.outputs, evaluate(op, given, graph.types(operation)), strict=True))
        else:
            raise CompileError(f"{operation}, which is called once, does more than to assign what is known")
    return found
