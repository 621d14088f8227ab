"""Models in ONNX Runtime's own format are read like the ONNX models they were made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve
from hostile.writer import Table
from onnx_cases import problem, read

import onert
from onert import InferenceSession, ModelError
from onert.frontend.onnx.declarations import read_declarations

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
ort_writer = pytest.importorskip("ort_writer")

LISTED = Path(__file__).parent.parent.joinpath("conformance/onnx_passing.txt").read_text(encoding="ascii").split()
LAYERS = [name for name in LISTED if not name.startswith("node/")][::4]
OPERATORS = [name for name in LISTED if name.startswith("node/")][::5]
TEXT = """<ir_version: 8, opset_import: ["" : 17], producer_name: "me", model_version: 3, metadata_props: ["a": "b"]>
    g (float[n, 3] x, int64 k) => (float[n, 3] y) <float[3] w = {1, 2, 3}> {
        two = Constant <value = float {2}> ()
        h = Mul (x, w)
        y = Pow (h, two)
        z = Add (k, k)
    }"""


X = np.arange(3, dtype=np.float32) - 1
FEATURES: dict[str, tuple[dict[str, Any], str]] = {
    "nested graphs": (
        {"c": np.bool_(True), "x": X},
        """g (bool c, float[3] x) => (float[3] y) { y = If (c)
        <then_branch = t () => (float[3] a) { a = Neg (x) }, else_branch = e () => (float[3] b) { b = Abs (x) }> }""",
    ),
    "strings": (
        {"x": np.array(["x", "y", "Z"], object)},
        """g (string[3] x) => (string[3] y, string[2] z) <string[2] z = {"a", "b"}>
        { y = StringNormalizer <case_change_action = "UPPER"> (x) }""",
    ),
    "a sequence": ({"x": [X, X]}, "g (seq(float[3]) x) => (float[n] y) { y = ConcatFromSequence <axis = 0> (x) }"),
    "the default activations of two directions": (
        {"x": np.ones((2, 1, 3), np.float32)},
        """g (float[2, 1, 3] x) => (float[2, 1, 1, 2] y)
        <float[1, 2, 3] w = {1, 2, 3, 4, 5, 6}, float[1, 2, 2] r = {1, 2, 3, 4}>
        { y = RNN <hidden_size = 2, activations = ["Tanh", "Tanh"]> (x, w, r) }""",
    ),
}
"""Models with what few of ONNX's cases have; the last is as ONNX Runtime writes an RNN without activations."""


def _model() -> Any:
    return onnx.parser.parse_model(TEXT)


def _converted(name: str, path: Path) -> bytes | None:
    """A case's model in the format, as ONNX Runtime writes it; None if it cannot run the model."""
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    options.add_session_config_entry("session.save_model_format", "ORT")
    model, providers = read(*name.split("/")).model, ["CPUExecutionProvider"]
    try:
        ort.InferenceSession(model, options, providers, disabled_optimizers=["NchwcTransformer"])
    except (state.Fail, state.InvalidArgument, state.InvalidGraph, state.NotImplemented):
        return None
    return path.read_bytes()


def _require_expected_results(names: list[str], path: Path, subtests: pytest.Subtests) -> None:
    """Most models can be converted, and all of these give the expected results."""
    pytest.importorskip("onnxruntime", reason="onnxruntime converts the models")
    converted = 0
    for name in names:
        model = _converted(name, path)
        if model is not None:
            converted += 1
            with subtests.test(name):
                assert problem(evolve(read(*name.split("/")), model=model)) is None
    assert converted > 0.6 * len(names)


def test_layers_that_onnx_runtime_converts_give_the_expected_results(tmp_path: Path, subtests: pytest.Subtests) -> None:
    _require_expected_results(LAYERS, tmp_path / "m.ort", subtests)


