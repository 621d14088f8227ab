"""Type inference for whole models, through the subgraphs that operations run."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.ir.errors import ModelError, RuleError
from onert.ir.op import Op
from onert.ir.operand import Operand
from onert.ir.operation import Operation
from onert.ir.process.budget import MAX_CALL_DEPTH, Budget
from onert.ir.subgraph import Subgraph, Subgraphs
from onert.ir.types import TensorType

from .inference import declare, infer, infer_operation, infer_subgraph

Types = tuple[TensorType, ...]

_OPERATION = 10
"""Budget steps charged for inferring an operation's results."""


def infer_model(model: Subgraphs, *entries: int, budget: Budget | None = None) -> Subgraphs:
    """The model with every type inferred from the input types of the subgraphs `entries`.

    By default the entries are the subgraphs that no operation runs. A subgraph that operations run gets the shapes that
    they pass, whatever the file declares; a dimension that differs between two calls, or two iterations of a loop, is
    unknown. Raises ModelError, with the place, if an operation rejects its operands, and for recursive or too deep
    calls. Inferring a subgraph again for other shapes is charged to the budget.

    If the file of an entry leaves dimensions open, its declared sizes may be mere placeholders. If an operation rejects
    them, inference is repeated with these dimensions unknown, and ModelError is raised only if that fails too.
    """
    called = {index for graph in model.subgraphs for operation in graph.operations for index in operation.op.subgraphs}
    entered = entries or tuple(index for index in range(len(model)) if index not in called)
    try:
        return _Inference(model, budget).run(entered)
    except ModelError as refused:
        opened = _open_where_refused(model, entered, budget)
        if opened is model:
            raise
        try:
            return _Inference(opened, budget).run(entered)
        except ModelError:
            raise refused from None


def _open_where_refused(model: Subgraphs, entries: Sequence[int], budget: Budget | None) -> Subgraphs:
    """The model with open input dimensions made unknown for those entries whose declared shapes are rejected."""
    for entry in entries:
        try:
            _Inference(model, budget).run((entry,))
        except ModelError:
            model = _opened(model, entry)
    return model


def _opened(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with unknown dimensions where the entry's file leaves them open; unchanged if there are none."""
    graph = model[entry]
    types = {
        i: graph.type(i).with_shape(graph.operands[i].open_shape)
        for i in graph.inputs
        if graph.operands[i].open_shape != graph.type(i).shape
    }
    if not types:
        return model
    graphs = tuple(graph.with_types(types) if i == entry else g for i, g in enumerate(model.subgraphs))
    return evolve(model, subgraphs=graphs)


def infer_alone(subgraph: Subgraph) -> Subgraph:
    """The subgraph with its types inferred again, except the results of operations that run subgraphs."""
    return infer_subgraph(subgraph, each=_keep_calls)


def _keep_calls(subgraph: Subgraph, operation: Operation, types: Sequence[TensorType]) -> Types:
    if operation.op.subgraphs:
        return tuple(subgraph.type(o) for o in operation.outputs)
    return infer_operation(subgraph, operation, types)


def join(a: TensorType, b: TensorType) -> TensorType:
    """The most specific type that covers both: dimensions that differ are unknown, as is the rank if it differs."""
    if a.shape == b.shape and a.ranked == b.ranked:
        return a
    if not (a.ranked and b.ranked and a.rank == b.rank):
        return evolve(a, shape=(), ranked=False, data=None)
    return a.with_shape(tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)))


def _join_all(a: Types, b: Types) -> Types:
    return tuple(join(x, y) for x, y in zip(a, b, strict=True))


