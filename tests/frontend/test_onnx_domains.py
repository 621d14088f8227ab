"""Operators of com.microsoft and ai.onnx.ml match ONNX Runtime on random inputs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from frontend.onnx_domain_cases import CASES, LEARNING, MICROSOFT, MORE, REFUSED, Constant, floats, octets
from frontend.onnx_one_node import one_node_model
from frontend.onnx_selection_cases import MISFITS, SELECTED
from frontend.onnx_tree_cases import TREES
from onnx_peer import precise_session

import onert
from onert.ir.analysis import run_types
from onert.runtime.session import Backend

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is the peer")


def _runs() -> list[Any]:
    """The first two tables run natively. The others run on the reference backend, and natively in the long suite."""
    found = []
    for at, case in enumerate([*CASES, *TREES, *MORE, *SELECTED]):
        first = at < len(CASES) + len(TREES)
        found.append(pytest.param(*case, () if first else ("reference",), id=f"{at} {case[1]}"))
        if not first:
            found.append(pytest.param(*case, (), id=f"{at} {case[1]} natively", marks=pytest.mark.long))
    return found


@pytest.mark.parametrize(("domain", "name", "inputs", "attributes", "results", "backends"), _runs())
def test_an_operator_of_another_domain_matches_onnx_runtime(
    domain: str,
    name: str,
    inputs: tuple[Any, ...],
    attributes: dict[str, Any],
    results: int,
    backends: tuple[str, ...],
) -> None:
    model, feed = one_node_model(domain, name, inputs, attributes, results)
    theirs = precise_session(model).run(None, feed)
    mine = Backend.run_model(model, feed, backends=backends)
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "O":
            assert a.tolist() == b.tolist()
            continue
        if a.dtype.kind in "iu":  # computed in float, so a tie may be rounded one step apart
            assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max() <= 1
        error = 1.0 if a.dtype.kind in "iu" else 1e-4 + 1e-6 * np.abs(b[np.isfinite(b)]).max(initial=0)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=error)  # terms of a sum may cancel


@pytest.mark.parametrize(("kind", "constant"), [(np.uint8, True), (np.int8, True), (np.uint8, False)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True], ids=["a scale", "a scale per column"])
def test_an_lstm_with_integer_weights_quantises_its_inputs_and_states_like_onnx_runtime(
    direction: str, kind: type, columns: bool, constant: bool
) -> None:
    """With one thread: several share the batch in ONNX Runtime, and each quantises its part. Its sums of products with
    computed int8 weights saturate.
    """
    ways, cells = (2 if direction == "bidirectional" else 1), 4
    shape = (ways, 4 * cells) if columns else (ways,)
    scales = [(np.arange(1, np.prod(shape) + 1) * s).reshape(shape).astype(np.float32) for s in (5e-4, 4e-4)]
    zeros = np.full(shape, 0 if columns and kind is np.int8 else 3, kind)
    weights = [octets(ways, rows, 4 * cells, kind=kind) for rows in (3, cells)]
    scaled = [Constant(scales[0]), Constant(zeros), Constant(scales[1]), Constant(zeros)]
    given = (*map(Constant, weights),) if constant else (*weights,)
    inputs = (floats(5, 3, 3), *given, Constant(floats(ways, 8 * cells)), None, floats(ways, 3, cells), *[None] * 2)
    attributes = {"hidden_size": cells, "direction": direction}
    model, feed = one_node_model(MICROSOFT, "DynamicQuantizeLSTM", (*inputs, *scaled), attributes, 3)
    theirs = precise_session(model, 1).run(None, feed)
    for a, b in zip(Backend.run_model(model, feed), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_zip_map_returns_its_columns_as_a_matrix() -> None:
    model, feed = one_node_model(LEARNING, "ZipMap", (floats(4, 3),), {"classlabels_int64s": [3, 4, 5]}, 1)
    (theirs,) = precise_session(model).run(None, feed)
    np.testing.assert_array_equal(Backend.run_model(model, feed)[0], [list(row.values()) for row in theirs])


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("LinearClassifier", {"classlabels_ints": [3, 1, 2]}), ("LinearRegressor", {"targets": 3})],
)
def test_a_linear_model_determines_its_input_s_unknown_number_of_features(
    operator: str, attributes: dict[str, Any]
) -> None:
    h, float32 = onnx.helper, onnx.TensorProto.FLOAT
    numbers = {"coefficients": np.linspace(-1, 1, 12).tolist(), "intercepts": [0.5, 0.0, -0.5]}
    outputs = ["y", "scores"][: 2 if operator == "LinearClassifier" else 1]
    node = h.make_node(operator, ["x"], outputs, domain=LEARNING, **numbers, **attributes)
    ends = [onnx.ValueInfoProto(name=o) for o in outputs]
    graph = h.make_graph([node], "g", [h.make_tensor_value_info("x", float32, [None, None])], ends)
    opsets = [h.make_opsetid("", 17), h.make_opsetid(LEARNING, 3)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    feed = {"x": floats(5, 4)}
    theirs = precise_session(model).run(None, feed)
    for mine, expected in zip(Backend.run_model(model, feed), theirs, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-5)


def test_attention_heads_are_separated_when_batch_and_length_are_dynamic() -> None:
    arrays = (floats(2, 3, 8), floats(8, 24), floats(24))
    content, feed = one_node_model(MICROSOFT, "Attention", (arrays[0], *map(Constant, arrays[1:])), {"num_heads": 2}, 1)
    model = onnx.load_from_string(content)
    for name, dim in zip("bs", model.graph.input[0].type.tensor_type.shape.dim, strict=False):
        dim.dim_param = name
    content = model.SerializeToString()
    (theirs,) = precise_session(content).run(None, feed)
    (mine,) = Backend.run_model(content, feed, backends=("reference",))
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", [*REFUSED, *MISFITS])
def test_a_misfit_is_refused_with_one_sentence(case: str) -> None:
    domain, name, inputs, attributes, sentence = {**REFUSED, **MISFITS}[case]
    model, _ = one_node_model(domain, name, inputs, attributes, 1)
    with pytest.raises(onert.ModelError, match=re.escape(sentence)):
        onert.load(model)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_packed_4_and_8_bit_weights_are_unpacked_as_in_onnx_runtime(bits: int, *, zeros: bool) -> None:
    h, k, n, block = onnx.helper, 40, 3, 16
    blocks = -(-k // block)
    weights = [("b", octets(n, blocks, block * bits // 8)), ("scales", np.abs(floats(n * blocks)))]
    if zeros:
        weights.append(("zeros", octets(n * -(-blocks * bits // 8))))
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights]
    names = ["x", *(name for name, _ in weights)]
    node = h.make_node("MatMulNBits", names, ["y"], domain=MICROSOFT, K=k, N=n, bits=bits, block_size=block)
    graph = h.make_graph(
        [node], "one", [h.make_tensor_value_info("x", 1, [2, k])], [onnx.ValueInfoProto(name="y")], tensors
    )
    opsets = [h.make_opsetid("", 17), h.make_opsetid(MICROSOFT, 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    feed = {"x": floats(2, k)}
    (theirs,) = precise_session(model).run(None, feed)
    np.testing.assert_allclose(Backend.run_model(model, feed)[0], theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())


def test_strings_of_known_shapes_are_not_inferred_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    words = onnx.helper.make_tensor("words", onnx.TensorProto.STRING, [3], [b"a", b"bc", b"d"])
    places = onnx.helper.make_tensor_value_info("at", onnx.TensorProto.INT64, [2])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.STRING, [2])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["words", "at"], ["y"])], "g", [places], [result], [words]
    )
    session = onert.InferenceSession(onnx.helper.make_model(graph, ir_version=10).SerializeToString())
    monkeypatch.setattr(run_types, "infer", None)
    for at in ([2, 1], [0, 0]):
        (found,) = session.run(None, {"at": np.array(at)})
        assert list(found) == [["a", "bc", "d"][i] for i in at]


def test_an_unknown_category_is_an_error_unless_its_row_is_zeros() -> None:
    h, kind = onnx.helper, onnx.TensorProto
    for zeros in (0, 1):
        node = h.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=[3, 5], zeros=zeros)
        ends = h.make_tensor_value_info("x", kind.INT64, [2]), h.make_tensor_value_info("y", kind.FLOAT, [2, 2])
        graph = h.make_graph([node], "g", [ends[0]], [ends[1]])
        imports = [h.make_opsetid("", 15), h.make_opsetid("ai.onnx.ml", 1)]
        session = onert.InferenceSession(h.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
        assert session.run(None, {"x": np.array([5, 3])})[0].tolist() == [[0, 1], [1, 0]]
        if zeros:
            assert session.run(None, {"x": np.array([5, 4])})[0].tolist() == [[0, 1], [0, 0]]
        else:
            with pytest.raises(onert.OnertError, match="more than there are"):
                session.run(None, {"x": np.array([5, 4])})
