"""Linking the models of a package into one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from attrs import frozen

from onert.compiler import Options, compile
from onert.ir import Connection, DType, ModelError, Package, Port, Quantization, Subgraph, Subgraphs
from onert.ir.link import link

from .toy import Draft, Run, ToyAdd, ToyBackend, ToyOfOne, ToyScale, interpret


@frozen
class ToyCall(ToyOfOne):
    """Runs a subgraph."""

    callee: int = 0
    callees: ClassVar[tuple[str, ...]] = ("callee",)


def scale(factor: float, shape: tuple[int, ...] = (2,)) -> Subgraphs:
    d = Draft()
    return Subgraphs((d.graph(d.op(ToyScale(factor), d.input(*shape, name="x"))),))


def add() -> Subgraphs:
    d = Draft()
    return Subgraphs((d.graph(d.op(ToyAdd(), d.input(2, name="x"), d.input(2, name="y"))),))


def port(text: str) -> Port:
    return Port(*(int(part) for part in text.split(":")))


def package(models: tuple[Subgraphs, ...], inputs: str, outputs: str, **connections: str) -> Package:
    wires = tuple(
        Connection(port(name[1:].replace("_", ":")), tuple(map(port, targets.split())))
        for name, targets in connections.items()
    )
    return Package(
        models,
        "linked",
        tuple(map(port, inputs.split())),
        tuple(map(port, outputs.split())),
        wires,
        {},
        ("a", "b", "c"),
    )


def test_a_package_of_one_model_is_that_model() -> None:
    model = scale(2)
    assert link(Package((model,))) is model


def test_models_may_form_any_acyclic_graph() -> None:
    linked = link(package((add(), scale(3), scale(5)), "1:0:0 2:0:0", "0:0:0 1:0:0", _1_0_0="0:0:1", _2_0_0="0:0:0"))
    x, y = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert [o.tolist() for o in interpret(linked.primary, [x, y])] == [[53, 106], [3, 6]]
    assert [str(o) for o in linked.primary.operations] == [
        "b: operation 0 ToyScale",
        "c: operation 0 ToyScale",
        "a: operation 0 ToyAdd",
    ]


def test_an_output_may_feed_several_inputs_and_be_an_output_of_the_package() -> None:
    linked = link(package((scale(3), add()), "0:0:0", "1:0:0 0:0:0", _0_0_0="1:0:0 1:0:1"))
    out = interpret(linked.primary, [np.array([1, 2], np.float32)])
    assert [o.tolist() for o in out] == [[6, 12], [3, 6]]


def test_without_declared_ports_all_unconnected_ones_are_used() -> None:
    linked = link(package((scale(3), add()), "", "", _0_0_0="1:0:1"))
    assert len(linked.primary.inputs) == 2
    assert len(linked.primary.outputs) == 1


def test_equal_names_in_several_models_are_prefixed_with_the_model() -> None:
    linked = link(package((scale(2), scale(3)), "0:0:0 1:0:0", "0:0:0 1:0:0"))
    assert [linked.primary.operands[i].name for i in linked.primary.inputs] == ["a/x", "b/x"]


def test_a_linked_package_compiles_and_runs() -> None:
    compiled = compile(
        package((scale(2), scale(3)), "0:0:0", "1:0:0", _0_0_0="1:0:0"), Options(), [ToyBackend("builtin")]
    )
    assert [len(r.steps) for r in compiled.routines] == [1, 0, 0]
    assert Run(compiled)(np.array([1, 2], np.float32))[0].tolist() == [6, 12]


def test_calls_are_renumbered() -> None:
    d = Draft()
    caller = d.graph(d.op(ToyCall(1), d.input(2)))
    model = Subgraphs((caller, scale(7).primary))
    linked = link(package((scale(2), model), "0:0:0", "1:0:0", _0_0_0="1:0:0"))
    (call,) = (o.op for o in linked.primary.operations if isinstance(o.op, ToyCall))
    called: Subgraph = linked[call.callee]
    assert [o.op for o in called.operations] == [ToyScale(7)]


def test_unreachable_subgraphs_are_emptied_and_the_others_keep_their_numbers() -> None:
    d = Draft()
    caller = d.graph(d.op(ToyCall(2), d.input(2)))
    model = Subgraphs((caller, scale(5).primary, scale(7).primary))
    compiled = compile(Package((model,)), Options(), [ToyBackend("builtin")])
    assert [[o.op for o in r.subgraph.operations] for r in compiled.routines] == [[ToyCall(2)], [], [ToyScale(7)]]


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (package((scale(2),), "1:0:0", ""), "port 1:0:0 names model 1, expected one of 1"),
        (package((scale(2),), "0:1:0", ""), "port 0:1:0 names subgraph 1, expected one of 1"),
        (package((scale(2),), "0:0:0", "0:0:4"), "port 0:0:4 names output 4, expected one of 1"),
        (package((add(),), "0:0:0", ""), "input 0:0:1 is neither an input of the package nor connected"),
        (package((add(),), "0:0:0 0:0:1 0:0:0", ""), "the package names one input twice"),
        (
            package((scale(2), scale(3)), "", "", _0_0_0="1:0:0", _1_0_0="0:0:0"),
            "connections join models 0:0 and 1:0 in a cycle",
        ),
        (
            package((scale(2), scale(3), add()), "", "", _0_0_0="2:0:0", _1_0_0="2:0:0"),
            "input 2:0:0 is connected to 0:0:0 and to 1:0:0",
        ),
        (
            package((scale(2), scale(3)), "0:0:0 1:0:0", "", _0_0_0="1:0:0"),
            "input 1:0:0 is an input of the package and connected to 0:0:0",
        ),
        (
            package((scale(2), scale(3, (4,))), "", "", _0_0_0="1:0:0"),
            "connection of 0:0:0 to 1:0:0 joins f32[2] and f32[4], expected the same shape",
        ),
        (Package(()), "package '' has no model"),
    ],
)
def test_an_inconsistent_package_is_rejected(broken: Package, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        link(broken)
    assert str(caught.value) == sentence


def typed(dtype: DType, quantization: Quantization | None) -> Subgraphs:
    """A model that returns its input."""
    d = Draft()
    x = d.quantized_input(dtype, quantization, 2)
    return Subgraphs((d.uninferred(x),))


Q = Quantization((0.5,), (3,))
OTHER = Quantization((1.0,), (100,))


@pytest.mark.parametrize(
    ("have", "want", "given", "expected"),
    [
        (typed(DType.FLOAT32, None), typed(DType.INT8, Q), [1.0, -2.0], [5, -1]),
        (typed(DType.INT8, Q), typed(DType.FLOAT32, None), [5, -1], [1.0, -2.0]),
        (
            typed(DType.INT8, Q),
            typed(DType.UINT8, OTHER),
            [5, -1],
            [101, 98],
        ),
        (typed(DType.INT8, Q), typed(DType.INT8, Quantization((0.25,), (-5,))), [5, -1], [-1, -13]),
        (typed(DType.FLOAT32, None), typed(DType.INT32, None), [1.5, -2.5], [1, -2]),
        (typed(DType.FLOAT16, None), typed(DType.FLOAT32, None), [1.5, -2.5], [1.5, -2.5]),
    ],
)
def test_a_connection_converts_elements(
    have: Subgraphs, want: Subgraphs, given: list[float], expected: list[float]
) -> None:
    linked = link(package((have, want), "0:0:0", "1:0:0", _0_0_0="1:0:0"))
    graph = linked.primary
    (out,) = interpret(graph, [np.array(given, graph.type(graph.inputs[0]).dtype.numpy)])
    assert out.dtype == graph.type(graph.outputs[0]).dtype.numpy
    assert out.tolist() == expected


@pytest.mark.parametrize("want", [typed(DType.BOOL, None), typed(DType.STRING, None)])
def test_a_connection_without_a_conversion_is_rejected(want: Subgraphs) -> None:
    with pytest.raises(ModelError, match="there is no conversion between them"):
        link(package((typed(DType.FLOAT32, None), want), "", "", _0_0_0="1:0:0"))