class _Inference:
    """Infers called subgraphs from the outside in, until the input types of every subgraph are stable.

    This terminates because input types only ever become less specific.
    """

    def __init__(self, model: Subgraphs, budget: Budget | None) -> None:
        self.model = model
        self.budget = budget
        self.calls = any(operation.op.subgraphs for graph in model.subgraphs for operation in graph.operations)
        self.given: dict[int, Types] = {}
        self.inferred: dict[int, Subgraph] = {}
        self.running: list[int] = []
        self.refused: dict[int, Op] = {}

    def run(self, entries: Sequence[int]) -> Subgraphs:
        known: dict[int, Types] | None = None
        while self.given != known:
            known = dict(self.given)
            self.inferred = {}
            self.refused = {}
            for entry in entries:
                graph = self.model[entry]
                self.enter(entry, tuple(graph.type(i) for i in graph.inputs))
            if not self.calls:
                break
        graphs = [self.inferred.get(i, graph) for i, graph in enumerate(self.model.subgraphs)]
        for index, refusal in self.refused.items():
            graphs[index] = _refusing(self.model[index], self.given[index], refusal)
        return evolve(self.model, subgraphs=tuple(graphs))

    def enter(self, index: int, given: Types) -> Types:
        """The types of a subgraph's results for these input types."""
        if index in self.running:
            raise ModelError(f"subgraphs {', '.join(map(str, self.running))} call one another in a cycle")
        if len(self.running) > MAX_CALL_DEPTH:
            raise ModelError(f"subgraphs call one another more than {MAX_CALL_DEPTH} deep")
        given = _join_all(self.given.get(index, given), given)
        if index not in self.inferred or given != self.given[index]:
            self.given[index] = given
            graph = self.model[index]
            if self.budget is not None:
                self.budget.spend(len(graph.operands) + _OPERATION * len(graph.operations), "inferring shapes")
            self.running.append(index)
            place = f"subgraph {index} '{graph.name}', " if graph.name else f"subgraph {index}, "
            try:
                self.inferred[index] = infer_subgraph(
                    graph.with_types(dict(zip(graph.inputs, given, strict=True))),
                    place if len(self.model) > 1 or graph.name else "",
                    self.infer_operation,
                )
            finally:
                self.running.pop()
        graph = self.inferred[index]
        return tuple(graph.type(o) for o in graph.outputs)

    def infer_operation(self, subgraph: Subgraph, operation: Operation, types: Sequence[TensorType]) -> Types:
        if not operation.op.subgraphs:
            return infer_operation(subgraph, operation, types)
        inputs = [None if i is None else types[i].with_data(subgraph.operands[i].data) for i in operation.inputs]
        infer(operation.op, inputs)  # checks the operation's own rules
        calls = operation.op.calls(len(inputs))
        for index in set(operation.op.subgraphs) - {call.subgraph for call in calls}:
            self.enter(index, tuple(self.model[index].type(i) for i in self.model[index].inputs))
        if not any(call.gives for call in calls):
            return infer_operation(subgraph, operation, types)
        results = self.called(operation, tuple(types[i] for i in operation.used))
        declared = [subgraph.type(o) for o in operation.outputs]
        if len(results) != len(declared):
            raise RuleError(f"has {len(declared)} outputs, expected {len(results)}")
        return tuple(declare(r, d) for r, d in zip(results, declared, strict=True))

    def called(self, operation: Operation, given: Types) -> Types:
        """The result types of the operation's subgraphs, joined over the iterations of a loop."""
        calls = operation.op.calls(len(given))
        while True:
            results: Types | None = None
            impossible: list[ModelError] = []
            for call in calls:
                fitting = self.fitting(call.subgraph, [given[p] for p in call.inputs])
                try:
                    found = self.enter(call.subgraph, fitting)
                except ModelError as error:
                    if not call.refusable:
                        raise
                    impossible.append(error)
                    results_of = tuple(self.model[call.subgraph].type(o) for o in self.model[call.subgraph].outputs)
                    self.refused[call.subgraph] = operation.op.refusal(str(error), results_of)
                    continue
                if call.gives:
                    _require_same(found, results)
                    results = found if results is None else _join_all(results, found)
            if results is None:
                raise impossible[0]
            if not any(call.again for call in calls):
                return results
            _require_same(results, given)
            joined = _join_all(given, results)
            if joined == given:
                return given
            given = joined

    def fitting(self, index: int, given: Sequence[TensorType]) -> Types:
        """The declared types of a subgraph's inputs, with the shapes that it is given."""
        graph = self.model[index]
        declared = tuple(graph.type(i) for i in graph.inputs)
        _require_same(declared, tuple(given))
        return tuple(evolve(d, shape=g.shape, ranked=g.ranked, data=None) for d, g in zip(declared, given, strict=True))


def _refusing(graph: Subgraph, given: Types, refusal: Op) -> Subgraph:
    """A subgraph with the same inputs and outputs whose only operation is the refusal."""
    inputs = tuple(Operand(t, graph.operands[i].name) for i, t in zip(graph.inputs, given, strict=True))
    results = infer(refusal, ()) or ()
    outputs = tuple(range(len(inputs), len(inputs) + len(results)))
    operands = (*inputs, *map(Operand, results))
    return Subgraph(operands, (Operation(refusal, (), outputs),), tuple(range(len(inputs))), outputs, graph.name)


def _require_same(a: Types, b: Types | None) -> None:
    """Raises RuleError unless both have the same number of types with equal element types."""
    if b is not None and [t.dtype for t in a] != [t.dtype for t in b]:
        first, second = (", ".join(t.dtype.text for t in types) or "nothing" for types in (a, b))
        raise RuleError(f"subgraphs exchange tensors of {first} for tensors of {second}")
