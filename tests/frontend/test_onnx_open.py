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


RESIZE = (
    "(float[1,2,h,w] x, int64[4] i) => (float[a,b,c,d] y) <float[0] none = {}> { y = Resize<mode = 'nearest', "
    "nearest_mode = 'floor', coordinate_transformation_mode = 'tf_half_pixel_for_nn'>(x, none, none, i) }"
).replace("'", '"')
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
        (y,) = session.run(None, {"x": x, "i": i.astype(np.int64)})
        assert y.tolist() == meant(x, i).tolist()
