"""Reading flow files into packages: functions become signatures; names, order of operations, and rejected files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import onert
from flow.layouts import golden
from onert.frontend.flow.attributes import integers
from onert.frontend.flow.file import Connector, FlowFile, Function, Operation, Variable, VariableFlag, encode
from onert.ir import Array, CompileError, ModelError
from onert.tools import inspect, run

X = np.array([[1, -2, 3]], "f4")
W = np.array([[1, 0], [0, 1], [-1, 2]], "f4")


def var(name: str, *shape: int, data: Array | None = None, **more: object) -> Variable:
    return Variable(name, "float32", shape, data=b"" if data is None else data.tobytes(), **more)  # type: ignore[arg-type]


def layer() -> FlowFile:
    """`f`: y = relu(x · W), its operations in the wrong order and some operands named by alias; `half`: b = a * 0.5."""
    return FlowFile(
        6,
        (
            var("f/x", -1, 3, aliases=("x",)),
            var("f/W", 3, 2, data=W),
            var("f/product:0", -1, 2),
            var("f/y:0", -1, 2),
            var("half/a", 2, 2),
            var("half/c", data=np.float32(0.5)),  # type: ignore[arg-type]
            var("half/b", 2, 2),
        ),
        (
            Operation("f/y", "Relu", ("f/product",), ("f/y:0",)),
            Operation("f/product", "MatMul", ("x", "f/W"), ("f/product:0",)),
            Operation("half/Mul", "Mul", ("half/a", "half/c"), ("half/b",)),
        ),
        (Function("f", ("f/y", "f/product")), Function("half", ("half/Mul",))),
        (Connector("c", ("x", "half/a")),),
    )


def encoded(flow: FlowFile) -> bytes:
    return b"".join(encode(flow))


def results_of(flow: FlowFile, inputs: dict[str, Array], **options: object) -> dict[str, Array]:
    program = onert.compile(onert.load(encoded(flow)), backends=("reference",), **options)
    return onert.Execution(program).run(inputs)


def test_each_function_becomes_a_subgraph_and_a_signature() -> None:
    package = onert.load(encoded(layer()))
    assert list(package.signatures) == ["f", "half"]
    assert [graph.name for graph in package.model.subgraphs] == ["f", "half"]
    assert [t.name for t in package.signatures["f"].inputs] == ["f/x"]
    assert [t.name for t in package.signatures["f"].outputs] == ["f/y:0"]


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_every_file_version_can_be_read(version: int) -> None:
    results = results_of(evolve(layer(), version=version), {"f/x": X})
    np.testing.assert_array_equal(results["f/y:0"], np.maximum(X @ W, 0))


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_every_executor_runs_a_function(executor: str) -> None:
    results = results_of(layer(), {"half/a": np.ones((2, 2), "f4")}, signature="half", executor=executor)
    np.testing.assert_array_equal(results["half/b"], np.full((2, 2), 0.5, "f4"))


def test_a_dimension_of_minus_1_is_dynamic_and_1_by_default() -> None:
    package = onert.load(encoded(layer()))
    (x,) = onert.compile(package, backends=("reference",)).inputs
    assert (x.shape, x.open_shape) == ((1, 3), (None, 3))
    results = results_of(layer(), {"f/x": np.repeat(X, 4, 0)})
    np.testing.assert_array_equal(results["f/y:0"], np.repeat(np.maximum(X @ W, 0), 4, 0))


def test_flags_and_attributes_control_which_variables_are_outputs() -> None:
    flow = layer()
    shown = tuple(evolve(v, flags=VariableFlag.OUT) if v.name == "f/product:0" else v for v in flow.variables)
    assert list(results_of(evolve(flow, variables=shown), {"f/x": X})) == ["f/product:0", "f/y:0"]
    hidden = tuple(evolve(o, attributes=(("output", "0"),)) if o.name == "f/product" else o for o in flow.operations)
    assert list(results_of(evolve(flow, variables=shown, operations=hidden), {"f/x": X})) == ["f/y:0"]


def test_surplus_bytes_of_data_are_ignored_with_a_note() -> None:
    flow = layer()
    longer = tuple(evolve(v, data=bytes(v.data) + b"more") if v.name == "f/W" else v for v in flow.variables)
    package = onert.load(encoded(evolve(flow, variables=longer)))
    assert package.notes == ("the last 4 bytes of the data of variable 'f/W' are ignored: f32[3, 2] needs 24",)


def test_the_tools_accept_flow_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layer.flow"
    path.write_bytes(encoded(layer()))
    assert inspect.main([str(path), "--text"]) == 0
    assert "operation 'f/product' MatMul" in capsys.readouterr().out
    assert run.main([str(path), "--signature", "half"]) in (0, None)


def test_one_error_lists_all_unknown_operations() -> None:
    flow = layer()
    strange = tuple(evolve(o, type=f"My{o.type}") if o.type != "Mul" else o for o in flow.operations)
    flow = evolve(flow, operations=strange)
    with pytest.raises(CompileError, match=r"(?s)'f/product' MyMatMul.*'f/y' MyRelu"):
        results_of(flow, {})
    np.testing.assert_array_equal(results_of(flow, {"half/a": np.ones((2, 2), "f4")}, signature="half")["half/b"], 0.5)


def _changed(which: str, /, **fields: object) -> Callable[[], FlowFile]:
    """A function that returns `layer()` with fields of the named record changed."""

    def make() -> FlowFile:
        flow = layer()

        def each(records: tuple[object, ...]) -> tuple[object, ...]:
            return tuple(evolve(r, **fields) if r.name == which else r for r in records)  # type: ignore[attr-defined, misc]

        return FlowFile(
            6,
            each(flow.variables),
            each(flow.operations),
            each(flow.functions),
            each(flow.connectors),  # type: ignore[arg-type]
        )

    return make


REFUSED: dict[str, tuple[Callable[[], FlowFile], str]] = {
    "no function": (lambda: FlowFile(6), "the flow has no function"),
    "an unknown input": (
        _changed("f/y", inputs=("z",)),
        r"^.*byte \d+: operation 'f/y' Relu reads 'z', which is not",
    ),
    "an unknown output": (_changed("f/y", outputs=("z",)), r"'f/y' Relu computes 'z', which is not in the flow"),
    "an unknown operation": (_changed("half", operations=("z",)), r"function 'half' has the operation 'z', which"),
    "an unknown link": (_changed("c", links=("z",)), r"connector 'c' links to 'z', which is not in the flow"),
    "two variables of a name": (_changed("f/x", name="f/W"), r"'f/W' has the same name as another one at byte 16"),
    "two producers": (_changed("f/product", outputs=("f/y:0",)), r"computes 'f/y:0', as operation 'f/y' does"),
    "a computed constant": (_changed("f/y", outputs=("f/W",)), r"computes 'f/W', which is a constant"),
    "two owners": (_changed("half", operations=("f/y",)), r"has the operation 'f/y', which belongs to function 'f'"),
    "a cycle": (_changed("f/product", inputs=("f/y:0", "f/W")), r"its inputs depend on its own outputs"),
    "another function's": (
        _changed("half/Mul", inputs=("f/y:0", "half/c")),
        r"reads 'f/y:0', which an operation of fun",
    ),
    "no element type": (_changed("f/x", type="void"), r"variable 'f/x': the type is 'void', expected one of bfloat16"),
    "short data": (_changed("f/W", shape=(3, 3)), r"variable 'f/W': f32\[3, 3\] has 24 bytes of data, expected 36"),
    "an open constant": (_changed("f/W", shape=(-1, 2)), r"'f/W': a constant has shape \[-1, 2\], expected known"),
    "elements by the terabyte": (_changed("f/x", shape=(1 << 30, 1 << 30)), r"has more than \d+ elements"),
    "many dimensions": (_changed("f/x", shape=(1,) * 17), r"'f/x': rank 17 is more than 16"),
    "text as elements": (_changed("f/W", type="string"), r"'f/W': 24 bytes of data cannot be elements of type string"),
    "another declared type": (_changed("f/y:0", type="int8"), r"declared i8, but inferred as f32"),
    "another declared shape": (_changed("f/y:0", shape=(7, 2)), r"the result is declared \[7, 2\], but inferred"),
    "too many inputs": (_changed("f/y", inputs=("f/x", "f/x")), r"operation 'f/y' Relu: has 2 inputs, expected 1"),
    "no outputs": (
        _changed("f/product", outputs=()),
        r"operation 'f/y' Relu reads 'f/product', which is not in the flow",
    ),
    "too many outputs": (_changed("f/y", outputs=("f/y:0", "half/b")), r"half/b|has 2 outputs, expected 1"),
    "a task": (_changed("f/y", attributes=(("task", "two"),)), r"'two' is not an integer"),
    "an axis": (_changed("f/y", type="Sum", attributes=(("axis", "9"),)), r"operation 'f/y' Sum: axis 9"),
    "a recipe": (_changed("f/y", type="Calculate", attributes=(("expr", "@0=Foo(%0)"),)), r"calls Foo, which is no"),
    "a deep recipe": (
        _changed("f/y", type="Calculate", attributes=(("expr", "@0=" + "Neg(" * 1000 + "%0" + ")" * 1000),)),
        r"nests expressions more than 64 deep",
    ),
    "half a recipe": (_changed("f/y", type="Calculate", attributes=(("expr", "@0=Neg(%0"),)), r"'its end' as token"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_flows_are_rejected_with_the_place(case: str) -> None:
    make, sentence = REFUSED[case]
    with pytest.raises(ModelError, match=sentence):
        onert.load(encoded(make()))


def test_a_golden_file_can_be_loaded_as_a_package() -> None:
    assert list(onert.load(golden("version6")).signatures) == ["f"]


@pytest.mark.parametrize(
    ("text", "numbers"), [("[2,,3]", (2, -1, 3)), ("[2, ]", (2, -1)), ("4,5", (4, 5)), ("[]", ()), (" [ 7 ] ", (7,))]
)
def test_integer_lists_in_attributes_may_have_blanks_and_omit_items(text: str, numbers: tuple[int, ...]) -> None:
    assert integers(text) == numbers
