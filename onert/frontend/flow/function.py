"""Translates one function of a flow to a subgraph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import Factory, field, frozen

from onert.ir import DType, ModelError, Operand, RuleError, Subgraph, TensorType
from onert.ir import shape as shapes
from onert.ir.ops.custom import Unsupported
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.layout import Transpose

from .elements import type_of
from .emitter import Emitter, Node, Rule
from .file import Function, Operation, Variable, described
from .resolve import Graph, place

REFERENCE = "Reference"
"""The type of operations whose results represent variables of another function's instance."""
Lookup = Callable[[Operation], Rule | None]
"""Returns the rule for an operation; None if it is unknown."""


@frozen(eq=False)
class Translation:
    """A function as a subgraph: its operands by variable name, and notes about what was ignored.

    The last outputs of the subgraph are the new values of the variables in `assigned`. `referred` maps inputs that
    represent variables of an instance to the variable that holds the instance and the name of the variable inside it.
    """

    subgraph: Subgraph
    operands: Mapping[str, int]
    assigned: tuple[str, ...]
    notes: tuple[str, ...]
    referred: Mapping[str, tuple[str, str]] = field(factory=dict)


def translate(
    graph: Graph,
    function: Function,
    lookup: Lookup,
    given: frozenset[str] = frozenset(),
    assignments: Mapping[str, Rule] = MappingProxyType({}),
    columns: frozenset[str] = frozenset(),
) -> Translation:
    """Translate a function to a subgraph.

    Its inputs are the variables that its operations read and none computes, except constants, in the order of the flow.
    Constants in `given`, by name, are inputs too, and so are results of `Reference`, which represent variables of an
    instance of another function. Its outputs are in the order in which they are computed. A dimension of -1 in an input
    is 1 until another shape is set. `assignments` maps types of operations that assign to their first operand to the
    rules for its new value, which later operations read. Inputs and outputs in `columns`, by name, are column-major:
    their operands are transposed, with all dimensions reversed.
    An unknown operation becomes `Unsupported`. Raises ModelError with the place if an operation breaks a rule.
    """
    return _Translator(graph, function, lookup, given, assignments, columns).translation()


