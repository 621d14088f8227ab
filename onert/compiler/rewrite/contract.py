"""Passes and their contracts: a rewrite, what it requires of a subgraph, and what it ensures for the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from attrs import frozen

from onert.ir import CompileError, ModelError, Subgraph, infer_subgraph
from onert.ir.shape import compatible
from onert.ir.value import Value

from .effects import is_removable

Rewrite = Callable[[Subgraph], Subgraph]
"""Returns an equivalent subgraph, or the same object if nothing changes."""


@frozen
class Property(Value):
    """A property that a subgraph may have: `contradiction` describes the first violation, None if it holds.

    A `quick` property is checked whenever a pass has changed something, others only in tests.
    """

    name: str
    contradiction: Callable[[Subgraph], str | None]
    quick: bool = True


@frozen
class Pass(Value):
    """A rewrite with its contract. Its name, by which it can be disabled, is the function's."""

    rewrite: Rewrite
    requires: tuple[Property, ...]
    ensures: tuple[Property, ...]

    @property
    def name(self) -> str:
        """The name of the rewriting function."""
        return self.rewrite.__name__

    def __call__(self, subgraph: Subgraph) -> Subgraph:
        """The subgraph after the pass. Raises CompileError if it changed and violates a quick property it ensures."""
        result = self.rewrite(subgraph)
        if result is not subgraph:
            hold(self.name, "ensures", (each for each in (WELL_FORMED, *self.ensures) if each.quick), result)
        return result

    def checked(self, subgraph: Subgraph) -> Subgraph:
        """The subgraph after the pass, with every property checked that the pass requires and ensures."""
        hold(self.name, "requires", (WELL_FORMED, *self.requires), subgraph)
        result = self.rewrite(subgraph)
        hold(self.name, "ensures", (WELL_FORMED, *self.ensures), result)
        return result


def rewriting(*, requires: tuple[Property, ...] = (), ensures: tuple[Property, ...] = ()) -> Callable[[Rewrite], Pass]:
    """Decorator that makes a function a pass. Every pass also requires and ensures `WELL_FORMED`."""
    return lambda rewrite: Pass(rewrite, requires, ensures)


def hold(name: str, verb: str, properties: Iterable[Property], subgraph: Subgraph) -> None:
    """Raise CompileError, a defect of the named pass or an earlier one, unless the subgraph has the properties."""
    for each in properties:
        found = each.contradiction(subgraph)
        if found is not None:
            raise CompileError(f"pass {name} {verb} that {each.name}, but {found}")


def _ill_formed(subgraph: Subgraph) -> str | None:
    operands = range(len(subgraph.operands))
    defined = {i for i, operand in enumerate(subgraph.operands) if operand.is_constant or operand.variable}
    defined.update(subgraph.inputs)
    for operation in subgraph.operations:
        for read in operation.used:
            if read not in operands:
                return f"{operation} reads operand {read} of {len(operands)}"
            if read not in defined:
                return f"{operation} reads {subgraph.label(read)} before it is defined"
        for result in operation.outputs:
            if result not in operands:
                return f"{operation} defines operand {result} of {len(operands)}"
            if result in defined:
                return f"{operation} defines {subgraph.label(result)} again"
            defined.add(result)
    return next((f"output {kept} is not defined" for kept in sorted(subgraph.kept - defined)), None)


def _untyped(subgraph: Subgraph) -> str | None:
    try:
        found = infer_subgraph(subgraph)
    except ModelError as error:
        return str(error)
    for declared, inferred in zip(subgraph.operands, found.operands, strict=True):
        ranked = declared.type.ranked and inferred.type.ranked
        if ranked and not compatible(declared.type.shape, inferred.type.shape):
            return f"tensor '{declared.name}' is declared {declared.type} and inferred as {inferred.type}"
    return None


def _shared_outputs(subgraph: Subgraph) -> str | None:
    for output, times in Counter(subgraph.outputs).items():
        if output not in subgraph.definitions:
            return f"output {subgraph.label(output)} is not an operation's result"
        if times > 1:
            return f"output {subgraph.label(output)} occurs {times} times"
    read = (u.source for u in subgraph.state if subgraph.operands[u.source].variable)
    return next((f"a state update reads the variable {subgraph.label(source)}" for source in read), None)


def _dead(subgraph: Subgraph) -> str | None:
    for operation in subgraph.operations:
        needed = any(o in subgraph.uses or o in subgraph.kept for o in operation.outputs)
        if not needed and is_removable(operation):
            return f"nothing reads the results of {operation}"
    return None


WELL_FORMED = Property("every operand exists, and is defined once before it is read", _ill_formed)
TYPED = Property("the types of results are those that operations infer", _untyped, quick=False)
OWN_OUTPUTS = Property(
    "every output is one operation's result and occurs once, and no state update reads a variable", _shared_outputs
)
NOTHING_DEAD = Property("every operation has an effect, or a result that is read", _dead)
