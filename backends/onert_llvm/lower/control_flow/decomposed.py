"""Operations that are run as graphs of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from onert.ir import CallTypes, Op, Subgraph
from onert.ir.value import Value
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.rule import Rule

from .loop_branch import Enclosed, Held

Reason = Callable[..., str | None]
Spell = Callable[..., Subgraph]


@frozen
class Spelling(Value):
    """How operations of a kind are spelt as a graph: `why_not` says where they are not.

    The graph's inputs are the operands that are no constants, its outputs the results, each of an operation of its own.
    """

    why_not: Reason
    spell: Spell


@frozen
class Spelled(Value):
    """The rule for operations that are spelt; `enclosed` finds the rules for those of the graph."""

    enclosed: Enclosed
    spelling: Spelling

    def why_not(self, op: Op, types: CallTypes) -> str | None:
        """Why an operation is not spelt, or a part of the graph not native; None where all is."""
        reason = self.spelling.why_not(op, types)
        if reason is not None:
            return reason
        graph = self.spelling.spell(op, types)
        found = (self.enclosed.why(o, graph.types(o)) for o in graph.operations)
        return next((reason for reason in found if reason is not None), None)

    def lower(self, lowering: Lowering, operations: Sequence[int]) -> None:
        (at,) = operations
        operation = lowering.operation(at)
        types = lowering.subgraph.types(operation)
        graph = self.spelling.spell(operation.op, types)
        given = [i for i in operation.used if not lowering.subgraph.operands[i].is_constant]
        places = dict(zip(graph.inputs, map(lowering.operand, given), strict=True))
        places |= dict(zip(graph.outputs, map(lowering.operand, operation.outputs), strict=True))
        Held(self.enclosed, lowering, graph, places).emit(at)


def rules(enclosed: Enclosed, spellings: Mapping[type[Op], Spelling]) -> Mapping[type[Op], Rule]:
    """The rules for kinds that are spelt."""
    found = {kind: Spelled(enclosed, spelling) for kind, spelling in spellings.items()}
    return {kind: Rule(spelled.why_not, spelled.lower) for kind, spelled in found.items()}
