"""Errors are one line that is safe to print, whatever names a file contains."""

from __future__ import annotations

from pathlib import Path

import flatbuffers
import litert_peer as litert
import pytest
from ai_edge_litert import schema_py_generated as schema

from onert.ir import BackendError, CallTypes, CompileError, DType, ExecutionError, ModelError, OnertError, TensorType
from onert.ir.errors import MAX_SENTENCE
from onert.tools import bundle, inspect, run


@pytest.mark.parametrize("kind", [OnertError, ModelError, CompileError, ExecutionError, BackendError])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\0", "\\x00"),
        ("\ud800", "\\ud800"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("größe · 名前", "größe · 名前"),
    ],
)
def test_control_characters_are_escaped(kind: type[OnertError], name: str, shown: str) -> None:
    assert str(kind(f"tensor {name} is wrong")) == f"tensor {shown} is wrong"
    assert str(kind(f"model: {kind(name)}")) == f"model: {shown}"


@pytest.mark.parametrize("length", [MAX_SENTENCE + 1, 1 << 20])
def test_long_sentences_are_shortened(length: int) -> None:
    text = str(ModelError("begins " + "x" * length + " ends"))
    assert len(text) < MAX_SENTENCE + 100
    assert text.startswith("begins xxx")
    assert text.endswith("xxx ends")
    assert f"[{length + 12 - MAX_SENTENCE} characters left out]" in text


def test_every_tool_prints_names_of_a_model_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name can neither control a terminal nor end a C comment."""
    evil = 'a\x1b[2J\nb"*/ <x> #include <y> /*\u202e'
    row = TensorType(DType.FLOAT32, (1, 3))
    content = litert.one_operator("ADD", ("AddOptions", {}), CallTypes((row, row), (row,)), {})
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    model.description = evil
    for graph in model.subgraphs:
        graph.name = evil
        for number, tensor in enumerate(graph.tensors):
            tensor.name = f"{evil}{number}"
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    file = tmp_path / "m.tflite"
    file.write_bytes(builder.Output())
    for main, arguments in (
        (run.main, ["-v", "1", "--profile"]),
        (run.main, ["--json"]),
        (inspect.main, []),
        (inspect.main, ["--ops", "--plan"]),
        (bundle.main, ["-o", str(tmp_path), "--name", "b"]),
    ):
        assert main([str(file), *arguments]) == 0
        printed = capsys.readouterr()
        for line in (printed.out + printed.err).split("\n"):
            assert line.isprintable(), line
    header = (tmp_path / "b.h").read_text()
    assert evil not in header
    assert "*/ <x>" not in header
