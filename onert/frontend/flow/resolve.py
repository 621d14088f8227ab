"""Resolves a flow's names: variables, the operations that compute and read them, and the functions of operations."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import field, frozen

from onert.ir import Constant, ModelError, RuleError, TensorType

from .attributes import boolean, integer
from .elements import constant_of
from .file import Blob, Connector, FlowFile, Function, Operation, Variable, VariableFlag, described

ASSIGNING = frozenset(("Assign", "AssignAdd", "AssignAddMatMul", "AssignAddScatter"))
"""Types of operations that assign to their first operand."""
Elements = tuple[TensorType, Constant | None, str]
Named = TypeVar("Named", Variable, Operation, Function, Connector, Blob)


@frozen(eq=False)
class Graph:
    """A flow with resolved names.

    `variables` has every name and alias; `producers` and `consumers` map names of variables to operations, `owners`
    maps names of operations to functions.
    """

    flow: FlowFile
    variables: Mapping[str, Variable]
    operations: Mapping[str, Operation]
    producers: Mapping[str, Operation]
    consumers: Mapping[str, Sequence[Operation]]
    owners: Mapping[str, Function]
    _elements: dict[str, Elements] = field(factory=dict)

    def elements(self, variable: Variable) -> Elements:
        """`constant_of` a variable, cached so that functions that read it share its elements."""
        found = self._elements.get(variable.name)
        if found is None:
            found = self._elements.setdefault(variable.name, constant_of(variable))
        return found

    def inputs(self, operation: Operation) -> tuple[Variable, ...]:
        return tuple(self.variables[name] for name in operation.inputs)

    def outputs(self, operation: Operation) -> tuple[Variable, ...]:
        return tuple(self.variables[name] for name in operation.outputs)

    def is_output(self, variable: Variable) -> bool:
        """Whether a computed variable is an output of its function: its flag says so, or no operation reads it.

        An attribute of the operation overrides both. Source: Myelin's Flow::InferInputsAndOutputs.
        """
        told = self.producers[variable.name].attribute("output")
        if told is not None:
            return boolean(told)
        return bool(variable.flags & VariableFlag.OUT) or not self.consumers.get(variable.name)

    def ordered(self, function: Function) -> tuple[Operation, ...]:
        """The operations of a function in file order if that is valid, otherwise sorted.

        An operation that reads an assigned variable stays on its side of the assignment if possible. Raises ModelError
        if there is no valid order.
        """
        operations = [self.operations[name] for name in function.operations]
        position = {operation.name: at for at, operation in enumerate(operations)}
        needs = [
            {
                position[producer.name]
                for variable in self.inputs(operation)
                if (producer := self.producers.get(variable.name)) is not None and producer.name in position
            }
            for operation in operations
        ]
        sides = [needed | others for needed, others in zip(needs, self._sides(operations), strict=True)]
        if all(needed < at for at, before in enumerate(sides) for needed in before):
            return tuple(operations)
        try:
            order = _sorted(sides)
        except graphlib.CycleError:  # the file's order of assignments and reads cannot be kept
            try:
                order = _sorted(needs)
            except graphlib.CycleError as error:
                where = place(operations[error.args[1][0]])
                raise ModelError(f"{where}: its inputs depend on its own outputs") from error
        return tuple(operations[at] for at in order)

    def _sides(self, operations: Sequence[Operation]) -> list[set[int]]:
        """For each operation, the indices of earlier ones that read what it assigns, or assign what it reads.

        Dependencies implied by others are omitted, so there are no more than operands.
        """
        position = {operation.name: at for at, operation in enumerate(operations)}
        found: list[set[int]] = [set() for _ in operations]
        for name in dict.fromkeys(target for operation in operations for target in self._assigned(operation)):
            since: set[int] = set()
            last: set[int] = set()
            for at in sorted({position[o.name] for o in self.consumers[name] if o.name in position}):
                found[at] |= last
                if name in self._assigned(operations[at]):
                    found[at] |= since
                    last, since = {at}, set()
                else:
                    since.add(at)
        return found

    def _assigned(self, operation: Operation) -> tuple[str, ...]:
        """The variable that an operation assigns to, if any."""
        if operation.type not in ASSIGNING or not operation.inputs:
            return ()
        return (self.variables[operation.inputs[0]].name,)


def _sorted(needs: Sequence[set[int]]) -> list[int]:
    return list(graphlib.TopologicalSorter(dict(enumerate(needs))).static_order())


def resolve(flow: FlowFile) -> Graph:
    """Resolve the names of a flow. Raises ModelError with the offset of a record with an unknown or ambiguous name: two
    records of a kind with one name, a variable computed twice, or an operation in two functions.

    A name or alias refers to the first variable that has it, and names take precedence over aliases. The first result
    of an operation also has the operation's name as an alias, as in Myelin's reader.
    """
    operations = _by_name("operation", flow.operations)
    _by_name("function", flow.functions)
    _by_name("connector", flow.connectors)
    variables = _by_name("variable", flow.variables)
    for variable in flow.variables:
        for alias in variable.aliases:
            variables.setdefault(alias, variable)
    for operation in flow.operations:
        if operation.outputs and operation.outputs[0] in variables:
            variables.setdefault(operation.name, variables[operation.outputs[0]])
    producers, consumers = _ends(flow.operations, variables)
    for connector in flow.connectors:
        _require("links to", connector.links, variables, described(connector.offset, f"connector '{connector.name}'"))
    return Graph(flow, variables, operations, producers, consumers, _owners(flow, operations))


def _by_name(kind: str, records: Iterable[Named]) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for record in records:
        if record.name in found:
            raise ModelError(
                described(record.offset, f"{kind} '{record.name}' has the same name as another one")
                + (f" at byte {found[record.name].offset}" if record.offset else "")
            )
        found[record.name] = record
    return found


def _require(what: str, names: Iterable[str], known: Mapping[str, object], where: str) -> None:
    for name in names:
        if name not in known:
            raise ModelError(f"{where} {what} '{name}', which is not in the flow")


def _ends(
    operations: Iterable[Operation], variables: Mapping[str, Variable]
) -> tuple[dict[str, Operation], dict[str, list[Operation]]]:
    """The operation that computes each variable, and those that read it."""
    producers: dict[str, Operation] = {}
    consumers: dict[str, list[Operation]] = {}
    for operation in operations:
        _require("reads", operation.inputs, variables, place(operation))
        _require("computes", operation.outputs, variables, place(operation))
        task = operation.attribute("task")
        if task is not None:
            _require_task(task, place(operation))
        for name in operation.inputs:
            consumers.setdefault(variables[name].name, []).append(operation)
        for name in operation.outputs:
            variable = variables[name]
            if variable.name in producers:
                first = producers[variable.name].name
                raise ModelError(f"{place(operation)} computes '{variable.name}', as operation '{first}' does")
            if len(variable.data):
                raise ModelError(f"{place(operation)} computes '{variable.name}', which is a constant")
            producers[variable.name] = operation
    return producers, consumers


def task_of(operation: Operation) -> int:
    """The task that computes an operation; 0 for the default one, of operations that name none."""
    return integer(operation.attribute("task") or "0")


def _require_task(task: str, where: str) -> None:
    """Raise ModelError unless the attribute with an operation's task is a number."""
    try:
        integer(task)
    except RuleError as error:
        raise ModelError(f"{where}: attribute 'task': {error}") from error


def _owners(flow: FlowFile, operations: Mapping[str, Operation]) -> dict[str, Function]:
    owners: dict[str, Function] = {}
    for function in flow.functions:
        where = described(function.offset, f"function '{function.name}'")
        _require("has the operation", function.operations, operations, where)
        for name in function.operations:
            if name in owners:
                raise ModelError(f"{where} has the operation '{name}', which belongs to function '{owners[name].name}'")
            owners[name] = function
    return owners


def place(operation: Operation) -> str:
    """The name of an operation in errors."""
    return described(operation.offset, f"operation '{operation.name}' {operation.type}")
