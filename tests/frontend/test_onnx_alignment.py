"""The alignment of two sequences by dynamic time warping, with which Whisper finds the times of words."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_domain_cases import MICROSOFT, floats
from frontend.onnx_one_node import one_node_model
from onnx_peer import precise_session

import onert
from onert.ir import Array

_SEVERAL_PATHS = np.round(np.abs(floats(9, 14)))


@pytest.mark.parametrize("is_open", [False, True], ids=["known sizes", "open sizes"])
@pytest.mark.parametrize(
    "costs",
    [
        floats(5, 8),
        floats(1, 8, 5),
        floats(1, 4),
        floats(4, 1),
        floats(1, 1),
        np.float32(np.zeros((3, 4))),
        _SEVERAL_PATHS,
    ],
    ids=lambda x: "x".join(map(str, x.shape)),
)
def test_the_cheapest_path_is_that_of_onnx_runtime(costs: Array, is_open: bool) -> None:
    axes = {0: range(costs.ndim - 2, costs.ndim)} if is_open else None
    model, feed = one_node_model(MICROSOFT, "DynamicTimeWarping", (costs,), {}, 1, axes)
    (mine,), (theirs,) = onert.InferenceSession(model).run(None, feed), precise_session(model).run(None, feed)
    assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(mine, theirs)


def test_an_alignment_is_native_but_for_cutting_its_result() -> None:
    model, _ = one_node_model(MICROSOFT, "DynamicTimeWarping", (floats(5, 8),), {}, 1)
    steps = onert.compile(onert.load(model), num_threads=1).main.steps
    others = [o.op.label for step in steps if step.backend != "llvm" for o in step.sequence.body]
    assert others == ["FirstEntries"]


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (floats(2, 5, 8), r"the tensor of costs is f32\[2, 5, 8\], expected \[1, any, any\]"),
        (floats(5), r"the tensor of costs is f32\[5\], expected 2 dimensions"),
    ],
)
def test_costs_that_are_no_matrix_are_refused(costs: Array, sentence: str) -> None:
    model, _ = one_node_model(MICROSOFT, "DynamicTimeWarping", (costs,), {}, 1)
    with pytest.raises(onert.ModelError, match=sentence):
        onert.load(model)
