"""Operations whose sizes are given to each run: what is kept for sizes seen before gives the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, parser

import onert
from onert.ir import Array, OnertError

Feeds = list[dict[str, Any]]

_X = np.random.default_rng(7).normal(size=(4, 6)).astype(np.float32)
_IMAGE = np.random.default_rng(8).normal(size=(1, 2, 5, 7)).astype(np.float32)
SIZED: dict[str, tuple[str, dict[str, Any], dict[str, Any], Feeds]] = {
    "pad": ("Pad", {}, {"x": _X}, [{"p": [1, 2, 0, 1]}, {"p": [0, 0, 3, 0]}, {"p": [-1, 0, 2, -2]}]),
    "slice": ("Slice", {}, {"x": _X}, [{"s": [1, 0], "e": [3, 6]}, {"s": [0, -4], "e": [4, -1]}]),
    "strides": (
        "Slice",
        {},
        {"x": _X},
        [{"s": [5], "e": [-99], "a": [1], "t": [-2]}, {"s": [0], "e": [9], "a": [0], "t": [1]}],
    ),
    "tile": ("Tile", {}, {"x": _X}, [{"r": [2, 1]}, {"r": [1, 3]}, {"r": [0, 2]}]),
    "expand": ("Expand", {}, {"x": _X[:1]}, [{"r": [3, 6]}, {"r": [2, 1, 1]}, {"r": [1]}]),
    "reshape": ("Reshape", {}, {"x": _X}, [{"s": [-1, 8]}, {"s": [2, -1]}, {"s": [24, 1]}]),
    "split": ("Split", {"axis": 1}, {"x": _X}, [{"s": [2, 4]}, {"s": [6, 0]}]),
    "one hot": (
        "OneHot",
        {"axis": 0},
        {"x": np.int64([[0, 2], [-1, 9]])},
        [{"d": 3, "v": [5, 7]}, {"d": 1, "v": [0, 1]}],
    ),
    "constant": ("ConstantOfShape", {}, {}, [{"s": [2, 3]}, {"s": [0]}, {"s": [7, 1]}]),
    "range": ("Range", {}, {}, [{"a": 0, "b": 5, "c": 1}, {"a": 7, "b": -2, "c": -3}, {"a": 3, "b": 3, "c": 2}]),
    "top": ("TopK", {}, {"x": _X}, [{"k": [2]}, {"k": [6]}, {"k": [0]}]),
    "crop": ("CenterCropPad", {}, {"x": _X}, [{"s": [2, 9]}, {"s": [4, 6]}, {"s": [7, 1]}]),
    "nearest": ("Resize", {}, {"x": _IMAGE}, [{"n": [1, 2, 10, 4]}, {"n": [1, 2, 5, 7]}, {"n": [1, 2, 3, 21]}]),
    "linear": (
        "Resize",
        {"mode": "linear"},
        {"x": _IMAGE},
        [{"n": [1, 2, 10, 4]}, {"n": [1, 2, 5, 7]}, {"n": [1, 2, 3, 21]}],
    ),
    "cubic": (
        "Resize",
        {"mode": "cubic", "exclude_outside": 1, "coordinate_transformation_mode": "align_corners"},
        {"x": _IMAGE},
        [{"n": [1, 2, 9, 9]}, {"n": [1, 2, 1, 7]}],
    ),
}
"""An ONNX operator with its attributes, its inputs that stay, and sizes for several runs."""


def _model(name: str) -> tuple[bytes, Feeds]:
    kind, attributes, stays, varying = SIZED[name]
    feeds: Feeds = [stays | {k: np.asarray(v, np.int64) for k, v in sizes.items()} for sizes in varying]
    if kind == "OneHot":
        feeds = [feed | {"v": feed["v"].astype(np.float32)} for feed in feeds]
    first = feeds[0]
    inputs = [
        helper.make_tensor_value_info(
            k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape if len({f[k].shape for f in feeds}) == 1 else ["n"]
        )
        for k, v in first.items()
    ]
    names = ["x", "", "", "n"] if kind == "Resize" else list(first)
    count = {"Split": 2, "TopK": 2}.get(kind, 1)
    results = [f"y{i}" for i in range(count)]
    types = [TensorProto.INT64 if kind == "Range" else TensorProto.FLOAT, TensorProto.INT64 if kind == "TopK" else 1]
    outputs = [helper.make_tensor_value_info(y, t, None) for y, t in zip(results, types, strict=False)]
    graph = helper.make_graph([helper.make_node(kind, names, results, **attributes)], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString(), feeds


@pytest.mark.parametrize("name", sorted(SIZED))
def test_sizes_that_come_again_give_the_results_of_onnx_runtime(name: str) -> None:
    """Other elements of the same sizes give other results, and results of earlier runs stay as they were."""
    content, feeds = _model(name)
    execution = onert.Execution(onert.compile(onert.load(content)))
    peer = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    seen: list[tuple[Array, Array]] = []
    for turn in range(3):
        for feed in feeds:
            given = {k: x + np.float32(turn) if k == "x" and x.dtype == np.float32 else x for k, x in feed.items()}
            for mine, theirs in zip(execution.run(given).values(), peer.run(None, given), strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
                seen.append((mine, theirs))
    for mine, theirs in seen:
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "hostile"),
    [
        ("pad", {"p": [1 << 40, 0, 0, 0]}),
        ("tile", {"r": [-1, 2]}),
        ("tile", {"r": [1 << 31, 1 << 31]}),
        ("reshape", {"s": [5, -1]}),
        ("split", {"s": [2, 5]}),
        ("one hot", {"d": -3}),
        ("constant", {"s": [1 << 62, 4]}),
        ("range", {"a": 0, "b": 1 << 62, "c": 1}),
        ("top", {"k": [7]}),
        ("linear", {"n": [1, 2, -5, 4]}),
    ],
)
def test_sizes_that_cannot_be_are_errors_between_runs_that_work(name: str, hostile: dict[str, Any]) -> None:
    content, (feed, *_) = _model(name)
    execution = onert.Execution(onert.compile(onert.load(content)))
    before = list(execution.run(feed).values())
    for _ in range(2):
        with pytest.raises(OnertError):
            execution.run(feed | {k: np.asarray(v, np.int64) for k, v in hostile.items()})
        for mine, earlier in zip(execution.run(feed).values(), before, strict=True):
            np.testing.assert_array_equal(mine, earlier)


def test_runs_of_many_sizes_hold_no_more_memory_than_one() -> None:
    content, _ = _model("constant")
    execution = onert.Execution(onert.compile(onert.load(content), max_memory=5000))
    for n in (*range(1, 600), *range(1, 600)):
        (y,) = execution.run([np.array([n])]).values()
        assert y.shape == (n,)
    with pytest.raises(OnertError, match="max_memory"):
        execution.run([np.array([5000])])


def test_what_only_sizes_determine_is_not_compiled_for_every_size() -> None:
    """Padding by given sizes would be evaluated in a part too; what follows it gains from a part."""
    pad = '<ir_version: 10, opset_import: ["" : 21]> g (float[4,6] x, int64[4] p) => (float[a,b] y) {'
    for text, parts in (("y = Pad (x, p) }", 0), ("z = Pad (x, p) t = Exp (z) y = Add (t, t) }", 1)):
        content = parser.parse_model(pad + text).SerializeToString()
        program = onert.compile(onert.load(content))
        kinds = [type(operation.op).__name__ for operation in program.main.subgraph.operations]
        assert kinds.count("Rest") == parts
