"""A tensor named in a signature that is no input or output is ignored with a note, and the model runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt, Model, schema

import onert
from onert.ir import Array, DType, ModelError
from onert.tools.inspect import main as inspect_main
from onert.tools.run import main as run_main

_X = np.array([[1, 2, 3]], np.float32)
_SQUARES = [[4, 9, 16]]

Broken = tuple[str, Mapping[str, Any], tuple[str, ...]]
"""A name, the defects (added `inputs` and `outputs`, the subgraph), and the expected notes."""

BROKEN: list[Broken] = [
    (
        "an unused tensor as input",
        {"inputs": [("gone", 4)]},
        ("'gone' in the inputs of signature 'serve'",),
    ),
    ("a constant as input", {"inputs": [("c", 1)]}, ("'c' in the inputs",)),
    ("a result as input", {"inputs": [("y", 3)]}, ("'y' in the inputs",)),
    ("a tensor within the graph as output", {"outputs": [("middle", 2)]}, ("'middle' in the outputs",)),
    ("several", {"inputs": [("a", 4)], "outputs": [("b", 4)]}, ("'a' in the inputs", "'b' in the outputs")),
]


def _model(wrong: Mapping[str, Any]) -> bytes:
    """(x + 1) squared, with a defective signature."""
    model = Model()
    graph = model.graph()
    x, one = graph.input(DType.FLOAT32, (1, 3)), graph.constant(np.ones((1, 3), np.float32))
    middle, y = graph.tensor(DType.FLOAT32, (1, 3)), graph.tensor(DType.FLOAT32, (1, 3))
    graph.tensor(DType.FLOAT32, (1, 3))
    graph.operator("ADD", [x, one], [middle], ("AddOptions", {}))
    graph.operator("MUL", [middle, middle], [y], ("MulOptions", {}))
    graph.outputs(y)
    model.signature("serve", graph)
    (signature,) = model.table.signatureDefs
    for side in ("inputs", "outputs"):
        for name, tensor in wrong.get(side, ()):
            entry = schema.TensorMapT()
            entry.name, entry.tensorIndex = name.encode(), tensor
            getattr(signature, side).append(entry)
    signature.subgraphIndex = wrong.get("subgraph", 0)
    return model.done()


def _named(broken: list[Broken]) -> list[Any]:
    return [pytest.param(*rest, id=name) for name, *rest in broken]


@pytest.mark.parametrize(("wrong", "says"), _named(BROKEN))
def test_a_wrong_tensor_of_a_signature_is_ignored_with_a_note_and_the_model_runs(
    wrong: Mapping[str, Any], says: tuple[str, ...]
) -> None:
    model = _model(wrong)
    package = onert.load(model)
    assert len(package.notes) == len(says)
    for note, part in zip(package.notes, says, strict=True):
        assert part in note
    (found,) = onert.Execution(onert.compile(package)).run([_X]).values()
    np.testing.assert_array_equal(found, LiteRt(model)(_X)[0])
    np.testing.assert_array_equal(found, _SQUARES)


@pytest.mark.parametrize("wrong", [w for _, w, _ in BROKEN])
def test_the_correct_names_of_a_defective_signature_still_work(wrong: Mapping[str, Any]) -> None:
    model = _model(wrong)
    outputs = onert.Execution(onert.compile(onert.load(model), signature="serve")).run({"t0": _X})
    assert list(outputs) == ["t3"]
    runner = onert.Interpreter(model_content=model).get_signature_runner("serve")
    found: dict[str, Array] = runner(t0=_X)
    np.testing.assert_array_equal(found["t3"], _SQUARES)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"subgraph": 1}, "signature 'serve' names subgraph 1, expected 0 to 0"),
        ({"inputs": [("bad", 77)]}, "signature 'serve' maps 'bad' to tensor 77, expected 0 to 4"),
        ({"outputs": [("bad", 5)]}, "signature 'serve' maps 'bad' to tensor 5, expected 0 to 4"),
    ],
)
def test_a_signature_that_names_a_missing_tensor_or_subgraph_is_refused(wrong: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        onert.load(_model(wrong))


def test_a_well_formed_model_has_no_notes() -> None:
    assert onert.load(_model({})).notes == ()


def test_tools_print_the_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(_model({"inputs": [("gone", 4)]}))
    assert inspect_main([str(file)]) == 0
    assert "'gone' in the inputs" in capsys.readouterr().err
    assert run_main([str(file), "-v", "1"]) == 0
    assert "'gone' in the inputs" in capsys.readouterr().err
