"""What an ONNX file declares is read from the file without reading all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onert.frontend.onnx.declarations import read_declarations
from onert.ir import ModelError, OnertError, content

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

TEXT = """<ir_version: 8, opset_import: ["" : 17], producer_name: "me", metadata_props: ["a": "b"]>
    g (float[n, 300] x) => (float[n, 300] y) { h = MatMul (x, w) y = Add (h, b) }"""


def _model(terms: int = 300) -> bytes:
    model = onnx.parser.parse_model(TEXT)
    for name, shape in (("w", (terms, 300)), ("b", (300,))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), name))
    found: bytes = model.SerializeToString()
    return found


def _outcome(source: Path | bytes) -> Any:
    try:
        found = read_declarations(source)
    except OnertError as error:
        return str(error)
    assert found is not None
    ends = [[(end.name, str(end.type)) for end in side] for side in (found.inputs, found.outputs)]
    return ends, found.producer, found.graph, dict(found.metadata)


def test_a_file_and_its_content_declare_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "READ_AT_ONCE", 0)
    whole, path, rng = _model(), tmp_path / "m.onnx", np.random.default_rng(0)
    variants = [whole, whole[:-1], whole[:5000], whole[:100]]
    for _ in range(150):
        changed = bytearray(whole)
        for at in rng.choice([*range(3, 120), *range(len(whole) - 120, len(whole))], 3):
            changed[at] = rng.integers(256)
        variants.append(bytes(changed))
    outcomes = []
    for each in variants:
        path.write_bytes(each)
        outcomes.append(_outcome(path))
        assert outcomes[-1] == _outcome(each)
    assert outcomes[0][0] == [[("x", outcomes[0][0][0][0][1])], [("y", outcomes[0][0][1][0][1])]]
    assert len({str(each) for each in outcomes}) > 20


def test_weights_are_not_read_for_what_a_file_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(terms=20000))
    assert path.stat().st_size > 20 << 20
    counts = []
    part = content.File.part
    monkeypatch.setattr(content.File, "part", lambda file, start, size: counts.append(size) or part(file, start, size))
    monkeypatch.setattr(content.File, "data", property(lambda _: pytest.fail("the file is read as a whole")))
    assert _outcome(path)[1] == "me"
    assert sum(counts) < 1 << 16


def test_a_file_that_becomes_shorter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "READ_AT_ONCE", 0)
    path = tmp_path / "m.onnx"
    path.write_bytes(_model())
    part = content.File.part

    def shortened(file: content.File, start: int, size: int) -> bytes:
        os.truncate(path, 1000)
        return part(file, start, size)

    monkeypatch.setattr(content.File, "part", shortened)
    with pytest.raises(ModelError, match="became shorter"):
        read_declarations(path)
