"""Attention of tokens without padding, which ONNX Runtime's tools write for CUDA, against its formula in NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from onert.ir import Array
from onert.runtime.session import Backend, InferenceSession
from onert.runtime.session.errors import FailedRun, InvalidGraph

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

DRAW = np.random.default_rng(3)
HEADS, WIDTH = 2, 8
COUNTS = np.int32([3, 5, 0, 1])
"""The tokens of four sequences of at most five."""
PLACES = np.int32([[0, 1, 2, 5, 6], [7, 8, 9, 15, 3], [4, 10, 11, 12, 13], [14, 16, 17, 18, 19]])
STARTS = np.int32([0, 3, 8, 8, 9])


def floats(*shape: int) -> Array:
    return DRAW.standard_normal(shape).astype(np.float32)


def attended(q: Array, k: Array, v: Array, bias: Array | None = None, starts: Array = STARTS) -> Array:
    """Each sequence's tokens attend to one another; the bias is [1, heads, 5, 5]."""
    parts = []
    for start, end in pairwise(starts):
        count = end - start
        heads = [x[start:end].reshape(count, HEADS, WIDTH // HEADS).transpose(1, 0, 2) for x in (q, k, v)]
        scores = heads[0] @ heads[1].transpose(0, 2, 1) / np.sqrt(heads[0].shape[2])
        if bias is not None:
            scores = scores + bias[0, :, :count, :count]
        weights = np.exp(scores)
        weights /= weights.sum(2, keepdims=True)
        parts.append((weights @ heads[2]).transpose(1, 0, 2).reshape(count, WIDTH))
    return np.concatenate(parts)


def projected(x: Array, weight: Array, bias: Array, starts: Array = STARTS) -> Array:
    q, k, v = np.split(x @ weight + bias, 3, axis=1)
    return attended(q, k, v, starts=starts)


def run(name: str, inputs: tuple[Array | None, ...], results: int = 1, **attributes: Any) -> list[Array]:
    h = onnx.helper
    feed = {f"x{at}": x for at, x in enumerate(inputs) if x is not None}
    node = h.make_node(
        name,
        [f"x{at}" if x is not None else "" for at, x in enumerate(inputs)],
        [f"y{at}" for at in range(results)],
        domain="com.microsoft",
        **attributes,
    )
    ends = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feed.items()]
    graph = h.make_graph([node], "one", ends, [onnx.ValueInfoProto(name=o) for o in node.output])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("com.microsoft", 1)], ir_version=8)
    return list(Backend.run_model(model, feed))


def test_padding_is_removed() -> None:
    x = floats(4, 5, WIDTH)
    rows, places, starts, most = run("RemovePadding", (x, COUNTS), 4)
    assert (rows == x.reshape(20, WIDTH)[PLACES.reshape(-1)[:9]]).all()
    assert rows.shape == (9, WIDTH)
    for found, expected in zip((places, starts, most), (PLACES, STARTS, np.int32([5])), strict=True):
        assert found.dtype == np.int32
        assert found.tolist() == expected.tolist()


def test_numbers_of_tokens_out_of_range_are_clamped() -> None:
    rows, _, starts, most = run("RemovePadding", (floats(2, 5, WIDTH), np.int32([-3, 2**31 - 1])), 4)
    assert (rows.shape, starts.tolist(), most.tolist()) == ((5, WIDTH), [0, 0, 5], [5])


def test_padding_is_restored_as_zeros() -> None:
    rows = floats(9, WIDTH)
    (found,) = run("RestorePadding", (rows, PLACES))
    expected = np.zeros((20, WIDTH), np.float32)
    expected[PLACES.reshape(-1)[:9]] = rows
    assert (found == expected.reshape(4, 5, WIDTH)).all()


def test_rows_without_padding_attend_within_their_sequence() -> None:
    x, weight, bias = floats(9, 6), floats(6, 3 * WIDTH), floats(3 * WIDTH)
    (found,) = run("PackedAttention", (x, weight, bias, PLACES, STARTS), num_heads=HEADS)
    np.testing.assert_allclose(found, projected(x, weight, bias), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("together", [False, True], ids=["three inputs", "one input"])
def test_queries_keys_and_values_without_padding_attend_within_their_sequence(together: bool) -> None:
    q, k, v = (floats(9, WIDTH) for _ in range(3))
    bias, added = floats(3 * WIDTH), floats(1, HEADS, 5, 5)
    if together:
        packed = np.stack([x.reshape(9, HEADS, -1) for x in (q, k, v)], 2)
        inputs: tuple[Array | None, ...] = (packed, None, None, None, PLACES, STARTS, added)
        bias = np.zeros_like(bias)
    else:
        inputs = (q, k, v, bias, PLACES, STARTS, added)
    (found,) = run("PackedMultiHeadAttention", inputs, num_heads=HEADS)
    expected = attended(*(x + part for x, part in zip((q, k, v), np.split(bias, 3), strict=True)), added)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_places_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidGraph, match=r"the tensor of places is i32\[20\], expected \[any, any\]"):
        run("RestorePadding", (floats(9, WIDTH), PLACES.reshape(-1)))
    with pytest.raises(FailedRun, match="index 35 is outside of dimension 0 of 20"):
        run("RestorePadding", (floats(9, WIDTH), PLACES + 20))


def test_a_model_without_padding_runs_sequences_of_all_lengths() -> None:
    weight, bias = floats(WIDTH, 3 * WIDTH), floats(3 * WIDTH)
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[b, s, {WIDTH}] x, int32[b] counts, float[{WIDTH}, {3 * WIDTH}] w, float[{3 * WIDTH}] z)
            => (float[b, s, {WIDTH}] y) {{
          rows, places, starts, most = com.microsoft.RemovePadding (x, counts)
          weighted = com.microsoft.PackedAttention <num_heads = {HEADS}> (rows, w, z, places, starts)
          y = com.microsoft.RestorePadding (weighted, places)
        }}""")
    session = InferenceSession(model.SerializeToString())
    for size in (5, 7, 4):
        counts, x = np.minimum(COUNTS, size), floats(4, size, WIDTH)
        (found,) = session.run(None, {"x": x, "counts": counts, "w": weight, "z": bias})
        kept = np.arange(size) < counts[:, None]
        expected = np.zeros_like(x)
        expected[kept] = projected(x[kept], weight, bias, np.cumsum([0, *counts]))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
