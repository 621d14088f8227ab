"""Sizes chosen for dynamic dimensions: they suit the model and are reported."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from onnx import TensorProto, helper, numpy_helper
from report_models import MACHINE
from shared_material import SHARED

import onert
from onert.frontend.onnx.declarations import read_declarations
from onert.ir import CompileError, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.tools import bench, bundle, inspect, run
from onert.tools.open_shapes import choices, compiled_with

MODELS = SHARED / "models" / "onnx"
TAKEN = {
    "basic_pitch-0.4.0__nmp": ({0: (1, 43844, 1)}, ""),
    "faster_whisper-1.2.1__silero_vad_v6": ({0: (16, 576)}, "seq_len is dynamic, assumed to be 16"),
    "magika-1.0.3__model": ({0: (1, 2048)}, ""),
    "nudenet-3.4.2__320n": ({0: (1, 3, 320, 320)}, "height and width are dynamic, assumed to be 320 x 320"),
    "openwakeword-0.4.0__embedding_model": ({0: (1, 76, 32, 1)}, ""),
    "openwakeword-0.4.0__hey_mycroft_v0.1": ({0: (1, 16, 96)}, ""),
    "openwakeword-0.4.0__melspectrogram": ({0: (1, 16_000)}, "samples is dynamic, assumed to be 16000"),
    "openwakeword-0.4.0__silero_vad": (
        {0: (1, 256), 2: (2, 1, 64), 3: (2, 1, 64)},
        "sequence is dynamic, assumed to be 256",
    ),
    "pipecat_ai-1.14.0__smart-turn-v3.2-cpu": ({0: (1, 80, 800)}, ""),
    "rapidocr-3.10.0__PP-OCRv6_det_small": (
        {0: (1, 3, 320, 320)},
        "height and width are dynamic, assumed to be 320 x 320",
    ),
    "rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile": (
        {0: (1, 3, 320, 320)},
        "height and width are dynamic, assumed to be 320 x 320",
    ),
    "ricky0123-vad-web-0.0.31__silero_vad_v5": (
        {0: (1, 256), 1: (2, 1, 128)},
        "dimension 1 of 'input' is dynamic, assumed to be 256",
    ),
    "silero_vad-6.2.3__silero_vad": (
        {0: (1, 256), 1: (2, 1, 128)},
        "dimension 1 of 'input' is dynamic, assumed to be 256",
    ),
    "silero_vad-6.2.3__silero_vad_16k_op15": ({0: (1, 256), 1: (2, 1, 128)}, "sequence is dynamic, assumed to be 256"),
    "silero_vad-6.2.3__silero_vad_16k_sequence": ({0: (16, 576)}, "sequence_length is dynamic, assumed to be 16"),
    "silero_vad-6.2.3__silero_vad_half": ({0: (1, 256), 1: (2, 1, 128)}, "sequence is dynamic, assumed to be 256"),
    "silero_vad-6.2.3__silero_vad_op18_ifless": (
        {0: (1, 256), 2: (2, 1, 128)},
        "sequence is dynamic, assumed to be 256",
    ),
}
"""Shapes, and what is said of them, for every shared model whose file has no shape for an input."""
SETS = "; --shape_prepare sets"


def shared(name: str) -> Path:
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.mark.parametrize("name", TAKEN)
def test_dynamic_dimensions_of_real_models_get_suitable_sizes(name: str) -> None:
    found = next(choices(onert.load(shared(name))))
    shapes, said = TAKEN[name]
    assert dict(found.shapes) == shapes
    assert found.said.partition(SETS)[0] == said
    assert bool(said) == (SETS in found.said)


def test_the_table_has_every_shared_model_with_dynamic_shapes() -> None:
    if not MODELS.exists():
        pytest.skip(f"{MODELS} is not there")
    ends = {path.stem: read_declarations(path) for path in MODELS.glob("*.onnx")}
    opened = {
        name
        for name, each in ends.items()
        if each is not None
        for value in each.inputs
        if value.type is not None and not all(isinstance(size, int) for size in value.type.shape or ())
    }
    assert opened == TAKEN.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", TAKEN)
def test_real_models_with_dynamic_dimensions_run_without_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(shared(name))]) == 0
    captured = capsys.readouterr()
    assert TAKEN[name][1] in captured.err
    for shape in TAKEN[name][0].values():
        assert str(list(shape)) in captured.out


# ---- made models


def made(
    inputs: dict[str, list[Any]], nodes: list[Any], constants: dict[str, np.ndarray[Any, Any]], types: Any = None
) -> Package:
    """An ONNX model with one output `y`."""
    kinds = types or {}
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onert.load(model.SerializeToString())


def digits() -> Package:
    """A model that flattens pictures of 28 x 28 pixels."""
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    return made({"x": ["n", 1, "h", "w_"]}, nodes, {"w": np.ones((784, 10), np.float32)})


def lines() -> Package:
    """A model for pictures of 48 rows and any number of columns."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], kernel_shape=[48, 1]),
        helper.make_node("Reshape", ["c", "s"], ["y"]),
    ]
    constants = {"k": np.ones((4, 3, 48, 1), np.float32), "s": np.array([1, 4, -1], np.int64)}
    return made({"x": ["n", 3, 48, None]}, nodes, constants)


def decoder(past: str = "past", total: str = "past + seq") -> Package:
    """A model that concatenates past and new elements and adds a mask of the total length."""
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["all"], axis=1),
        helper.make_node("Add", ["all", "mask"], ["y"]),
    ]
    inputs = {"x": ["batch", "seq", 4], "past": ["batch", past, 4], "mask": ["batch", total, 1]}
    return made(inputs, nodes, {})