@pytest.mark.long
def test_operators_that_onnx_runtime_converts_give_the_expected_results(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    _require_expected_results(OPERATORS, tmp_path / "m.ort", subtests)


@pytest.mark.parametrize(("feed", "text"), FEATURES.values(), ids=FEATURES)
def test_files_give_the_results_of_their_onnx_models(feed: dict[str, Any], text: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    found, wanted = (
        InferenceSession(m).run(None, feed) for m in (ort_writer.written(model), model.SerializeToString())
    )
    assert [each.tolist() for each in found] == [each.tolist() for each in wanted]


def test_a_file_declares_what_its_onnx_model_declares(tmp_path: Path) -> None:
    model, path = _model(), tmp_path / "m.bin"
    path.write_bytes(ort_writer.written(model))
    found, wanted = read_declarations(path), read_declarations(model.SerializeToString())
    assert found is not None
    assert wanted is not None
    for one, other in ((found.inputs, wanted.inputs), (found.outputs, wanted.outputs)):
        assert [(end.name, str(end.type)) for end in one] == [(end.name, str(end.type)) for end in other]
    ends = {"inputs": (), "outputs": ()}
    assert asdict(found) | ends == asdict(wanted) | ends | {"graph": ""}
    assert read_declarations(path.read_bytes()) is not None


def test_a_session_runs_a_file_and_replaces_its_initializers(tmp_path: Path) -> None:
    path, x = tmp_path / "m.ort", np.ones((2, 3), np.float32)
    path.write_bytes(ort_writer.written(_model()))
    feed = {"x": x, "k": np.int64(1)}
    assert InferenceSession(path).run(None, feed)[0].tolist() == [[1, 4, 9]] * 2
    options = onert.SessionOptions()
    options.add_initializer("w", onert.OrtValue.ortvalue_from_numpy(np.full(3, 3, np.float32)))
    assert InferenceSession(path, options).run(None, feed)[0].tolist() == [[9, 9, 9]] * 2


def test_maps_are_returned_as_dictionaries() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 3]>
        g (float[1, 2] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [5, 7]> (x) }"""
    )
    (found,) = InferenceSession(ort_writer.written(model)).run(None, {"x": np.float32([[0.25, 0.75]])})
    assert found == [{5: 0.25, 7: 0.75}]


def test_sparse_initializers_are_read() -> None:
    values = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [5.0, 7.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [2], [0, 2])
    model = _model()
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, [3]))
    (found,) = InferenceSession(ort_writer.written(model)).run(
        None, {"x": np.ones((1, 3), np.float32), "k": np.int64(0)}
    )
    assert found.tolist() == [[25, 0, 49]]


def _graph(model: Table) -> Table:
    found: Table = model.fields["graph"]
    return found


def _in_another_file(model: Table) -> None:
    _graph(model).fields["initializers"][0].fields["external_data_offset"] = 0


def _compiled(model: Table) -> None:
    _graph(model).fields["nodes"][1].fields |= {"type": 1, "execution_provider_type": "NNAPI"}


def _deep(model: Table) -> None:
    graph = _graph(model)
    ort_writer.attributes_of(model, 1)
    for _ in range(50):
        node = Table("Node", op_type="If", inputs=["c"], outputs=["y"])
        node.fields["attributes"] = [Table("Attribute", name="then_branch", type=5, g=graph)]
        graph = Table("Graph", nodes=[node], outputs=["y"])
    model.fields["graph"] = graph


def _nested_types(model: Table) -> None:
    type_ = Table("TypeInfo", value_type=1, value=Table("TensorTypeAndShape", elem_type=1))
    for _ in range(50):
        type_ = Table("TypeInfo", value_type=2, value=Table("SequenceType", elem_type=type_))
    _graph(model).fields["node_args"][0].fields["type"] = type_


def _doubling(model: Table) -> None:
    """Two references at each level to the graph below."""
    graph = Table("Graph", outputs=["x"])
    for _ in range(30):
        branches = [Table("Attribute", name=name, type=5, g=graph) for name in ("then_branch", "else_branch")]
        node = Table("Node", op_type="If", inputs=["c"], outputs=["y"], attributes=branches)
        graph = Table("Graph", nodes=[node], outputs=["y"])
    model.fields["graph"] = graph


REFUSED: tuple[tuple[Callable[[Table], object], str], ...] = (
    (lambda m: m.fields.pop("graph"), "the model has no graph"),
    (lambda m: m.fields.update(ir_version=99), "the IR version is 99"),
    (_in_another_file, "tensor 'w' at byte .* has elements in another file"),
    (_compiled, "node '' at byte .* was compiled by NNAPI, expected an operator"),
    (_deep, "graphs at byte .* are nested more than"),
    (_nested_types, "types at byte .* are nested more than"),
    (_doubling, "reading what its offsets refer to"),
    (lambda m: ort_writer.attributes_of(m, 0)[0].fields.update(type=99), "attribute 'value' at byte .* is of kind 99"),
    (lambda m: ort_writer.attributes_of(m, 0)[0].fields.update(type=12), "value"),
    (lambda m: _graph(m).fields["initializers"][0].fields.update(raw_data=b"123"), "tensor 'w' .* has 3 bytes"),
    (lambda m: _graph(m).fields["initializers"][0].fields.update(data_type=8), "tensor 'w' .* has 0 elements"),
    (lambda m: _graph(m).fields["initializers"][0].fields.update(data_type=99), "element type 99 is not one of ONNX's"),
    (lambda m: _graph(m).fields.update(node_args=[]), "input 'x' is untyped"),
    (lambda m: _graph(m).fields["node_args"][0].fields["type"].fields.update(value_type=9), "input 'x' is a unknown"),
)


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_a_malformed_file_is_refused_with_the_place(change: Callable[[Table], object], message: str) -> None:
    model = ort_writer.model_table(_model())
    change(model)
    with pytest.raises(ModelError, match=message):
        tuple(onert.load(ort_writer.file_of(model)).models)  # parsed only when it is used


def test_a_file_that_is_cut_short_is_refused() -> None:
    whole = ort_writer.written(_model())
    for size in range(8, len(whole) - 8, 7):
        with pytest.raises(ModelError):
            tuple(onert.load(whole[:size]).models)
