"""An interpreter whose model is known to the cache describes it as one that parsed it, without parsing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_writer import Model

import onert
from onert.backend.cache import Cache
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import interfaces, other_shapes
from onert.compiler.program_cache.encoding import encode
from onert.compiler.program_cache.records import Records
from onert.ir import DType, Operand, Quantization, Signature, SignatureTensor, TensorType
from onert.ir.content import Content

_Q = Quantization([0.5], [3])
_X = Operand(TensorType(DType.UINT8, (1, 4), _Q), "x", signature_shape=(None, 4))
_KEPT = ((0, (0,), (1,), ((0, _X), (1, _X)), 3),)


def _model() -> bytes:
    """A sum with a constant, of an open number of rows, and a signature of it."""
    built = Model()
    graph = built.graph()
    x = graph.input(DType.UINT8, (1, 4), _Q)
    graph.table.tensors[x].shapeSignature = [-1, 4]
    y = graph.tensor(DType.UINT8, (1, 4), quantization=_Q)
    graph.operator("ADD", [x, graph.constant(np.uint8([1, 2, 3, 4]))], [y], ("AddOptions", {}))
    graph.table.tensors[2].quantization = graph.table.tensors[x].quantization
    graph.outputs(y)
    built.signature("serve", graph, (["given"], ["sum"]))
    return built.done()


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A model of which a program and the interface are cached."""
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", 0.0)
    path = tmp_path / "sum.tflite"
    path.write_bytes(_model())
    onert.Interpreter(path).allocate_tensors()
    WRITERS.finish()
    return path


def _described(interpreter: onert.Interpreter) -> list[Any]:
    runner = interpreter.get_signature_runner()
    ends = (interpreter.get_input_details(), interpreter.get_output_details())
    return [*ends, runner.get_input_details(), runner.get_output_details(), interpreter.get_signature_list()]


def test_a_known_model_is_described_without_being_parsed(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[Content] = []
    whole = _described(onert.Interpreter(model_content=cached.read_bytes() + b"\0"))
    models = Content.models
    monkeypatch.setattr(
        Content, "models", property(lambda content: parsed.append(content) or models.__get__(content, Content))
    )
    interpreter = onert.Interpreter(cached)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.uint8([[3, 4, 5, 6]]))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [[1, 3, 5, 7]]
    assert repr(_described(interpreter)) == repr(whole)
    assert not parsed
    assert [detail["name"] for detail in interpreter.get_tensor_details()]
    assert parsed


WRONG = [
    0,
    (),
    ((), 3),
    ((), ((0, (0,), (1,), ((0, _X), (1, _X))),)),
    ((), ((0, (0,), (1,), ((0, _X),), 3),)),
    ((), ((0, (0,), (7,), ((0, _X), (7, _X)), 3),)),
    ((), ((0, (0,), (1,), ((0, _X), (1, 2)), 3),)),
    ((), ((1, (0,), (1,), ((0, _X), (1, _X)), 3),)),
    ((1,), _KEPT),
    ((Signature("serve", 1, (), ()), Signature("other", 1, (SignatureTensor("x", 0),), ())), _KEPT),
    ((Signature("serve", 0, (SignatureTensor("x", 2),), ()),), _KEPT),
]
"""Values that are no interface."""


@pytest.mark.parametrize("value", [*WRONG, None])
def test_a_model_is_parsed_if_its_stored_interface_is_damaged(value: object, cached: Path) -> None:
    content = onert.load(cached).content
    assert content is not None
    stored = b"\1" * 40 if value is None else encode(value, Records())[0]
    assert interfaces._loaded(content) is not None
    assert Cache(Path(str(cached.parent / "cache"))).store(interfaces._key(content), stored)
    assert interfaces._loaded(content) is None
    interpreter = onert.Interpreter(cached)
    assert [detail["index"] for detail in interpreter.get_output_details()] == [1]
    assert interpreter.get_signature_list() == {"serve": {"inputs": ["given"], "outputs": ["sum"]}}