def features() -> Package:
    """A model whose weights demand rows of 977 features."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return made({"x": [None, None]}, nodes, {"w": np.ones((977, 3), np.float32)})


def everything_open() -> Package:
    """A convolution of three channels with only dynamic dimensions."""
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"], kernel_shape=[3, 3])]
    return made({"x": [None, None, None, None]}, nodes, {"k": np.ones((2, 3, 3, 3), np.float32)})


def impossible() -> Package:
    """A reshape that fits only multiples of 7919 elements."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    return made({"x": ["n", "features"]}, nodes, {"s": np.array([-1, 7919], np.int64)})


def placeholders(*, batch_only: bool = False) -> Package:
    """A model as in TFLite: an initial shape, and which of its dimensions are dynamic."""
    b = Builder("made")
    open_shape = (None, 3) if batch_only else (None, None, None, 3)
    x = b.input(TensorType(DType.FLOAT32, tuple(d or 1 for d in open_shape)), "x")
    model = b.model([b.add(Unary(UnaryKind.ABS), x)])
    (graph,) = model.subgraphs
    operands = tuple(evolve(o, signature_shape=open_shape) if at == x else o for at, o in enumerate(graph.operands))
    return Package((evolve(model, subgraphs=(evolve(graph, operands=operands),)),), "made")


MADE = {
    "pictures of one size": (digits, {0: (1, 1, 28, 28)}, "height and width are dynamic, assumed to be 28 x 28"),
    "one side": (lines, {0: (1, 3, 48, 320)}, "width is dynamic, assumed to be 320"),
    "a sum of names": (
        decoder,
        {0: (1, 16, 4), 1: (1, 16, 4), 2: (1, 32, 1)},
        "seq, past and past + seq are dynamic, assumed to be 16, 16 and 32",
    ),
    "a sum without an expression": (
        partial(decoder, "before", "total"),
        {0: (1, 16, 4), 1: (1, 16, 4), 2: (1, 32, 1)},
        "seq, before and total are dynamic, assumed to be 16, 16 and 32",
    ),
    "what weights demand": (features, {0: (1, 977)}, "dimension 1 of 'x' is dynamic, assumed to be 977"),
    "channels too": (
        everything_open,
        {0: (1, 3, 320, 320)},
        "dimension 1 of 'x', height and width are dynamic, assumed to be 3, 320 and 320",
    ),
    "placeholders": (placeholders, {0: (1, 320, 320, 3)}, "height and width are dynamic, assumed to be 320 x 320"),
    "a batch that has a size": (lambda: placeholders(batch_only=True), {}, ""),
}


@pytest.mark.parametrize("name", MADE)
def test_dynamic_dimensions_of_synthetic_models_get_suitable_sizes(name: str) -> None:
    model, shapes, said = MADE[name]
    found = next(choices(model()))
    assert dict(found.shapes) == shapes
    assert found.said.partition(SETS)[0] == said


def test_given_shapes_determine_the_named_dimensions_of_other_inputs() -> None:
    found = next(choices(decoder(), None, {"x": (2, 5, 4)}))
    assert dict(found.shapes) == {1: (2, 16, 4), 2: (2, 21, 1)}
    assert "past and past + seq are dynamic, assumed to be 16 and 21" in found.said


def test_if_no_size_suits_the_error_names_the_input_and_the_option() -> None:
    found = next(choices(impossible()))
    assert not found.shapes
    assert found.refused.startswith(
        "no suitable sizes were found for the dynamic dimensions of an input 'x' f32[?, ?] (subgraph 0 'made', node 0 "
    )
    assert found.refused.endswith("; set them with --shape_prepare")
    with pytest.raises(CompileError, match="no suitable sizes were found"):
        compiled_with(impossible(), None, {}, lambda shapes: shapes)


# ---- commands


@pytest.fixture
def model(tmp_path: Path) -> Path:
    content = digits().content
    assert content is not None
    path = tmp_path / "digits.onnx"
    path.write_bytes(bytes(content.data))
    return path


def test_every_command_chooses_the_same_sizes_and_reports_them(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onert.tools.model_report.report.machine", lambda threads: MACHINE)
    said = "height and width are dynamic, assumed to be 28 x 28; "
    assert inspect.main([str(model)]) == 0
    captured = capsys.readouterr().out
    assert "'x' f32[?, 1, ?, ?], compiled for [1, 1, 28, 28]" in captured
    assert f"{said}--shape_prepare sets them" in captured
    assert "reference" not in captured
    assert run.main([str(model)]) == 0
    assert capsys.readouterr().err == f"onert_run: note: {said}--shape_prepare sets them\n"
    assert bench.main([str(model), "--peers", "", "--rounds", "5", "--json"]) == 0
    captured = capsys.readouterr()
    assert f"onert_bench: note: {said}--shape_prepare sets them\n" in captured.err
    assert len(json.loads(captured.out)["rows"]) == 1
    assert bundle.main([str(model), "-o", str(tmp_path / "out"), "--cpu", "native"]) == 0
    assert f"onert_bundle: note: {said}--shape sets them\n" in capsys.readouterr().err


def test_given_shapes_are_not_replaced_by_chosen_ones(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(model), "--shape_prepare", "[0, [2, 1, 28, 28]]"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "float32[2, 1, 28, 28]: random numbers" in captured.out
    assert bench.main([str(model), "--peers", "", "--rounds", "5", "--shape_prepare", "[0, [2, 1, 28, 28]]"]) == 0
    assert "open" not in capsys.readouterr().err
