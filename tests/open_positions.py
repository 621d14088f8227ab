"""ONNX layers that compute with positions, whose number depends on the length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto
from open_layers import Dims, Layer, layer, node

FEATURES = 12
FREQUENCIES = (1 / 10 ** (np.arange(6) / 3)).astype(np.float32)
NUMBERS: Mapping[str, Any] = {
    "zero": np.int64(0),
    "one": np.int64(1),
    "axis": np.int64([1]),
    "before": np.int64([0]),
    "f": FREQUENCIES,
    "column": FREQUENCIES[:, None],
}


def _length(of: str, output: str) -> list[NodeProto]:
    """The middle one of three dimensions as a scalar."""
    return [node("Shape", of, f"{output}s"), node("Gather", f"{output}s one", output, axis=0)]


def _positions(output: str) -> list[NodeProto]:
    """The positions of a sequence from 0 on."""
    return [*_length("x", "t"), node("Range", "zero t one", output)]


def _turned(places: str) -> list[NodeProto]:
    """Angles from int64 positions, in rows; the input rotated by them is the output."""
    return [
        node("Cast", places, "real", to=TensorProto.FLOAT),
        node("Unsqueeze", "real axis", "rows"),
        node("Mul", "rows f", "half"),
        *_by_angles(),
    ]


def _by_angles() -> list[NodeProto]:
    return [
        node("Concat", "half half", "angles", axis=-1),
        node("Cos", "angles", "cos"),
        node("Sin", "angles", "sin"),
        node("Mul", "x cos", "u"),
        node("Add", "u sin"),
    ]


def _rotary(nodes: Sequence[NodeProto], **inputs: Dims) -> Layer:
    return layer(nodes, inputs, NUMBERS)


def rotary() -> Layer:
    nodes = [*_positions("p"), *_turned("p")]
    return _rotary(nodes, x=["n", "t", FEATURES])


def rotary_behind() -> Layer:
    """Positions that follow those of a past."""
    nodes = [
        *_length("x", "t"),
        *_length("z", "past"),
        node("Add", "past t", "end"),
        node("Range", "past end one", "p"),
        *_turned("p"),
    ]
    return _rotary(nodes, x=["n", "t", FEATURES], z=["n", "p", FEATURES])


def rotary_shifted() -> Layer:
    """The same as a sum, `arange(t) + past`."""
    nodes = [
        *_positions("o"),
        *_length("z", "past"),
        node("Add", "o past", "p"),
        *_turned("p"),
    ]
    return _rotary(nodes, x=["n", "t", FEATURES], z=["n", "p", FEATURES])


def rotary_of_one() -> Layer:
    """The position of a single token."""
    nodes = [*_length("z", "past"), node("Unsqueeze", "past before", "p"), *_turned("p")]
    return _rotary(nodes, x=["n", 1, FEATURES], z=["n", "p", FEATURES])


def rotary_products() -> Layer:
    """Angles as matrix products, as in Llama."""
    nodes = [
        *_positions("p"),
        node("Cast", "p", "real", to=TensorProto.FLOAT),
        node("Unsqueeze", "real before", "row"),
        node("MatMul", "column row", "m"),
        node("Transpose", "m", "half", perm=[1, 0]),
        *_by_angles(),
    ]
    return _rotary(nodes, x=["n", "t", FEATURES])


def _distances(output: str) -> list[NodeProto]:
    return [
        *_positions("p"),
        node("Unsqueeze", "p before", "row"),
        node("Unsqueeze", "p axis", "below"),
        node("Sub", "row below", output),
    ]


def buckets() -> Layer:
    """T5's relative positions: exact distances below 4, logarithmic ones beyond."""
    nodes = [
        *_distances("d"),
        node("Abs", "d", "far"),
        node("Cast", "far", "real", to=TensorProto.FLOAT),
        node("Div", "real four", "quarter"),
        node("Log", "quarter", "log"),
        node("Mul", "log scale", "scaled"),
        node("Cast", "scaled", "more", to=TensorProto.INT64),
        node("Add", "more exact", "large"),
        node("Min", "large last", "bounded"),
        node("Less", "far exact", "near"),
        node("Where", "near far bounded", "bucket"),
        node("Gather", "bias bucket", "found", axis=0),
        node("Transpose", "found", "heads", perm=[2, 0, 1]),
        node("MatMul", "x w", "q"),
        node("Unsqueeze", "q axis", "wide"),
        node("MatMul", "heads wide"),
    ]
    numbers = {
        "four": np.float32(4),
        "scale": np.float32(1.7),
        "exact": np.int64(4),
        "last": np.int64(9),
        "bias": np.linspace(-1, 1, 30, dtype=np.float32).reshape(10, 3),
        "w": np.eye(FEATURES, 8, dtype=np.float32),
    }
    return layer(nodes, {"x": ["n", "t", FEATURES]}, NUMBERS | numbers)


def causal() -> Layer:
    """A mask of minus infinity above the diagonal."""
    nodes = [
        *_length("x", "t"),
        node("Unsqueeze", "t before", "size"),
        node("Concat", "size size", "square", axis=0),
        node("Expand", "none square", "full"),
        node("Trilu", "full one", "mask", upper=1),
        node("Add", "x mask", "scores"),
        node("Softmax", "scores", axis=-1),
    ]
    return layer(nodes, {"x": ["n", "t", "t"]}, NUMBERS | {"none": np.float32(-np.inf)})


def experts() -> Layer:
    """The two best of four gates, scattered to their places."""
    nodes = [
        node("MatMul", "x w", "gates"),
        node("TopK", "gates two", "best", axis=-1),
        node("Mul", "gates nothing", "empty"),
        node("ScatterElements", "empty places best", axis=-1),
    ]
    nodes[1].output.append("places")
    weights = np.random.default_rng(3).normal(size=(FEATURES, 4)).astype(np.float32)
    numbers = {"w": weights, "two": np.int64([2]), "nothing": np.float32(0)}
    return layer(nodes, {"x": ["n", "t", FEATURES]}, numbers)


POSITIONS: Mapping[str, Layer] = {
    "rotary": rotary(),
    "rotary behind a past": rotary_behind(),
    "rotary, shifted": rotary_shifted(),
    "rotary of one": rotary_of_one(),
    "rotary by products": rotary_products(),
    "relative buckets": buckets(),
    "causal mask": causal(),
    "experts": experts(),
}
