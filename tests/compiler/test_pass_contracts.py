"""Every pass on its own: it preserves the meaning of graphs, and its contract is checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from llvm.natively import evaluated
from random_graphs import random_model

import onert
from onert.compiler.pipeline import OPTIONAL, REQUIRED
from onert.compiler.rewrite.contract import (
    NOTHING_DEAD,
    OWN_OUTPUTS,
    TYPED,
    WELL_FORMED,
    Pass,
    Property,
    rewriting,
)
from onert.ir import Array, CompileError, DType, Operand, Operation, Subgraph, TensorType
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.text import parse_subgraph

from .roughen import roughened

PASSES = (*OPTIONAL, *REQUIRED)
TEXTS = Path(__file__).with_name("pass_texts")
ROW = TensorType(DType.FLOAT32, (4,))


def _inputs(graph: Subgraph, seed: int) -> list[Array]:
    """Small integers, so that they are valid indices too."""
    rng = np.random.default_rng(seed)
    types = [graph.type(i) for i in graph.inputs]
    return [rng.integers(0, 4, tuple(d or 0 for d in t.shape)).astype(t.dtype.numpy) for t in types]


def _same(graph: Subgraph, result: Subgraph, seed: int = 0) -> None:
    inputs = _inputs(graph, seed)
    for mine, theirs in zip(evaluated(result, inputs), evaluated(graph, inputs), strict=True):
        np.testing.assert_array_equal(mine, theirs, strict=True)


# ---- what a pass does, as text files


def test_every_pass_has_a_text() -> None:
    assert {path.stem for path in TEXTS.glob("*.txt")} == {each.name for each in PASSES}


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.name)
def test_a_pass_rewrites_its_text_as_expected_and_preserves_its_meaning(each: Pass) -> None:
    before, after = (TEXTS / f"{each.name}.txt").read_text(encoding="utf-8").split("-->\n")
    graph = parse_subgraph(before)
    result = each.checked(graph)
    assert result == parse_subgraph(after)
    _same(graph, result)


# ---- what a pass preserves


@pytest.mark.parametrize("stored", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("seed", range(6))
def test_each_pass_preserves_the_meaning_of_random_graphs(seed: int, stored: bool) -> None:
    graph = roughened(onert.load(random_model(1000 + seed, stored=stored)).model.primary, seed)
    changed = []
    for each in PASSES:
        result = each.checked(graph)
        if result is not graph:
            _same(graph, result, seed)
            changed.append(each.name)
            graph = result  # the next pass gets this one's result
    assert changed


# ---- contracts


def _graph(*operations: Operation, outputs: tuple[int, ...] = (1,), shapes: tuple[int, ...] = (4, 4, 4)) -> Subgraph:
    operands = tuple(Operand(TensorType(DType.FLOAT32, (d,)), f"t{i}") for i, d in enumerate(shapes))
    return Subgraph(operands, operations, (0,), outputs)


def _abs(read: int, defined: int) -> Operation:
    return Operation(Unary(UnaryKind.ABS), (read,), (defined,), f"operation {defined - 1} ABS")


GOOD = _graph(_abs(0, 1))
BROKEN: dict[str, tuple[Property, Subgraph, str]] = {
    "an operand that does not exist": (WELL_FORMED, _graph(_abs(7, 1)), "reads operand 7 of 3"),
    "a result that does not exist": (WELL_FORMED, _graph(_abs(0, 1), _abs(0, 5)), "defines operand 5 of 3"),
    "read before it is defined": (WELL_FORMED, _graph(_abs(2, 1), _abs(0, 2)), "reads tensor 2 't2' before"),
    "defined twice": (WELL_FORMED, _graph(_abs(0, 1), _abs(0, 1)), "defines tensor 1 't1' again"),
    "an output that nothing defines": (WELL_FORMED, _graph(_abs(0, 1), outputs=(2,)), "output 2 is not defined"),
    "another shape": (TYPED, _graph(_abs(0, 1), shapes=(4, 5, 4)), "declared f32[5] and inferred as f32[4]"),
    "an input as output": (OWN_OUTPUTS, _graph(_abs(0, 1), outputs=(0,)), "is not an operation's result"),
    "an output twice": (OWN_OUTPUTS, _graph(_abs(0, 1), outputs=(1, 1)), "occurs 2 times"),
    "an unused result": (NOTHING_DEAD, _graph(_abs(0, 1), _abs(0, 2)), "nothing reads the results"),
}


def _returning(graph: Subgraph, *, ensures: tuple[Property, ...] = ()) -> Pass:
    """A pass that returns this graph for every other."""

    def replace(subgraph: Subgraph) -> Subgraph:
        return graph

    return rewriting(ensures=ensures)(replace)


@pytest.mark.parametrize(("broken", "graph", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_what_a_pass_ensures_is_checked(broken: Property, graph: Subgraph, reason: str) -> None:
    each = _returning(graph, ensures=(broken,))
    run: list[Callable[[Subgraph], Subgraph]] = [each.checked, *([each] if broken.quick else [])]
    for call in run:
        with pytest.raises(CompileError, match=r"^pass replace ensures that ") as caught:
            call(GOOD)
        assert broken.name in str(caught.value)
        assert reason in str(caught.value)


@pytest.mark.parametrize(("broken", "graph", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_what_a_pass_requires_is_checked(broken: Property, graph: Subgraph, reason: str) -> None:
    each = evolve(_returning(GOOD), requires=(broken,))
    assert each.checked(GOOD) is GOOD
    with pytest.raises(CompileError, match=r"^pass replace requires that ") as caught:
        each.checked(graph)
    assert reason in str(caught.value)


def test_the_compiler_names_a_pass_that_breaks_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _returning(BROKEN["an operand that does not exist"][1])
    monkeypatch.setattr("onert.compiler.pipeline.OPTIONAL", (broken,))
    package = onert.load(random_model(1, stored=False))
    with pytest.raises(CompileError, match="pass replace ensures that every operand exists"):
        onert.compile(package, max_work=123_456_789)


def test_an_unchanged_graph_is_not_checked() -> None:
    graph = BROKEN["defined twice"][1]
    assert _returning(graph)(graph) is graph
