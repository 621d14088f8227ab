"""ONNX nodes with dynamic sizes give the results of each static size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert

parser = pytest.importorskip("onnx.parser", reason="the package onnx writes the models")
Array = np.ndarray[Any, np.dtype[Any]]


def _picked(x: Array, i: Array, batch: int) -> Array:
    """GatherND of each batch item separately."""
    if batch == 0:
        out: Array = x[tuple(np.moveaxis(i, -1, 0))]
        return out
    return np.stack([_picked(a, b, batch - 1) for a, b in zip(x, i, strict=True)])


def _resized(x: Array, height: int, width: int) -> Array:
    """The pixel that contains each output pixel's centre, counted from the border."""
    rows, columns = ((np.arange(n) + 0.5) * old / n for n, old in ((height, x.shape[2]), (width, x.shape[3])))
    out: Array = x[:, :, rows.astype(int)][:, :, :, columns.astype(int)]
    return out


def _correlated(x: Array, filters: Array) -> Array:
    """A convolution in groups, of every second row, with gaps of one column, and with zeros around."""
    count, inner, high, wide = filters.shape
    padded = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)])
    rows, columns = (padded.shape[2] - high) // 2 + 1, padded.shape[3] - 2 * (wide - 1)
    out = np.zeros((len(x), count, rows, columns), np.float32)
    for number, channel, row, column in np.ndindex(filters.shape):
        source = number // (count * inner // x.shape[1]) * inner + channel
        part = padded[:, source, row : row + 2 * rows - 1 : 2, 2 * column : 2 * column + columns]
        out[:, number] += filters[number, channel, row, column] * part
    return out


RESIZE = (
    "(float[1,2,h,w] x, int64[4] i) => (float[a,b,c,d] y) <float[0] none = {}> { y = Resize<mode = 'nearest', "
    "nearest_mode = 'floor', coordinate_transformation_mode = 'tf_half_pixel_for_nn'>(x, none, none, i) }"
).replace("'", '"')
CORRELATE = "(float[1,4,h,w] x, float[m,%d,r,s] i) => (float[a,b,c,d] y) { y = Conv<%s>(x, i) }"
_APART = "group = %d, strides = [2, 1], dilations = [1, 2], pads = [1, 0, 0, 2]"
GATHER = "(float[%s] x, int64[%s] i) => (float[%s] y) { y = GatherND<batch_dims = %d>(x, i) }"
CASES: dict[str, tuple[str, Callable[[Array, Array], Array], list[tuple[tuple[int, ...], Array]]]] = {
    "GatherND in batches": (
        GATHER % ("n,m,4", "n,k,1", "a,b,c", 1),
        lambda x, i: _picked(x, i, 1),
        [((2, 5, 4), np.array([[[0], [-1], [3]]] * 2)), ((1, 1, 4), np.zeros((1, 7, 1), np.int64))],
    ),
    "GatherND in batches of batches": (
        GATHER % ("n,m,k,4", "n,m,1", "a,b,c", 2),
        lambda x, i: _picked(x, i, 2),
        [((2, 3, 5, 4), np.array([[[0], [4], [2]]] * 2)), ((1, 1, 2, 4), np.array([[[-1]]]))],
    ),
    "GatherND of single elements in batches": (
        GATHER % ("n,m,k", "n,q,2", "a,b", 1),
        lambda x, i: _picked(x, i, 1),
        [((2, 5, 4), np.array([[[0, 3]], [[4, 1]]])), ((1, 2, 3), np.array([[[1, 1], [0, 2]]]))],
    ),
    "Conv with filters of any size": (
        CORRELATE % (2, _APART % 2),
        _correlated,
        [((1, 4, 7, 9), np.float32(np.ones((m, 2, r, s)).cumsum(2))) for m, r, s in ((2, 3, 3), (6, 1, 4), (2, 7, 2))],
    ),
    "Conv with a filter of any size for each channel": (
        CORRELATE % (1, _APART % 4),
        _correlated,
        [((1, 4, n, 9), np.float32(np.ones((4, 1, r, s)).cumsum(0))) for n, r, s in ((7, 3, 3), (5, 5, 4), (8, 2, 2))],
    ),
    "Resize as TensorFlow picks pixels": (
        RESIZE,
        lambda x, i: _resized(x, int(i[2]), int(i[3])),
        [((1, 2, 5, 7), np.array([1, 2, *size])) for size in ((9, 4), (5, 7), (3, 20))],
    ),
}


@pytest.mark.parametrize(("text", "meant", "given"), CASES.values(), ids=CASES)
def test_a_node_of_dynamic_size_matches_each_static_size(
    text: str, meant: Callable[[Array, Array], Array], given: list[tuple[tuple[int, ...], Array]]
) -> None:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 12]> g {text}')
    session = onert.InferenceSession(model.SerializeToString())
    for shape, i in given:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        (y,) = session.run(None, {"x": x, "i": i if i.dtype == np.float32 else i.astype(np.int64)})
        assert y.tolist() == meant(x, i).tolist()


def test_a_filter_of_unknown_size_cannot_determine_the_padding() -> None:
    text = CORRELATE % (4, 'auto_pad = "SAME_UPPER"')
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 12]> g {text}')
    with pytest.raises(onert.OnertError, match="its size determines padding"):
        onert.load(model.SerializeToString())
