"""Operations that run other subgraphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from onert.ir import op as declarations
from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Context, Effect, Op, require
from onert.ir.ops.custom import as_declared, declared
from onert.ir.types import CallTypes, TensorType

from .refuse import Refuse


def _ends_fit(given: Sequence[int | None], caller: Any, ends: Sequence[int], called: Any, what: str) -> str | None:
    """What is wrong with the tensors passed between subgraphs: their number or element types; None if nothing is."""
    if len(given) != len(ends):
        return f"{what}: {len(given)} tensors do not match {len(ends)}"
    for mine, theirs in zip(given, ends, strict=True):
        if mine is None:
            return f"{what}: {called.label(theirs)} corresponds to an absent tensor"
        a, b = caller.type(mine), called.type(theirs)
        if a.dtype is not b.dtype:
            return f"{what}: {caller.label(mine)} is {a.dtype.text}, {called.label(theirs)} is {b.dtype.text}"
    return None


def _branches_fit(
    caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], branches: Iterable[tuple[str, Any]]
) -> str | None:
    """What is wrong with the named branches, one of which the first input selects; None if nothing is."""
    for name, graph in branches:
        problem = _ends_fit(inputs[1:], caller, graph.inputs, graph, f"{name}'s inputs")
        problem = problem or _ends_fit(outputs, caller, graph.outputs, graph, f"{name}'s outputs")
        if problem is not None:
            return problem
    return None


def _one_boolean(type_: TensorType) -> bool:
    return type_.dtype is DType.BOOL and shapes.num_elements(type_.shape) in (1, None)


@frozen
class If(Op):
    """Runs the subgraph `then` if the condition is true, otherwise the subgraph `otherwise`, on the same operands.

    - `condition`: one boolean
    - `xs`: the inputs of both subgraphs; the results are the outputs of the one that runs

    With `refusable`, as in ONNX, a branch that is impossible for the shapes that it receives is an error only when it
    runs.
    """

    then: int
    otherwise: int
    results: tuple[TensorType, ...] = ()
    refusable: bool = False

    callees: ClassVar[tuple[str, ...]] = ("then", "otherwise")

    def infer(self, condition: TensorType, *xs: TensorType) -> tuple[TensorType, ...]:
        require(_one_boolean(condition), f"the condition is {condition}, expected one boolean")
        return declared(self.results)

    def calls(self, inputs: int) -> tuple[declarations.Call, ...]:
        given = tuple(range(1, inputs))
        return (
            declarations.Call(self.then, given, refusable=self.refusable),
            declarations.Call(self.otherwise, given, refusable=self.refusable),
        )

    def refusal(self, sentence: str, results: tuple[TensorType, ...]) -> Op:
        return Refuse(sentence, declared(results))

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        return _branches_fit(caller, inputs, outputs, zip(("the then branch", "the else branch"), called, strict=True))

    def evaluate_in(self, context: Context, types: CallTypes, condition: Array, *xs: Array) -> tuple[Array, ...]:
        return context.call(self.then if bool(condition.reshape(())) else self.otherwise, xs)


@frozen
class While(Op):
    """A loop: runs the subgraph `body` on its own results while the subgraph `condition` returns true for them.

    - `xs`: the initial operands of both subgraphs; the results are the final ones

    Raises RuleError beyond the context's limit on iterations, or if an iteration changes nothing and there is no other
    state, because the loop would then never end.
    """

    condition: int
    body: int
    results: tuple[TensorType, ...] = ()

    callees: ClassVar[tuple[str, ...]] = ("condition", "body")

    infer = as_declared

    def calls(self, inputs: int) -> tuple[declarations.Call, ...]:
        given = tuple(range(inputs))
        return declarations.Call(self.condition, given, gives=False), declarations.Call(self.body, given, again=True)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        condition, body = called
        if len(condition.outputs) != 1 or not _one_boolean(condition.type(condition.outputs[0])):
            return "the condition's outputs are not one boolean"
        return (
            _ends_fit(inputs, caller, condition.inputs, condition, "the condition's inputs")
            or _ends_fit(inputs, caller, body.inputs, body, "the body's inputs")
            or _ends_fit(outputs, caller, body.outputs, body, "the body's outputs")
            or _ends_fit(inputs, caller, outputs, caller, "the loop's inputs and outputs")
        )

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> tuple[Array, ...]:
        state = xs
        iterations = 0
        while bool(context.call(self.condition, state)[0].reshape(())):
            if context.max_iterations is not None and iterations >= context.max_iterations:
                raise RuleError(f"the loop runs more than {context.max_iterations} times")
            following = context.call(self.body, state)
            iterations += 1
            if not context.state and _unchanged(state, following):
                raise RuleError(f"the loop never ends: iteration {iterations} changed nothing")
            state = following
        return tuple(x.copy() for x in state) if iterations == 0 else state


def _unchanged(before: Sequence[Array], after: Sequence[Array]) -> bool:
    """Whether all elements are bitwise equal; the smallest arrays, which are most likely to differ, come first."""
    for a, b in zip(before, after, strict=True):  # a counter usually decides
        if a.size == 1 and a.dtype != object and a.tobytes() != b.tobytes():
            return False
    pairs = sorted(zip(before, after, strict=True), key=lambda pair: pair[0].nbytes)
    return all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes())
        for a, b in pairs
    )


@frozen
class Call(Op):
    """Runs a subgraph.

    - `xs`: the inputs of the subgraph; the results are its outputs
    """

    subgraph: int
    results: tuple[TensorType, ...] = ()

    callees: ClassVar[tuple[str, ...]] = ("subgraph",)

    infer = as_declared

    def calls(self, inputs: int) -> tuple[declarations.Call, ...]:
        return (declarations.Call(self.subgraph, tuple(range(inputs))),)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        (graph,) = called
        return _ends_fit(inputs, caller, graph.inputs, graph, "the subgraph's inputs") or _ends_fit(
            outputs, caller, graph.outputs, graph, "the subgraph's outputs"
        )

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> tuple[Array, ...]:
        return context.call(self.subgraph, xs)


@frozen
class CallOnce(Op):
    """Runs a subgraph without inputs and outputs once per execution, for its effect on state."""

    subgraph: int

    effect: ClassVar[Effect] = Effect.WRITE
    callees: ClassVar[tuple[str, ...]] = ("subgraph",)

    def infer(self) -> tuple[TensorType, ...]:
        return ()

    def calls(self, inputs: int) -> tuple[declarations.Call, ...]:
        return (declarations.Call(self.subgraph, (), gives=False),)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        (graph,) = called
        if graph.inputs or graph.outputs:
            return f"the subgraph has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, expected none"
        return None

    @property
    def key(self) -> Hashable:
        """The key that an execution's state contains once the subgraph has run."""
        return ("call once", self.subgraph)

    def evaluate_in(self, context: Context, types: CallTypes) -> tuple[Array, ...]:
        if self.key not in context.state:
            context.state[self.key] = True
            context.call(self.subgraph, ())
        return ()


