"""Grouped-query attention under masks of every shape, with static and dynamic sizes."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_domain_cases import floats

import onert

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models, and its evaluator is the oracle")
reference = pytest.importorskip("onnx.reference")

_MASKS = ((5,), (1, 1, 5), (1, 4, 5), (2, 4, 5), (2, 1, 5), (4, 5))
"""Shapes of masks without the query dimension: batch and heads, or heads only, come before the key dimension."""


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("before", [None, *_MASKS])
@pytest.mark.parametrize("open_axes", [(), (0, 2), (0, 1, 2, 3)])
def test_grouped_query_attention_matches_repeated_key_and_value_heads(
    tokens: int, before: tuple[int, ...] | None, open_axes: tuple[int, ...]
) -> None:
    h, feed = onnx.helper, {"q": floats(2, 4, tokens, 16), "k": floats(2, 2, 5, 16), "v": floats(2, 2, 5, 16)}
    if before is not None:
        feed["mask"] = floats(*before[:-1], tokens, 5)
    ends = []
    for name, x in feed.items():
        unknown = range(x.ndim) if name == "mask" and open_axes else open_axes
        shape = [f"{name}{at}" if at in unknown else size for at, size in enumerate(x.shape)]
        ends.append(h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    node = h.make_node("Attention", list(feed), ["y"])
    graph = h.make_graph([node], "one", ends, [h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 23)], ir_version=10)
    (wanted,) = reference.ReferenceEvaluator(model).run(None, feed)
    found = onert.Execution(onert.compile(onert.load(model.SerializeToString()))).run(feed)
    np.testing.assert_allclose(found["y"], wanted, atol=1e-5)


def test_heads_are_split_from_an_unknown_number_of_features() -> None:
    h, feed = onnx.helper, {"q": floats(2, 3, 64), "k": floats(2, 5, 32), "v": floats(2, 5, 32)}
    ends = [h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None] * 3) for name in feed]
    node = h.make_node("Attention", list(feed), ["y"], q_num_heads=4, kv_num_heads=2)
    graph = h.make_graph([node], "one", ends, [h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 23)], ir_version=10)
    (wanted,) = reference.ReferenceEvaluator(model).run(None, feed)
    (found,) = onert.InferenceSession(model.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
