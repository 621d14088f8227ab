"""Variables that branches and loops use, as their operands and results.

                                           %a = ReadVariable %h
    y = If(c, %h, x) {then=1, ...}   -->   y, %b = If(c, x, %a) {then=3, ...}
                                           AssignVariable %h, %b

Graph 3 is graph 1, except that it takes the variable's value instead of reading it, and returns the value that it would
assign. A loop carries the values as state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from attrs import evolve, frozen

from onert.compiler.rewrite.effects import subgraph_effects
from onert.ir import CompileError, DType, Effect, Op, Operand, Operation, Subgraph, Subgraphs, TensorType
from onert.ir.ops.control_flow.control import Call, CallOnce, If, While
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.value import Value

from .resources import Key, assigned, require_type

MOST_OPERATIONS = 1 << 14
"""How many operations of called graphs may be processed: nested calls multiply the graphs."""


@frozen
class _Use(Value):
    type: TensorType
    written: bool


_T = TypeVar("_T")
_Uses = dict[Key, _Use]
_NewOperand = Callable[[TensorType, str], int]


def with_explicit_variables(model: Subgraphs, entry: int) -> Subgraphs:
    """The model in which the entry passes the values of variables to the graphs it calls; the same object if none of
    them uses variables.

    Raises CompileError if a variable's identity or type is unknown before the run, or if it may have no value.
    """
    effects = subgraph_effects(model)
    graph = model[entry]
    if not any(
        effects[i] is not Effect.NONE and not isinstance(o.op, CallOnce)
        for o in graph.operations
        for i in o.op.subgraphs
    ):
        return model
    lifting = _Lifting(model)
    lifting.graphs[entry] = lifting.entry(graph)
    return evolve(model, subgraphs=tuple(lifting.graphs))


class _Lifting:
    def __init__(self, model: Subgraphs) -> None:
        self.graphs = list(model.subgraphs)
        self._budget = MOST_OPERATIONS

    def _spend(self, graph: Subgraph) -> None:
        self._budget -= 1 + len(graph.operations)
        if self._budget < 0:
            raise CompileError(f"more than {MOST_OPERATIONS} operations are in graphs that use variables")

    # ---- what graphs use

    def _uses(self, operation: Operation, handles: Mapping[int, Key]) -> _Uses:
        """The variables that the graphs use which an operation runs."""
        found: _Uses = {}
        for index, given in _callees(operation):
            graph = self.graphs[index]
            _merge(found, self._uses_of(graph, _passed(operation, graph, given, handles)))
        return found

    def _uses_of(self, graph: Subgraph, given: Mapping[int, Key]) -> _Uses:
        self._spend(graph)
        found, handles = _Uses(), dict(given)
        for operation in graph.operations:
            op = operation.op
            if isinstance(op, VarHandle):
                handles[operation.outputs[0]] = (op.container, op.shared_name)
            elif isinstance(op, ReadVariable):
                _merge(found, {_key(operation, handles): _Use(graph.type(operation.outputs[0]), False)})
            elif isinstance(op, AssignVariable):
                _merge(found, {_key(operation, handles): _Use(graph.type(operation.used[1]), True)})
            elif op.subgraphs:
                _merge(found, self._uses(operation, handles))
                handles |= _same_handles(operation, handles)
            elif op.effect is not Effect.NONE:
                raise CompileError(f"{operation} changes other state than variables")
        return found

    # ---- the graphs that take and return values

    def entry(self, graph: Subgraph) -> Subgraph:
        """The entry, which reads the values before such operations, and assigns the results after them."""
        operands, operations = list(graph.operands), list[Operation]()
        handles: dict[int, Key] = {}
        known: set[Key] = set()
        returned: dict[int, int] = {}  # the handles that loops were given, of those that they return

        def new(type_: TensorType, name: str) -> int:
            operands.append(Operand(type_, name))
            return len(operands) - 1

        def place(key: Key) -> int:
            found = next((operand for operand, other in handles.items() if other == key), None)
            if found is None:
                found = new(TensorType(DType.RESOURCE, ()), key[1])
                operations.append(Operation(VarHandle(*key), (), (found,), f"variable {key[1]!r}"))
                handles[found] = key
            return found

        def handle(operand: int) -> int:
            return returned.get(operand, operand)

        for each in graph.operations:
            operation = each.with_inputs(handle)
            op = operation.op
            uses = {} if isinstance(op, CallOnce) else self._uses(operation, handles)
            if isinstance(op, VarHandle):
                handles[operation.outputs[0]] = (op.container, op.shared_name)
            elif isinstance(op, CallOnce):
                known |= assigned(self.graphs[op.subgraph]).keys()
            elif isinstance(op, ReadVariable | AssignVariable):
                known.add(_key(operation, handles))
            if not uses:
                operations.append(operation)
                continue
            values: dict[Key, int] = {}
            for key, use in uses.items():
                if key not in known:
                    raise CompileError(f"{operation} uses variable {key[1]!r}, which may have no value")
                values[key] = new(use.type, key[1])
                read = ReadVariable((use.type,))
                operations.append(Operation(read, (place(key),), (values[key],), operation.location))
            changed, results = self._call(operation, handles, uses, values, new)
            operations.append(changed)
            for key, result in results.items():
                operations.append(Operation(AssignVariable(), (place(key), result), (), operation.location))
            returned.update(_returned_handles(operation, handles))
        return evolve(graph, operands=tuple(operands), operations=tuple(operations))

    def _call(
        self,
        operation: Operation,
        handles: Mapping[int, Key],
        uses: _Uses,
        values: Mapping[Key, int],
        new: _NewOperand,
    ) -> tuple[Operation, dict[Key, int]]:
        """An operation that passes `values` to the graphs it runs, and the operands with what these assign."""
        op = operation.op
        if not isinstance(op, While | If | Call):
            raise CompileError(f"{operation} runs a subgraph with resource variables")
        written = [key for key, use in uses.items() if use.written]
        dropped = {at for at, i in enumerate(operation.inputs) if i in handles}
        inputs = (*_without(operation.inputs, dropped), *(values[key] for key in uses))
        callees = [(i, _passed(operation, self.graphs[i], given, handles)) for i, given in _callees(operation)]
        returned, dropped_results = (list(uses), dropped) if isinstance(op, While) else (written, set())
        types = (*_without(op.results, dropped_results), *(uses[key].type for key in returned))
        changed_op: Op
        if isinstance(op, While):
            (condition, first), (body, second) = callees
            condition = self._converted(condition, first, uses, (), ())
            body = self._converted(body, second, uses, returned, dropped)
            changed_op = While(condition, body, types)
        else:
            found = [self._converted(i, given, uses, written, ()) for i, given in callees]
            if isinstance(op, Call):
                changed_op = Call(found[0], types)
            else:
                changed_op = evolve(op, then=found[0], otherwise=found[1], results=types)
        results = {key: new(uses[key].type, key[1]) for key in returned}
        outputs = (*_without(operation.outputs, dropped_results), *results.values())
        changed = evolve(operation, op=changed_op, inputs=inputs, outputs=outputs)
        return changed, {key: results[key] for key in written}

    def _converted(
        self, index: int, given: Mapping[int, Key], uses: _Uses, returned: Sequence[Key], dropped: Collection[int]
    ) -> int:
        """The number of a new graph that takes the values of variables after its other inputs, and returns those of
        `returned` after its other outputs. `dropped` are the positions of outputs that are handles."""
        graph = self.graphs[index]
        self._spend(graph)
        operands, operations, handles = list(graph.operands), list[Operation](), dict(given)
        current: dict[Key, int] = {}
        replaced: dict[int, int] = {}

        def new(type_: TensorType, name: str) -> int:
            operands.append(Operand(type_, name))
            return len(operands) - 1

        for key, use in uses.items():
            current[key] = new(use.type, key[1])
        inputs = (*(i for i in graph.inputs if i not in given), *current.values())
        for operation in graph.operations:
            op = operation.op
            if isinstance(op, VarHandle):
                handles[operation.outputs[0]] = (op.container, op.shared_name)
            elif isinstance(op, ReadVariable):
                key = _key(operation, handles)
                require_type(key, graph.type(operation.outputs[0]), uses[key].type)
                replaced[operation.outputs[0]] = current[key]
            elif isinstance(op, AssignVariable):
                key = _key(operation, handles)
                value = replaced.get(operation.used[1], operation.used[1])
                require_type(key, operands[value].type, uses[key].type)
                current[key] = value
            else:
                inner = self._uses(operation, handles)
                changed = operation.with_inputs(lambda i: replaced.get(i, i))
                if inner:
                    changed, results = self._call(changed, handles, inner, current, new)
                    current |= results
                    handles |= _same_handles(operation, handles)
                if any(i in handles for i in changed.used):
                    raise CompileError(f"{operation} reads the handle of a variable")
                operations.append(changed)
        if any((at in dropped) != (o in handles) for at, o in enumerate(graph.outputs)):
            raise CompileError(f"{graph.name!r} returns the handle of a variable")
        if any(handles[graph.outputs[at]] != given.get(graph.inputs[at]) for at in dropped):
            raise CompileError(f"{graph.name!r} returns the handle of another variable")
        kept = (replaced.get(o, o) for o in _without(graph.outputs, dropped))
        outputs = (*kept, *(current[key] for key in returned))
        made = evolve(graph, operands=tuple(operands), operations=tuple(operations), inputs=inputs, outputs=outputs)
        self.graphs.append(made)
        return len(self.graphs) - 1


def _callees(operation: Operation) -> list[tuple[int, Sequence[int]]]:
    """The graphs that an operation runs, with the positions of the operands that each is given."""
    return [(call.subgraph, call.inputs) for call in operation.op.calls(len(operation.inputs))]


def _passed(operation: Operation, graph: Subgraph, given: Sequence[int], handles: Mapping[int, Key]) -> dict[int, Key]:
    """The variables of the handles among a called graph's inputs."""
    pairs = zip(graph.inputs, (operation.inputs[at] for at in given), strict=True)
    return {own: handles[i] for own, i in pairs if i is not None and i in handles}


def _same_handles(operation: Operation, handles: Mapping[int, Key]) -> dict[int, Key]:
    """The variables of the handles among a loop's results."""
    return {o: handles[i] for o, i in _returned_handles(operation, handles).items()}


def _returned_handles(operation: Operation, handles: Mapping[int, Key]) -> dict[int, int]:
    """The handles among a loop's results, and those that it was given for these."""
    if not isinstance(operation.op, While):
        return {}
    pairs = zip(operation.inputs, operation.outputs, strict=True)
    return {o: i for i, o in pairs if i is not None and i in handles}


def _merge(uses: _Uses, more: _Uses) -> None:
    for key, use in more.items():
        before = uses.get(key, use)
        require_type(key, use.type, before.type)
        uses[key] = evolve(before, type=evolve(before.type, data=None), written=before.written or use.written)


def _key(operation: Operation, handles: Mapping[int, Key]) -> Key:
    found = handles.get(operation.used[0])
    if found is None:
        raise CompileError(f"{operation} has a handle that is known only at run time")
    return found


def _without(values: Sequence[_T], positions: Collection[int]) -> list[_T]:
    return [value for at, value in enumerate(values) if at not in positions]
