"""Models in the form exporters write match ONNX Runtime, with all inputs given at run time."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_peer import precise_session

import onert
from onert.ir import Array
from onert.ir.ops.data_movement.fill import Range, Where
from onert.ir.ops.data_movement.gather import OneHot

onnx = pytest.importorskip("onnx", reason="the package onnx reads the texts")

CASES: dict[str, tuple[str, dict[str, Array]]] = {
    "lengths are products in float32": (
        'g (float[n, 20] x) => (float[n, m] y) <float[2] s = {1, 2.3}> { y = Resize <mode = "linear"> (x, , s) }',
        {"x": np.arange(40, dtype=np.float32).reshape(2, 20)},
    ),
    "before opset 11 the nearest element is the next where an axis shrinks": (
        "g (float[n, 6, 5] x) => (float[n, a, b] y) <float[3] s = {1, 0.5, 0.6}> { y = Resize (x, s) }",
        {"x": np.arange(30, dtype=np.float32).reshape(1, 6, 5)},
    ),
    "also if the scales are operands": (
        "g (float[n, 6, 5] x, float[3] s) => (float[a, b, c] y) { y = Resize (x, s) }",
        {"x": np.arange(30, dtype=np.float32).reshape(1, 6, 5), "s": np.float32([1, 1.7, 0.45])},
    ),
    "a shape of open length whose zero is the dimension of x": (
        "g (float[n, 6] x, int64[k] s) => (float[a, b, c] y) { y = Reshape (x, s) }",
        {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "s": np.array([0, 3, -1])},
    ),
    "where the largest stand in margins of an open size": (
        "g (float[n, 2, h, w] x) => (float[a, b, c, d] y, int64[a, b, c, d] z) "
        '{ y, z = MaxPool <kernel_shape = [4, 3], strides = [3, 2], auto_pad = "SAME_UPPER"> (x) }',
        {"x": np.arange(180, dtype=np.float32).reshape(2, 2, 9, 5) * 7 % 31},
    ),
    "where the largest stand in margins of an open size, columns first": (
        "g (float[n, 2, h, w] x) => (float[a, b, c, d] y, int64[a, b, c, d] z) { y, z = "
        'MaxPool <kernel_shape = [4, 3], strides = [3, 2], auto_pad = "SAME_LOWER", storage_order = 1> (x) }',
        {"x": np.arange(160, dtype=np.float32).reshape(2, 2, 8, 5) * 7 % 31},
    ),
    **{
        name: (
            f"g (float[n, {channels}, h, w] x, float[3] s, float[3] b) => (float[n, {channels}, h, w] y) "
            "{ y = GroupNormalization <num_groups = 3> (x, s, b) }",
            {
                "x": np.arange(180, dtype=np.float32).reshape(2, 6, 3, 5) % 17,
                "s": np.float32([1, 2, 3]),
                "b": np.ones(3, np.float32),
            },
        )
        for name, channels in (
            ("groups of channels of pictures of open size", "6"),
            ("groups of an open number of channels", "c"),
        )
    },
    "groups of an open number of channels, with a scale each": (
        "g (float[n, c, h] x, float[c] s, float[c] b) => (float[n, c, h] y) "
        "{ y = GroupNormalization <num_groups = 3> (x, s, b) }",
        {
            "x": np.arange(180, dtype=np.float32).reshape(2, 6, 15) % 17,
            "s": np.arange(6, dtype=np.float32),
            "b": np.ones(6, np.float32),
        },
    ),
    "the least elements, not-a-number last": (
        "g (float[n, 6] x) => (float[n, a] y, int64[n, a] z) <int64[1] k = {5}> { y, z = TopK <largest = 0> (x, k) }",
        {"x": np.float32([[np.nan, 2, np.inf, -np.inf, np.nan, -0.0], [3, np.nan, 1, 1, 0, 2]])},
    ),
    "the largest elements, not-a-number first": (
        "g (float[n, 6] x) => (float[n, a] y, int64[n, a] z) <int64[1] k = {5}> { y, z = TopK (x, k) }",
        {"x": np.float32([[np.nan, 2, np.inf, -np.inf, np.nan, -0.0], [3, np.nan, 1, 1, 0, 2]])},
    ),
    "the least bytes": (
        "g (uint8[n, 4] x) => (uint8[n, a] y, int64[n, a] z) <int64[1] k = {4}> { y, z = TopK <largest = 0> (x, k) }",
        {"x": np.uint8([[7, 0, 255, 0], [128, 127, 0, 255]])},
    ),
    "a ratio kept of an open size": (
        "g (float[n, 2, h, w] x) => (float[a, b, c, d] y) <int64[2] s = {7, 9}> "
        '{ y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "not_larger", mode = "linear"> (x, , , s) }',
        {"x": np.arange(30, dtype=np.float32).reshape(1, 2, 3, 5)},
    ),
    "an einsum's dimension of 1 broadcasts": (
        'g (float[2, 3] x, float[2, 1] z) => (float[a] y) { y = Einsum <equation = "ij,ij->i"> (x, z) }',
        {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "z": np.float32([[2], [3]])},
    ),
    "an einsum's dimension of 1 broadcasts within its ellipsis": (
        'g (float[2, n, 4] x, float[2, 1, 4] z) => (float[a, b] y) { y = Einsum <equation = "...i,...i->..."> (x, z) }',
        {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "z": np.arange(8, dtype=np.float32).reshape(2, 1, 4)},
    ),
    "channels of a tensor expanded to an open shape, as PyTorch writes it": (
        "g (float[n, 8, t, 1] x) => (float[a, b, c, d] y) <int64[1] e = {8}, int64[1] m = {-1}> { "
        "f = Shape <start = 0, end = 1> (x) s = Shape <start = 2, end = 3> (x) q = Concat <axis = 0> (f, e, s, s) "
        "h = Shape (q) i = ConstantOfShape <value = int64[1] {1}> (h) j = Mul (i, m) k = Equal (q, j) "
        "l = Where (k, i, q) z = Expand (x, l) y = DepthToSpace <blocksize = 2> (z) }",
        {"x": np.arange(48, dtype=np.float32).reshape(2, 8, 3, 1)},
    ),
    "a transposed convolution fills a larger shape up behind": (
        "g (float[1, 1, 3] x) => (float[a, b, c] y) <float[1, 1, 2] w = {1, 10}> "
        "{ y = ConvTranspose <strides = [3], output_shape = [10]> (x, w) }",
        {"x": np.float32([[[1, 2, 3]]])},
    ),
    "a tensor wraps around what is left of it": (
        'g (float[4] x) => (float[a] y) <int64[2] p = {-1, 2}> { y = Pad <mode = "wrap"> (x, p) }',
        {"x": np.arange(4, dtype=np.float32)},
    ),
    "triangles of matrices of open size above the diagonal": (
        "g (float[n, m] x) => (float[n, m] y) <int64 k = {1}> { y = Trilu <upper = 1> (x, k) }",
        {"x": np.arange(1, 13, dtype=np.float32).reshape(3, 4)},
    ),
    "triangles of matrices of open size below it": (
        "g (float[n, m] x) => (float[n, m] y) <int64 k = {-1}> { y = Trilu <upper = 0> (x, k) }",
        {"x": np.arange(1, 13, dtype=np.float32).reshape(4, 3)},
    ),
    "a grid from matrices of open size and the sizes of a picture": (
        "g (float[n, r, c] x, int64[4] s) => (float[n, h, w, r] y) { y = AffineGrid (x, s) }",
        {"x": np.float32([[[1, 0.5, 2], [-0.5, 1, 3]]]), "s": np.array([1, 3, 2, 5])},
    ),
    "a grid from matrices of open size and the sizes of a volume": (
        "g (float[n, r, c] x, int64[5] s) => (float[n, d, h, w, r] y) { y = AffineGrid <align_corners = 1> (x, s) }",
        {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5, "s": np.array([2, 1, 3, 2, 4])},
    ),
}


OPSET = {
    "groups of an open number of channels, with a scale each": 21,
    "a grid from matrices of open size and the sizes of a picture": 20,
    "a grid from matrices of open size and the sizes of a volume": 20,
    "before opset 11 the nearest element is the next where an axis shrinks": 10,
    "also if the scales are operands": 10,
}
"""The opset of cases that do not use opset 19."""


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
@pytest.mark.parametrize("name", CASES)
def test_an_exported_form_matches_onnx_runtime(name: str, backends: tuple[str, ...]) -> None:
    text, feed = CASES[name]
    imported = f'<ir_version: 10, opset_import: ["" : {OPSET.get(name, 19)}]>'
    content = onnx.parser.parse_model(f"{imported} {text}").SerializeToString()
    session = precise_session(content)
    found = onert.Execution(onert.compile(onert.load(content), backends=backends)).run(dict(feed))
    for mine, theirs in zip(found.values(), session.run(None, feed), strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        assert np.allclose(mine, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_a_slice_end_sized_by_an_input_cuts_at_every_size() -> None:
    text = (
        "g (float[n, m] x, int64[n] e) => (float[a, b] y) "
        "<int64[1] s = {0}, int64[1] t = {1}> { y = Slice (x, s, e, t) }"
    )
    content = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 19]> {text}').SerializeToString()
    execution = onert.Execution(onert.compile(onert.load(content)))
    for rows, size in ((1, 8), (1, 4), (7, 8), (2, 3)):
        x = np.arange(rows * size, dtype=np.float32).reshape(rows, size)
        np.testing.assert_array_equal(execution.run({"x": x, "e": np.full(rows, 2)})["y"], x[:, :2])


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
def test_nonzero_of_a_scalar_has_no_coordinates(backends: tuple[str, ...]) -> None:
    text = '<ir_version: 9, opset_import: ["" : 19]> g (float x) => (int64[a, b] y) { y = NonZero (x) }'
    package = onert.load(onnx.parser.parse_model(text).SerializeToString())
    execution = onert.Execution(onert.compile(package, backends=backends))
    for number, count in ((3, 1), (0, 0)):
        assert execution.run({"x": np.array(number, np.float32)})["y"].shape == (0, count)


@pytest.mark.parametrize(("value", "same"), [("int64[1] {1}", True), ("float[1] {0}", False)], ids=["ones", "zeros"])
def test_nonzero_of_a_vector_of_ones_is_a_range(value: str, same: bool) -> None:
    """PyTorch's older exporter writes ranges of indices this way."""
    text = (
        '<ir_version: 9, opset_import: ["" : 19]> g (float[n, 3] x) => (float[a, 3] y) <int64[1] c = {1}> {'
        f"s = Shape <start = 0, end = 1> (x) v = ConstantOfShape <value = {value}> (s) i = NonZero (v) "
        "p = Transpose <perm = [1, 0]> (i) j = Squeeze (p, c) g = Gather <axis = 0> (x, j) y = Neg (g) }"
    )
    package = onert.load(onnx.parser.parse_model(text).SerializeToString())
    kinds = {type(operation.op) for operation in package.models[0].subgraphs[0].operations}
    assert (Range in kinds, Where in kinds) == (same, not same)
    execution = onert.Execution(onert.compile(package))
    for rows in (4, 7, 0, 9):
        x = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(execution.run({"x": x})["y"], -x if same else -x[:0])


def test_repeats_by_a_one_hot_of_a_length_are_arithmetic_on_shapes() -> None:
    """`repeat_interleave` by a length of an input, as PyTorch's older exporter writes it."""
    text = (
        '<ir_version: 9, opset_import: ["" : 17]> g (float[n, 3] x, float[2, 1, 3] z) => (float[2, m, 3] y) '
        "<int64[1] one = {1}, int64 depth = {3}> { s = Shape <start = 0, end = 1> (x) v = Concat <axis = 0> (one, s) "
        "r = OneHot (one, depth, v) q = Squeeze (r) t = Tile (z, q) y = Neg (t) }"
    )
    z = np.random.default_rng(3).normal(size=(2, 1, 3)).astype(np.float32)
    package = onert.load(onnx.parser.parse_model(text).SerializeToString())
    assert OneHot not in {type(operation.op) for operation in package.models[0].subgraphs[0].operations}
    execution = onert.Execution(onert.compile(package))
    for rows in (4, 7, 2, 9):
        found = execution.run({"x": np.zeros((rows, 3), np.float32), "z": z})["y"]
        np.testing.assert_array_equal(found, -np.tile(z, (1, rows, 1)))
    assert execution.program.stretch is not None
