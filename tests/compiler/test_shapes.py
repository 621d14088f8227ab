"""Shape inference across calls of subgraphs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from attrs import frozen

from onert.ir import Array, Call, CallTypes, Context, DType, ModelError, Op, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_model

from .toy import Draft, ToyAdd, ToyFlat, ToyHalves, ToyScale


@frozen
class ToyBranch(Op):
    """Calls one of two subgraphs on `xs`."""

    then: int = 1
    otherwise: int = 2
    callees: ClassVar[tuple[str, ...]] = ("then", "otherwise")

    def infer(self, condition: TensorType, *xs: TensorType) -> tuple[TensorType, ...]:
        return ()

    def calls(self, inputs: int) -> tuple[Call, ...]:
        rest = tuple(range(1, inputs))
        return Call(self.then, rest), Call(self.otherwise, rest)

    def evaluate_in(self, context: Context, types: CallTypes, condition: Array, *xs: Array) -> tuple[Array, ...]:
        return context.call(self.then if condition else self.otherwise, xs)


@frozen
class ToyLoop(Op):
    """Calls a subgraph on its own results until another one ends the loop."""

    condition: int = 1
    body: int = 2
    callees: ClassVar[tuple[str, ...]] = ("condition", "body")

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        return xs

    def calls(self, inputs: int) -> tuple[Call, ...]:
        every = tuple(range(inputs))
        return Call(self.condition, every, gives=False), Call(self.body, every, again=True)


def one(op: Op, *shape: int | None, results: int = 1) -> Subgraph:
    """A subgraph of one operation, with its first result."""
    d = Draft()
    made = d.op(op, d.input(*shape), results=results)
    return d.graph(made if results == 1 else made[0])


def branching(then: Subgraph, otherwise: Subgraph, *shape: int | None) -> Subgraphs:
    d = Draft()
    condition, x = d.input(dtype=DType.BOOL), d.input(*shape)
    result = d.op(ToyBranch(), condition, x, like=TensorType(DType.FLOAT32, (99,)))
    return Subgraphs((d.uninferred(result), then, otherwise))


def result_shape(model: Subgraphs) -> str:
    inferred = infer_model(model, 0).primary
    return str(inferred.type(inferred.outputs[0]))


def test_a_called_subgraph_has_the_shapes_of_its_call_and_not_of_the_file() -> None:
    model = infer_model(branching(one(ToyFlat(), 1, 1), one(ToyFlat(), 7, 7), 2, 3), 0)
    assert [str(g.type(g.inputs[-1])) for g in model.subgraphs] == ["f32[2, 3]"] * 3
    assert result_shape(model) == "f32[6]"


def test_a_dimension_that_differs_between_branches_is_unknown() -> None:
    assert result_shape(branching(one(ToyHalves(), 4, results=2), one(ToyScale(), 4), 4)) == "f32[?]"


def test_branches_of_different_rank_give_an_unknown_rank() -> None:
    assert result_shape(branching(one(ToyFlat(), 2, 2), one(ToyScale(), 2, 2), 2, 2)) == "f32[*]"


def test_a_dimension_that_a_loop_changes_is_unknown_in_every_round() -> None:
    body = Draft()
    x, y = body.input(1), body.input(3)
    _, half = body.op(ToyHalves(), x, results=2)
    sink = body.op(ToyScale(), y)
    condition = Draft()
    c = condition.input(1)
    condition.input(3)
    outer = Draft()
    made = outer.op(ToyLoop(), outer.input(4), outer.input(3), results=2)
    model = Subgraphs((outer.uninferred(*made), condition.uninferred(c), body.uninferred(half, sink)))
    inferred = infer_model(model, 0)
    assert [str(inferred.primary.type(o)) for o in inferred.primary.outputs] == ["f32[?]", "f32[3]"]
    assert [str(inferred[2].type(i)) for i in inferred[2].inputs] == ["f32[?]", "f32[3]"]
    assert str(inferred[1].type(0)) == "f32[?]"


def test_dimensions_that_differ_between_two_calls_are_unknown_for_both() -> None:
    d = Draft()
    condition = d.input(dtype=DType.BOOL)
    results = [d.op(ToyBranch(1, 1), condition, d.input(n, 2), like=TensorType(DType.FLOAT32)) for n in (3, 4)]
    scale = Draft()
    y = scale.op(ToyScale(), scale.input(9, 9))
    inferred = infer_model(Subgraphs((d.uninferred(*results), scale.uninferred(y))), 0)
    assert [str(inferred.primary.type(o)) for o in inferred.primary.outputs] == ["f32[?, 2]", "f32[?, 2]"]


def test_a_cycle_of_calls_is_rejected() -> None:
    d = Draft()
    y = d.op(ToyLoop(0, 0), d.input(2))
    with pytest.raises(ModelError, match="subgraphs 0 call one another in a cycle"):
        infer_model(Subgraphs((d.uninferred(y),)), 0)


def test_a_call_with_another_element_type_is_rejected() -> None:
    wrong = Draft()
    y = wrong.op(ToyScale(), wrong.input(2, dtype=DType.INT32))
    d = Draft()
    result = d.op(ToyBranch(1, 1), d.input(dtype=DType.BOOL), d.input(2))
    with pytest.raises(ModelError, match="subgraph 0, operation 0 ToyBranch: subgraphs exchange tensors of i32 for"):
        infer_model(Subgraphs((d.uninferred(result), wrong.uninferred(y))), 0)


def test_a_broken_rule_inside_a_call_names_the_subgraph() -> None:
    body = Draft()
    z = body.op(ToyAdd(), body.input(2), body.constant(np.ones(3, np.float32)))
    d = Draft()
    result = d.op(ToyBranch(1, 1), d.input(dtype=DType.BOOL), d.input(2))
    with pytest.raises(ModelError, match=r"subgraph 1, operation 0 ToyAdd: shapes \[2\] and \[3\] do not broadcast"):
        infer_model(Subgraphs((d.uninferred(result), body.uninferred(z))), 0)
