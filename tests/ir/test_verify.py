"""The verifier rejects every broken rule with its place and the value, and accepts everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from shared_material import REPOSITORY

import onert
from onert.ir import (
    Constant,
    DType,
    ModelError,
    Operand,
    Operation,
    Quantization,
    Signature,
    SignatureTensor,
    StateUpdate,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.analysis.verify import problems, verify
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

_F32 = TensorType(DType.FLOAT32, (2, 3))


def _good() -> Subgraph:
    """x (0), a constant (1), their sum (2), its relu (3)."""
    b = Builder()
    x = b.input(_F32, "x")
    total = b.add(Binary(BinaryKind.ADD), x, b.constant(np.ones(3, np.float32)))
    return b.subgraph([b.add(Unary(UnaryKind.RELU), total)])


def _operand(graph: Subgraph, at: int, operand: Operand) -> Subgraph:
    return evolve(graph, operands=(*graph.operands[:at], operand, *graph.operands[at + 1 :]))


def _operation(graph: Subgraph, at: int, **changed: Any) -> Subgraph:
    changed_operation = evolve(graph.operations[at], **changed)
    return evolve(graph, operations=(*graph.operations[:at], changed_operation, *graph.operations[at + 1 :]))


def _typed(at: int, type_: TensorType) -> Callable[[Subgraph], Subgraph]:
    return lambda graph: _operand(graph, at, evolve(graph.operands[at], type=type_))


_ROWS = Quantization((1.0, 1.0, 1.0), (0, 0, 0), 0)
_BAD: dict[str, tuple[Callable[[Subgraph], Subgraph], str]] = {
    "an input outside": (lambda g: evolve(g, inputs=(9,)), "inputs name tensor 9, expected 0 to 3"),
    "an output outside": (lambda g: evolve(g, outputs=(-1,)), "outputs name tensor -1, expected 0 to 3"),
    "an operand outside": (lambda g: _operation(g, 1, inputs=(4,)), "names tensor 4, expected 0 to 3"),
    "a result outside": (lambda g: _operation(g, 1, outputs=(7,)), "names tensor 7"),
    "an update outside": (lambda g: evolve(g, state=(StateUpdate(0, 8),)), "names tensor 8"),
    "an input twice": (lambda g: evolve(g, inputs=(0, 0)), r"inputs \[0, 0\] name one tensor twice"),
    "read before written": (
        lambda g: evolve(g, operations=g.operations[::-1]),
        "tensor 2 is read before anything writes it",
    ),
    "written twice": (lambda g: _operation(g, 1, outputs=(2,)), "tensor 2 is written, but it has elements already"),
    "an unwritten output": (lambda g: evolve(g, operations=g.operations[:1]), "tensor 3 is an output, but nothing"),
    "too few operands": (lambda g: _operation(g, 0, inputs=(0,)), "operation 0"),
    "too many results": (
        lambda g: _operation(_operand(g, 3, g.operands[3]), 1, outputs=(3, 3)),
        "operation 1",
    ),
    "a negative dimension": (_typed(0, TensorType(DType.FLOAT32, (-2, 3))), r"\[-2, 3\] has a negative dimension"),
    "quantised floats": (_typed(0, evolve(_F32, quantization=_ROWS)), "f32 are quantised, expected integers"),
    "an axis outside": (
        _typed(0, TensorType(DType.INT8, (2, 3), Quantization((1.0,), (0,), 2))),
        "quantised along axis 2 of rank 2",
    ),
    "too many scales": (_typed(0, TensorType(DType.INT8, (2, 3), _ROWS)), "has 3 scales along axis 0 of 2"),
    "elements of another type": (
        lambda g: _operand(g, 1, evolve(g.operands[1], data=Constant(np.ones(3, np.int32)))),
        r"has elements of int32\[3\]",
    ),
    "a variable with elements": (
        lambda g: _operand(g, 1, evolve(g.operands[1], variable=True)),
        "both a variable and a constant",
    ),
    "an update of no variable": (lambda g: evolve(g, state=(StateUpdate(0, 3),)), "is updated, but is not a variable"),
    "another shape than inferred": (
        _typed(3, TensorType(DType.FLOAT32, (2, 4))),
        r"declared f32\[2, 4\], the operation gives f32\[2, 3\]",
    ),
    "a rule of the operation": (_typed(1, TensorType(DType.FLOAT32, (5,))), ""),
}


@pytest.mark.parametrize(("broken", "message"), _BAD.values(), ids=_BAD.keys())
def test_a_broken_rule_is_named_with_its_place(broken: Callable[[Subgraph], Subgraph], message: str) -> None:
    with pytest.raises(ModelError, match=r"^subgraph 0 'main', ") as found:
        verify(Subgraphs((broken(_good()),)))
    assert "\n" not in str(found.value)
    found.match(message)


def test_valid_models_pass() -> None:
    made = Subgraphs((_good(),), (Signature("s", 0, (SignatureTensor("x", 0),), (SignatureTensor("y", 3),)),))
    models = [made]
    for name in ("digits_float", "digits_int8"):
        models += onert.load(REPOSITORY / "nnpackage/examples" / name).models
    for model in models:
        verify(model)  # raises if a rule is broken
        assert [list(problems(graph)) for graph in model.subgraphs] == [[]] * len(model)


def _calling(called: int) -> Subgraph:
    return Subgraph((Operand(_F32), Operand(_F32)), (Operation(Call(called, (_F32,)), (0,), (1,)),), (0,), (1,), "g")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Subgraphs(()), "no subgraph"),
        (Subgraphs((_calling(3),)), "runs subgraph 3, expected 0 to 0"),
        (Subgraphs((_calling(1), _calling(0))), "in a cycle"),
        (Subgraphs((_good(),), (Signature("s", 2, (), ()),)), "signature 's' names subgraph 2"),
        (Subgraphs((_good(),), (Signature("s", 0, (SignatureTensor("x", 2),), ()),)), "names tensor 2, expected one"),
    ],
    ids=["no subgraph", "a call of no subgraph", "a cycle", "a signature of no subgraph", "a signature of no input"],
)
def test_references_between_subgraphs_are_checked(model: Subgraphs, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        verify(model)
