"""Reading ONNX files: how they are recognised, what is refused, and with which sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.frontend.onnx.onnx_format import recognize
from onert.frontend.wire import Message, budget

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
F = onnx.TensorProto.FLOAT


def model(*nodes: object, shape: tuple[object, ...] = (2, 3), opset: int = 18, **more: object) -> bytes:
    """A model with one input x and one output y."""
    x = onnx.helper.make_tensor_value_info("x", F, shape)
    y = onnx.helper.make_tensor_value_info("y", F, None)
    graph = onnx.helper.make_graph(list(nodes), "g", [x], [y], **more)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    out: bytes = made.SerializeToString()
    return out


def node(kind: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> object:
    return onnx.helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


RELU = model(node("Relu"))


@pytest.mark.parametrize(
    ("head", "path", "expected"),
    [
        (RELU[:16], None, True),
        (RELU[:16], Path("a.onnx"), True),
        (RELU[:16], Path("a.ONNX"), True),
        (RELU[:16], Path("a.bin"), False),
        (b"\x08\x00\x12\x04", None, False),
        (b"\x08\x09\x0a\x04", None, False),
        (b"\x08\x80\x12\x04", None, False),
        (b"\x1c\0\0\0TFL3", None, False),
        (b"PK\x03\x04", None, False),
        (b"", None, False),
        (b"\x08", Path("a.onnx"), False),
    ],
)
def test_files_are_recognised_by_their_first_fields(head: bytes, path: Path | None, expected: bool) -> None:
    assert recognize(head, path) is expected


def test_models_of_other_formats_are_not_claimed() -> None:
    others = [p for p in (REPOSITORY / "nnpackage/examples").rglob("*") if p.suffix in (".tflite", ".circle", ".zip")]
    assert others
    assert not any(recognize(p.read_bytes()[:16], None) for p in others)


def test_a_model_keeps_the_file_s_names_and_dynamic_dimensions() -> None:
    graph = onert.load(model(node("Relu"), shape=("batch", 3))).model.primary
    assert [graph.operands[i].name for i in (*graph.inputs, *graph.outputs)] == ["x", "y"]
    assert graph.type(graph.inputs[0]).shape == (None, 3)


def test_a_reshape_by_a_computed_shape_becomes_one_operation() -> None:
    shape = [node("Shape", "x", "s"), node("Gather", "s zero", "b"), node("Concat", "b six", "n", axis=0)]
    constants = [onnx.numpy_helper.from_array(np.array([v]), n) for v, n in ((0, "zero"), (6, "six"))]
    found = onert.load(model(*shape, node("Reshape", "x n"), shape=("b", 2, 3), initializer=constants)).model.primary
    assert found.type(found.outputs[0]).shape == (None, 6)


def test_all_missing_operators_are_named_at_once() -> None:
    with pytest.raises(onert.ModelError, match=r"no implementation of the operators Alpha \(node 1\), Beta \(node 0\)"):
        onert.load(model(node("Beta", "x", "a"), node("Alpha", "a", "b"), node("Relu", "b")))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (RELU[:20], "ends .* bytes after its enclosing message"),
        (b"\x08\x0a\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "does not end within 10 bytes"),
        (b"\x08\x0a\x3a\x01", "field 7 at byte 2 ends 1 bytes after"),
        (b"\x08\x0a\x12\x00\x3b", "wire type 3"),
        (b"\x08\x0a\x12\x00\x38\x01", "field 7 at byte 5 has wire type 0, expected 2"),
        (b"\x08\x0a\x12\x00", "the model has no graph"),
        (b"\x08\x0a\x12\x01\xff\x3a\x00", "not UTF-8"),
        (b"\x08\x0f\x3a\x00", "the IR version is 15"),
        (model(node("Relu"), opset=29), "the opset is 29, expected 1 to 28"),
        (model(node("Relu", "nothing")), "'nothing' is read, but nothing before it defines it"),
        (model(node("Relu"), node("Abs")), "'y' is defined twice"),
        (model(node("Relu", axis="text")), "^$"),
        (model(node("Transpose", perm=[0, 0])), "node 0 Transpose: axes .* repeat an axis"),
        (model(node("Softmax", axis=5)), "node 0 Softmax: axis 5 is outside"),
        (model(node("Flatten", axis=1.5)), "attribute axis is of kind FLOAT, expected INT"),
        (model(node("Concat", "x x")), "has no axis"),
    ],
)
def test_a_malformed_file_is_refused_with_the_place(content: bytes, sentence: str) -> None:
    if sentence == "^$":
        assert onert.load(content).model.primary.operations  # attributes that an operator does not have are ignored
        return
    with pytest.raises(onert.ModelError, match=sentence):
        onert.load(content)


@pytest.mark.parametrize("location", ["../weights", "/etc/passwd", "", "a\\b"])
def test_external_data_outside_the_model_s_folder_is_refused(location: str, tmp_path: Path) -> None:
    tensor = onnx.TensorProto(name="w", data_type=F, dims=[3], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "m.onnx"
    path.write_bytes(model(node("Add", "x w"), initializer=[tensor]))
    with pytest.raises(onert.ModelError, match="leaves the model's folder"):
        onert.load(path)


def test_external_data_is_read_from_a_file_beside_the_model(tmp_path: Path) -> None:
    tensor = onnx.TensorProto(name="w", data_type=F, dims=[3], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", "4"), ("length", "12")):
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "weights.bin").write_bytes(np.arange(5, dtype="<f4").tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(model(node("Add", "x w"), initializer=[tensor]))
    (y,) = onert.Execution(onert.compile(onert.load(path))).run([np.zeros((2, 3), np.float32)]).values()
    assert y.tolist() == [[1, 2, 3]] * 2
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    with pytest.raises(onert.ModelError, match=r"lies in bytes 4 to 16 of 'weights.bin', which has 12"):
        onert.load(path)


def test_packed_integers_round_trip() -> None:
    values = [0, 1, -1, 127, 128, 300, 2**62, -(2**63), 2**63 - 1]
    tensor = onnx.TensorProto(int64_data=values)
    assert Message(memoryview(tensor.SerializeToString()), budget(100)).integers(7).tolist() == values


def test_an_impossible_branch_is_refused_only_when_it_runs() -> None:
    def branch(op: object) -> object:
        return onnx.helper.make_graph([op], "b", [], [onnx.helper.make_tensor_value_info("r", F, None)])

    one = onnx.numpy_helper.from_array(np.array([0]), "axes")
    cut, whole = branch(node("Squeeze", "x axes", "r")), branch(node("Identity", "x", "r"))
    steps = [node("ReduceSum", "x", "s", keepdims=0), node("Cast", "s", "c", to=onnx.TensorProto.BOOL)]
    content = model(
        *steps,
        node("If", "c", "z", then_branch=whole, else_branch=cut),
        node("Relu", "z"),
        shape=(None, 3),
        initializer=[one],
    )
    run = onert.Execution(onert.compile(onert.load(content))).run
    (y,) = run([np.ones((2, 3), np.float32)]).values()
    assert y.shape == (2, 3)
    with pytest.raises(onert.ExecutionError, match="expected 1 to be squeezed"):
        run([np.zeros((2, 3), np.float32)])


@pytest.mark.parametrize("size", [5, 6, 7])
@pytest.mark.parametrize("margin", [0, 1])
@pytest.mark.parametrize(("counted", "ceil"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_an_average_pool_divides_by_the_counted_elements_inside_the_padding(
    size: int, margin: int, counted: int, ceil: int
) -> None:
    """With `ceil_mode` a last window may extend beyond the padding; elements out there never count."""
    found = node(
        "AveragePool",
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[margin] * 4,
        count_include_pad=counted,
        ceil_mode=ceil,
    )
    program = onert.compile(onert.load(model(found, shape=(1, 1, size, size), opset=19)))
    x = np.random.default_rng(size).normal(size=(size, size)).astype(np.float32)
    (y,) = onert.Execution(program).run([x[np.newaxis, np.newaxis]]).values()
    whole = np.pad(x, margin)
    there = np.ones_like(whole) if counted else np.pad(np.ones_like(x), margin)
    starts = [s for s in range(0, len(whole), 2) if s + 3 <= len(whole) or (ceil and s < size + margin)]
    starts = starts[: (-(-(len(whole) - 3) // 2) if ceil else (len(whole) - 3) // 2) + 1]
    wanted = [[whole[a : a + 3, b : b + 3].sum() / there[a : a + 3, b : b + 3].sum() for b in starts] for a in starts]
    np.testing.assert_allclose(y[0, 0], wanted, rtol=1e-5)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    ("kernel", "stride", "margins"), [(3, 2, (0, 0)), (3, 2, (1, 2)), (1, 2, (0, 0)), (2, 3, (1, 1))]
)
def test_ceil_mode_pooling_of_dynamic_sizes_matches_each_static_size(
    operator: str, kernel: int, stride: int, margins: tuple[int, int]
) -> None:
    """Including sizes at which the last window would start beyond the input and is dropped."""
    attributes = {"kernel_shape": [kernel], "strides": [stride], "pads": [*margins], "ceil_mode": 1}
    found = node(operator, **attributes)
    execution = onert.Execution(onert.compile(onert.load(model(found, shape=(1, 2, "w"), opset=22))))
    for size in (7, 8, 9, 10, 5):
        x = np.random.default_rng(size).normal(size=(1, 2, size)).astype(np.float32)
        alone = onert.compile(onert.load(model(found, shape=(1, 2, size), opset=22)))
        (wanted,), (y,) = onert.Execution(alone).run([x]).values(), execution.run([x]).values()
        np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_a_slice_without_axes_slices_as_many_axes_as_it_has_bounds() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[3, 4] x, int64[n] at, int64[n] to) => (float[a, b] y) {
      y = Slice (x, at, to)
    }"""
    session = onert.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for at, to in (([1], [3]), ([0, 1], [2, -1])):
        (found,) = session.run(None, {"x": x, "at": np.array(at), "to": np.array(to)})
        np.testing.assert_array_equal(found, x[tuple(slice(*pair) for pair in zip(at, to, strict=True))])