@frozen(eq=False)
class _Translator:
    _graph: Graph
    _function: Function
    _lookup: Lookup
    _given: frozenset[str]
    _assignments: Mapping[str, Rule]
    _columns: frozenset[str]
    _assigned: dict[str, int] = field(factory=dict, init=False)
    _emitter: Emitter = field(default=Factory(lambda self: Emitter(self._function.name), takes_self=True), init=False)
    _operands: dict[str, int] = field(factory=dict, init=False)
    _notes: list[str] = field(factory=list, init=False)

    def translation(self) -> Translation:
        graph, referred = self._graph, {}
        operations = []
        for operation in graph.ordered(self._function):
            if operation.type == REFERENCE:
                referred.update(self._reference(operation))
            else:
                operations.append(operation)
        read = {variable.name for operation in operations for variable in graph.inputs(operation)}
        for variable in graph.flow.variables:
            if variable.name in read and (variable.name in referred or variable.name not in graph.producers):
                self._operands[variable.name] = self._source(variable)
        for operation in operations:
            self._translate(operation)
        computed = [variable for operation in operations for variable in graph.outputs(operation)]
        outputs = [self._output(v.name, self._operands[v.name]) for v in computed if graph.is_output(v)]
        outputs += [self._new_value(name, operand) for name, operand in self._assigned.items()]
        subgraph = self._emitter.subgraph(outputs)
        read_ones = {name: stands_for for name, stands_for in referred.items() if name in self._operands}
        return Translation(subgraph, self._operands, tuple(self._assigned), tuple(self._notes), read_ones)

    def _reference(self, operation: Operation) -> dict[str, tuple[str, str]]:
        """Map the result of a Reference to the variable with the instance and the name of the variable inside it."""
        inputs, outputs, name = (
            self._graph.inputs(operation),
            self._graph.outputs(operation),
            operation.attribute("var"),
        )
        if len(inputs) != 1 or len(outputs) != 1 or type_of(inputs[0]).dtype is not DType.RESOURCE:
            raise ModelError(f"{place(operation)}: expected one resource as input and one output")
        if not name:
            raise ModelError(f"{place(operation)}: has no attribute 'var'")
        return {outputs[0].name: (inputs[0].name, name)}

    def _source(self, variable: Variable) -> int:
        """Create the operand of a variable that no operation computes."""
        type_, data, note = self._graph.elements(variable)
        if note:
            self._notes.append(note)
        if data is not None and variable.name not in self._given:
            return self._emitter.operand(Operand(type_, variable.name, data), given=False)
        starting = TensorType(type_.dtype, tuple(1 if d is None else d for d in type_.shape))
        open_shape = None if type_.is_static else type_.shape
        if variable.name in self._columns and starting.shape is not None:
            turned = starting.plain(shape=starting.shape[::-1])
            given = self._emitter.operand(Operand(turned, variable.name), given=True)
            return self._reverse_axes(given, variable.name)
        return self._emitter.operand(Operand(starting, variable.name, signature_shape=open_shape), given=True)

    def _reverse_axes(self, operand: int, name: str) -> int:
        """The operand with its dimensions reversed."""
        e = self._emitter
        e.place = f"order of variable '{name}'"
        return e.add(Transpose(), operand, e.indices(range(e.rank(operand))[::-1]))

    def _output(self, name: str, operand: int) -> int:
        """The operand of a variable as an output of the function."""
        if name not in self._columns:
            return operand
        self._emitter.name_operand(operand, "")
        turned = self._reverse_axes(operand, name)
        self._emitter.name_operand(turned, name)
        return turned

    def _new_value(self, name: str, operand: int) -> int:
        """The operand with the new value of a variable, named after it if it has no name."""
        e = self._emitter
        found = self._reverse_axes(operand, name) if name in self._columns else operand
        if not e.operand_name(found):
            e.name_operand(found, f"{name}'")
        return found

    def _translate(self, operation: Operation) -> None:
        graph, e = self._graph, self._emitter
        where = place(operation)
        e.place = location_of(operation)
        try:
            inputs = tuple(self._operand(variable) for variable in graph.inputs(operation))
            results = tuple(type_of(variable) for variable in graph.outputs(operation))
            node = Node(operation.type, inputs, results, dict(operation.attributes))
            made = self._results(operation, node)
            if len(made) != len(results):
                raise RuleError(f"has {len(results)} outputs, expected {len(made)}")
            for variable, index, declared in zip(graph.outputs(operation), made, results, strict=True):
                settled = _adapt(e, index, declared)
                self._operands[variable.name] = settled if settled not in inputs else e.add(Copy(), settled)
                e.name_operand(self._operands[variable.name], variable.name)
        except RuleError as error:
            raise ModelError(f"{where}: {error}") from error
        except ModelError as error:
            text = str(error)
            known = text.startswith("byte ") or not operation.offset
            raise error if known else ModelError(described(operation.offset, text)) from error
        except (ValueError, TypeError, ArithmeticError, IndexError, KeyError) as error:
            raise ModelError(f"{where}: {type(error).__name__}: {error}") from error

    def _results(self, operation: Operation, node: Node) -> tuple[int, ...]:
        """The operands of an operation's results."""
        if operation.type in self._assignments:
            return self._assign(operation, node)
        rule = self._lookup(operation)
        if rule is None:
            return tuple(self._emitter.add_many(Unsupported(node.type, node.results), *node.inputs))
        found = rule(self._emitter, node)
        return (found,) if isinstance(found, int) else tuple(found)

    def _assign(self, operation: Operation, node: Node) -> tuple[int, ...]:
        """Set the new value of the first operand, for later operations and for the function's caller."""
        e, target = self._emitter, node.input(0)
        variable = self._graph.inputs(operation)[0]
        producer = self._graph.producers.get(variable.name)
        computed = producer is not None and producer.type != REFERENCE
        if computed or (variable.data and variable.name not in self._given):
            raise RuleError(f"assigns to '{variable.name}', which is computed or a constant")
        value = self._assignments[operation.type](e, node)
        value = value if isinstance(value, int) else value[0]
        if e.type(value) != e.type(target).plain():
            raise RuleError(f"assigns {e.type(value)} to '{variable.name}' of {e.type(target)}")
        self._operands[variable.name] = self._assigned[variable.name] = value
        return (value,) * len(node.results)

    def _operand(self, variable: Variable) -> int:
        found = self._operands.get(variable.name)
        if found is None:
            producer = self._graph.producers[variable.name]
            owner = self._graph.owners.get(producer.name)
            whose = "no function" if owner is None else f"function '{owner.name}'"
            raise RuleError(f"reads '{variable.name}', which an operation of {whose} computes")
        return found


def location_of(operation: Operation) -> str:
    """The location of all IR operations for a flow operation."""
    return f"operation '{operation.name}' {operation.type}"


def _known(declared: TensorType) -> TensorType:
    """The declared type, with dimensions of 0, which mean a missing shape, unknown."""
    return declared.plain(shape=tuple(None if d == 0 else d for d in declared.shape))


def _adapt(e: Emitter, index: int, declared: TensorType) -> int:
    """Adapt a result to its declaration: convert booleans to numbers, and reshape dimensions of 1.

    Raises RuleError if the declared type differs otherwise.
    """
    inferred, declared = e.type(index), _known(declared)
    if inferred.dtype is DType.BOOL and declared.dtype.is_numeric:
        index = e.cast(index, declared.dtype)
    elif inferred.dtype is not declared.dtype:
        raise RuleError(f"the result is declared {declared.dtype.text}, but inferred as {inferred.dtype.text}")
    if declared.rank == inferred.rank and shapes.compatible(inferred.shape, declared.shape):
        return index
    same = [d for d in declared.shape if d != 1] == [d for d in inferred.shape if d != 1]
    if not same or not declared.is_static:
        raise RuleError(f"the result is declared {shapes.text(declared.shape)}, but inferred as {inferred}")
    return e.reshape(index, shapes.static(declared.shape))