@frozen
class Case(Op):
    """Runs one of several subgraphs on the same operands: `branches[index]`, or the last if `index` is out of range.

    - `index`: one int32
    - `xs`: the inputs of all subgraphs; the results are the outputs of the one that runs
    """

    branches: tuple[int, ...]
    results: tuple[TensorType, ...] = ()

    callees: ClassVar[tuple[str, ...]] = ("branches",)

    def infer(self, index: TensorType, *xs: TensorType) -> tuple[TensorType, ...]:
        require(bool(self.branches), "there is no branch, expected at least one")
        fits = index.dtype is DType.INT32 and shapes.num_elements(index.shape) in (1, None)
        require(fits, f"the branch index is {index}, expected one i32")
        return declared(self.results)

    def calls(self, inputs: int) -> tuple[declarations.Call, ...]:
        return tuple(declarations.Call(branch, tuple(range(1, inputs))) for branch in self.branches)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        return _branches_fit(caller, inputs, outputs, ((f"branch {at}", graph) for at, graph in enumerate(called)))

    def evaluate_in(self, context: Context, types: CallTypes, index: Array, *xs: Array) -> tuple[Array, ...]:
        at = int(index.reshape(()))
        return context.call(self.branches[at if 0 <= at < len(self.branches) else -1], xs)