UNORDERED = """<ir_version: 9, opset_import: ["" : 18]> g (float[3] x, bool c) => (float[3] y) {
  y = Neg (b)
  b = If (c) <then_branch = t () => (float[3] p) { p = Exp (q)
      q = Abs (a) }, else_branch = e () => (float[3] r) { r = Identity (a) }>
  a = Add (x, x)
}"""


def test_unordered_nodes_are_sorted_by_their_dependencies() -> None:
    content = onnx.parser.parse_model(UNORDERED).SerializeToString()
    session = onert.InferenceSession(content)
    x = np.float32([-1, 0, 2])
    for condition, wanted in ((True, -np.exp(np.abs(2 * x))), (False, -2 * x)):
        (found,) = session.run(None, {"x": x, "c": np.array(condition)})
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_nodes_in_a_dependency_cycle_are_refused() -> None:
    text = UNORDERED.replace("Add (x, x)", "Add (x, y)")
    with pytest.raises(onert.ModelError, match="node 0 Neg: 'b' is read, but nothing before it defines it"):
        onert.load(onnx.parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_float16_recurrent_layer_equals_the_float32_one_rounded(kind: str, gates: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"w": (1, gates * 5, 4), "r": (1, gates * 5, 5), "b": (1, gates * 10)}
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float16) for name, shape in shapes.items()}
    x = rng.normal(size=(6, 2, 4)).astype(np.float16)
    found = []
    for dtype in (np.float16, np.float32):
        given = [onnx.numpy_helper.from_array(array.astype(dtype), name) for name, array in weights.items()]
        layer = onnx.helper.make_node(kind, ["x", "w", "r", "b"], ["y", "h"], hidden_size=5)
        element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        ends = [onnx.helper.make_tensor_value_info(n, element, s) for n, s in (("x", x.shape), ("y", None))]
        graph = onnx.helper.make_graph([layer], "g", ends[:1], ends[1:], initializer=given)
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
        found.append(onert.InferenceSession(made.SerializeToString()).run(None, {"x": x.astype(dtype)})[0])
    assert found[0].dtype == np.float16
    np.testing.assert_array_equal(found[0], found[1].astype(np.float16))


def test_an_output_that_renames_a_result_is_not_a_copy() -> None:
    package = onert.load(model(node("Relu", outputs="r"), node("Identity", "r", "y")))
    graph = package.models[0].subgraphs[0]
    assert [type(each.op).__name__ for each in graph.operations] == ["Unary"]
    assert graph.operands[graph.outputs[0]].name == "y"
