"""Loops and branches that contain the graphs they run, so that a backend can compile them: the compiler creates them
from `While` and `If` operations with static shapes and no side effects.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.analysis.evaluate import evaluate
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Context, Op, require
from onert.ir.subgraph import Subgraph
from onert.ir.types import CallTypes, TensorType


def _require_fit(graph: Subgraph, xs: Sequence[TensorType], what: str) -> None:
    """Raises RuleError unless tensors match a graph's inputs."""
    require(len(xs) == len(graph.inputs), f"{what} has {len(graph.inputs)} inputs, expected {len(xs)}")
    for operand, x in zip(graph.inputs, xs, strict=True):
        wanted = graph.type(operand)
        fits = x.dtype is wanted.dtype and shapes.compatible(x.shape, wanted.shape)
        require(fits, f"{what} is given {x}, expected {wanted}")


def _results(graph: Subgraph) -> tuple[TensorType, ...]:
    return tuple(graph.type(o).result(graph.type(o).shape) for o in graph.outputs)


def run(graph: Subgraph, inputs: Sequence[Array], context: Context) -> tuple[Array, ...]:
    """The outputs of a graph, computed by evaluating its operations."""
    known = {i: operand.data.array for i, operand in enumerate(graph.operands) if operand.data is not None}
    known |= dict(zip(graph.inputs, inputs, strict=True))
    for operation in graph.operations:
        arrays = [None if i is None else known[i] for i in operation.inputs]
        results = evaluate(operation.op, arrays, graph.types(operation), context)
        known |= dict(zip(operation.outputs, results, strict=True))
    return tuple(known[o] for o in graph.outputs)


@frozen
class Loop(Op):
    """A loop: runs `body` on its own results while `condition` returns true for them, at most `most` times.

    - `xs`: the initial operands of both, of known shapes; the results are the final ones, of the same types

    Raises RuleError if the condition is still true after `most` iterations.
    """

    condition: Subgraph
    body: Subgraph
    most: int | None = None

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        _require_fit(self.condition, xs, "the condition")
        _require_fit(self.body, xs, "the body")
        found = _results(self.body)
        same = [(t.dtype, t.shape) for t in found] == [
            (x.dtype, x.shape) for x in map(self.body.type, self.body.inputs)
        ]
        require(same, "the body's results and inputs differ in type, expected the same types")
        return found

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> tuple[Array, ...]:
        state, iterations = xs, 0
        while bool(run(self.condition, state, context)[0].reshape(())):
            if self.most is not None and iterations >= self.most:
                raise RuleError(f"the loop runs more than {self.most} times")
            state, iterations = run(self.body, state, context), iterations + 1
        return tuple(x.copy() for x in state)


@frozen
class Branch(Op):
    """Runs `then` if the condition is true, otherwise `otherwise`, on the same operands.

    - `condition`: one boolean
    - `xs`: the inputs of both, of known shapes; the results are the outputs of the one that runs
    """

    then: Subgraph
    otherwise: Subgraph

    def infer(self, condition: TensorType, *xs: TensorType) -> tuple[TensorType, ...]:
        one = condition.dtype is DType.BOOL and shapes.num_elements(condition.shape) in (1, None)
        require(one, f"the condition is {condition}, expected one boolean")
        _require_fit(self.then, xs, "the then branch")
        _require_fit(self.otherwise, xs, "the else branch")
        found = _results(self.then)
        require(found == _results(self.otherwise), "the branches have results of different types, expected the same")
        return found

    def evaluate_in(self, context: Context, types: CallTypes, condition: Array, *xs: Array) -> tuple[Array, ...]:
        chosen = self.then if bool(condition.reshape(())) else self.otherwise
        return tuple(x.copy() for x in run(chosen, xs, context))
