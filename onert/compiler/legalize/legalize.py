"""Legalisation: replace operations that no backend runs natively by graphs of operations that one does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from attrs import evolve

from onert.compiler.rewrite.edit import Edit
from onert.ir import CallTypes, Op, Operation, Subgraph
from onert.ir.analysis.cost import cost
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.symbolic.trace import hint

from .decomposition import MOST_TABLED, Decomposition, decompositions, has_decompositions, has_plainer
from .draft import Draft

MOST_NESTED = 8
"""How deep decompositions may be nested, so that kinds that decompose into one another terminate."""


class Support(IntEnum):
    """How an operation is run."""

    NONE = 0
    """By no backend."""
    EVALUATED = 1
    """In NumPy, by its `evaluate` function."""
    NATIVE = 2
    """By native code."""
    NAMED = 3
    """By the backend that the user chose for it, however that runs it."""


Supports = Callable[[Operation, CallTypes], Support]
"""How the best backend for an operation runs it."""


Find = Callable[[type[Op]], tuple[Decomposition, ...]]
"""The decompositions of a kind."""


def legalize(graph: Subgraph, supports: Supports, find: Find | None = None) -> Subgraph:
    """The graph with operations decomposed if that makes them native, or supported at all.

    A native operation stays, unless a decomposition is `plainer`. Any other is decomposed if all operations of the
    decomposition, legalised themselves, have a higher support level; of several decompositions the cheapest is taken.
    Graphs in loops and branches are legalised likewise. Returns the same object if nothing changes. `find` returns the
    decompositions of a kind; None stands for the compiler's own.

        y = OneHot(x, 3, 1.0, 0.0)    -->    y = Select(Equal(Reshape(x), [0, 1, 2]), 1.0, 0.0)
    """
    if find is None or find is decompositions:
        return _Legalizing(supports, has_decompositions, decompositions).graph(graph, 0)
    return _Legalizing(supports, lambda kind: bool(find(kind)), find).graph(graph, 0)


def becomes_native(operation: Operation, types: CallTypes, supports: Supports) -> bool:
    """Whether an operation, or one of the compiler's own decompositions of it, is native."""
    level = supports(operation, types)
    kind = type(operation.op)
    if level >= Support.NATIVE or not has_decompositions(kind) or not (_is_static(types) and _is_short(types)):
        return level >= Support.NATIVE
    legalizing = _Legalizing(supports, has_decompositions, decompositions)
    return legalizing.best(operation, types, decompositions(kind), level, 0) is not None


class _Legalizing:
    """`has` says whether a kind has decompositions; `find` imports and returns them, which takes longer."""

    def __init__(self, supports: Supports, has: Callable[[type[Op]], bool], find: Find) -> None:
        self.supports = supports
        self.has = has
        self.find = find

    def graph(self, graph: Subgraph, depth: int) -> Subgraph:
        edit = Edit(graph)
        for at, operation in enumerate(graph.operations):
            op = operation.op
            if isinstance(op, Loop | Branch):
                inner = self.with_inner_graphs(op, depth)
                if inner is not op:
                    edit.replace(at, evolve(operation, op=inner))
                continue
            types = graph.types(operation)
            if depth == MOST_NESTED or not self.has(type(op)) or not (_is_static(types) and _is_short(types)):
                continue
            found = self.replacement(operation, types, depth)
            if found is not None:
                edit.inline(at, found, operation.used, operation.outputs)
        return edit.done()

    def with_inner_graphs(self, op: Loop | Branch, depth: int) -> Loop | Branch:
        """The operation with its enclosed graphs legalised."""
        if isinstance(op, Loop):
            condition, body = (self.graph(graph, depth) for graph in (op.condition, op.body))
            same = condition is op.condition and body is op.body
            return op if same else evolve(op, condition=condition, body=body)
        then, otherwise = (self.graph(graph, depth) for graph in (op.then, op.otherwise))
        return op if then is op.then and otherwise is op.otherwise else evolve(op, then=then, otherwise=otherwise)

    def replacement(self, operation: Operation, types: CallTypes, depth: int) -> Subgraph | None:
        """The decomposition that replaces an operation; None if the operation stays."""
        level, kind = self.supports(operation, types), type(operation.op)
        if level is Support.NAMED or (level is Support.NATIVE and not has_plainer(kind)):
            return None
        plainer, others = ([d for d in self.find(kind) if d.plainer is is_plainer] for is_plainer in (True, False))
        found = self.best(operation, types, plainer, min(level, Support.EVALUATED), depth)
        return (
            found if found is not None or level is Support.NATIVE else self.best(operation, types, others, level, depth)
        )

    def best(
        self, operation: Operation, types: CallTypes, possible: Iterable[Decomposition], level: Support, depth: int
    ) -> Subgraph | None:
        """The cheapest decomposition whose operations all have a support above `level`; None if there is none."""
        found: list[Subgraph] = []
        for each in possible:
            if each.why_not(operation.op, types) is None:
                graph = self.graph(decomposed(each, operation, types), depth + 1)
                if all(self.supports(o, graph.types(o)) > level for o in graph.operations):
                    found.append(graph)
        return min(found, key=_cost, default=None)


def _is_static(types: CallTypes) -> bool:
    return all(t is None or t.is_static for t in (*types.inputs, *types.outputs))


def _is_short(types: CallTypes) -> bool:
    """Whether tables as long as any axis are allowed, since many decompositions contain these."""
    return all(hint(d or 0) <= MOST_TABLED for t in (*types.inputs, *types.outputs) if t is not None for d in t.shape)


def decomposed(decomposition: Decomposition, operation: Operation, types: CallTypes) -> Subgraph:
    """The graph that replaces an operation; its inputs are the operands that are present, in order."""
    draft = Draft()
    operands = draft.operands(types)
    if all(0 in t.shape for t in types.outputs):
        return draft.subgraph([draft.nothing(t) for t in types.outputs])
    return draft.subgraph(decomposition.write(draft, operation.op, types, operands))


def _cost(graph: Subgraph) -> int:
    """The sum of arithmetic and bytes over a graph's operations."""
    costs = (cost(operation.op, graph.types(operation)) for operation in graph.operations)
    return sum(each.flops + each.nbytes for each in costs)
