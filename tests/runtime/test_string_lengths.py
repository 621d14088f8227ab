"""Models of strings are compiled for the number that a run is given, and one program then serves any number."""

from __future__ import annotations

import numpy as np
import pytest

from onert.exec import Execution
from onert.runtime.session import InferenceSession

onnx_parser = pytest.importorskip("onnx.parser")
onnxruntime = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g '
PLACED = """ai.onnx.ml.LabelEncoder
  <keys_strings = ["a", "b", "c"], values_int64s = [3, 1, 2], default_int64 = -1>"""
ENCODED = f"""{HEAD}(string[n,2] x) => (float[n,2] y) <int64[1] first = {{0}}, int64[1] second = {{1}}> {{
  p = ai.onnx.ml.ArrayFeatureExtractor (x, first)
  q = ai.onnx.ml.ArrayFeatureExtractor (x, second)
  r = {PLACED} (p)
  s = {PLACED} (q)
  t = Concat <axis = 1> (r, s)
  y = Cast <to = 1> (t)
}}"""
HOT = f"""{HEAD}(string[n,2] x) => (float[n,2] y) <int64[1] last = {{2}}> {{
  hot = ai.onnx.ml.OneHotEncoder <cats_strings = ["a", "b", "c"], zeros = 1> (x)
  y = ReduceSum <keepdims = 0> (hot, last)
}}"""
MIXED = f"""{HEAD}(string[n,2] x, float[n,2] z) => (string[n,2] w, float[n,2] y) {{
  p = {PLACED} (x)
  q = Cast <to = 1> (p)
  y = Add (q, z)
  w = Identity (x)
}}"""


def _given(text: str, n: int) -> dict[str, object]:
    rng = np.random.default_rng(n)
    x = rng.choice(np.array(["a", "b", "c", "other"], object), (n, 2))
    return {"x": x} if text is not MIXED else {"x": x, "z": rng.normal(size=(n, 2)).astype(np.float32)}


@pytest.mark.parametrize("text", [ENCODED, HOT, MIXED], ids=["encoded", "hot", "mixed"])
def test_any_number_of_strings_runs_in_one_program_without_a_cut(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = onnx_parser.parse_model(text).SerializeToString()
    session, expected = InferenceSession(content), onnxruntime.InferenceSession(content)

    def check(n: int) -> None:
        given = _given(text, n)
        for mine, theirs in zip(session.run(None, given), expected.run(None, given), strict=True):
            assert mine.tolist() == theirs.tolist()

    for n in (3, 4, 5, 6, 5):
        check(n)
    (execution,) = session._idle
    kinds = {type(operation.op).__name__ for operation in execution.program.main.subgraph.operations}
    assert "Rest" not in kinds
    assert execution.program.stretch is not None

    def specialized(*_: object) -> None:
        raise AssertionError("a program was made for another number of strings")

    monkeypatch.setattr(Execution, "_specialized", specialized)
    for n in (7, 2, 12, 1, 7, 7):
        check(n)


def test_an_input_may_mix_texts_and_bytes_and_another_array_is_read_each_time() -> None:
    text = f"{HEAD}(string[n,2] x) => (int64[n,2] y) {{ y = {PLACED} (x) }}"
    session = InferenceSession(onnx_parser.parse_model(text).SerializeToString())
    for given, expected in (
        ([["a", "b"], ["c", "z"]], [[3, 1], [2, -1]]),
        ([[b"a", "b"], ["c", b"z"]], [[3, 1], [2, -1]]),
        ([[b"b", b"b"], [b"c", b"a"]], [[1, 1], [2, 3]]),
        ([["ü", "a"], ["b", "c"]], [[-1, 3], [1, 2]]),
    ):
        assert session.run(None, {"x": np.array(given, object)})[0].tolist() == expected


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]])
def test_scores_of_any_number_of_labels_become_maps(labels: list[str]) -> None:
    named = ", ".join(f'"{label}"' for label in labels)
    text = f"""{HEAD}(float[n,{len(labels)}] x) => (seq(map(string, float)) y) {{
      y = ai.onnx.ml.ZipMap <classlabels_strings = [{named}]> (x)
    }}"""
    session = InferenceSession(onnx_parser.parse_model(text).SerializeToString())
    x = np.arange(2 * len(labels), dtype=np.float32).reshape(2, -1)
    assert session.run(None, {"x": x})[0] == [dict(zip(labels, row, strict=True)) for row in x.tolist()]
