"""Operators of com.microsoft that ONNX Runtime lacks on CPUs, checked against their formulas in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onert.ir import Array
from onert.runtime.session import Backend

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

DRAW = np.random.default_rng(5)


def floats(*shape: int) -> Array:
    return DRAW.standard_normal(shape).astype(np.float32)


def convolved(x: Array, weight: Array, bias: Array, more: Array) -> Array:
    """A 3x3 convolution, padded by one, channels last, followed by ReLU."""
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    _, h, w, _ = x.shape
    y = sum(wide[:, i : i + h, j : j + w] @ weight[:, :, i, j].T for i in range(3) for j in range(3))
    out: Array = np.maximum(y + bias + more, 0)
    return out


def by_groups(x: Array, gamma: Array, beta: Array) -> Array:
    """Group normalisation with two groups of the last axis's channels, then SiLU."""
    parted = x.reshape(*x.shape[:-1], 2, -1)
    mean, variance = (f((1, 2, 4), keepdims=True) for f in (parted.mean, parted.var))
    y = ((parted - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta
    out: Array = y / (1 + np.exp(-y))
    return out


def gelu(x: Array) -> Array:
    return x * np.vectorize(lambda v: 0.5 + 0.5 * math.erf(v / math.sqrt(2)))(x)


def fast_gelu(x: Array) -> Array:
    out: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return out


def skipped(x: Array, gamma: Array, beta: Array, skip: Array, bias: Array) -> list[Array]:
    total = x + skip[:, None, None] + bias
    return [by_groups(total, gamma, beta), total]


def octets(kind: type, *shape: int) -> Array:
    return DRAW.integers(0, 100, shape).astype(kind)


PICTURE = floats(2, 4, 5, 6)
GROUPED = {"groups": 2, "activation": 1, "channels_last": 1}
CASES: dict[str, tuple[tuple[Array, ...], dict[str, Any], Callable[..., Array | list[Array]]]] = {
    "NhwcFusedConv": (
        (PICTURE, floats(3, 6, 3, 3), floats(3), floats(2, 4, 5, 3)),
        {"pads": [1, 1, 1, 1], "activation": "Relu"},
        convolved,
    ),
    "NhwcConv": (
        (np.abs(PICTURE), np.abs(floats(3, 6, 3, 3)), np.abs(floats(3))),
        {"pads": [1, 1, 1, 1]},
        lambda x, weight, bias: convolved(x, weight, bias, np.zeros(1)),
    ),
    "NhwcConv with filters like the input": (
        (np.abs(PICTURE), np.abs(floats(3, 3, 3, 6)), np.abs(floats(3))),
        {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]},
        lambda x, weight, bias: convolved(x, weight.transpose(0, 3, 1, 2), bias, np.zeros(1)),
    ),
    "NhwcConv with three channels": (
        (np.abs(PICTURE[..., :3]), np.abs(floats(2, 3, 3, 3)), np.abs(floats(2))),
        {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]},
        lambda x, weight, bias: convolved(x, weight.transpose(0, 3, 1, 2), bias, np.zeros(1)),
    ),
    "GroupNorm": ((PICTURE, floats(6), floats(6)), GROUPED, by_groups),
    "SkipGroupNorm": ((PICTURE, floats(6), floats(6), floats(2, 6), floats(6)), GROUPED, skipped),
    "BiasSplitGelu": (
        (floats(2, 3, 8), floats(8)),
        {},
        lambda x, bias: (x + bias)[..., :4] * gelu((x + bias)[..., 4:]),
    ),
    "GemmFastGelu": ((floats(3, 4), floats(4, 5), floats(5)), {}, lambda x, w, bias: fast_gelu(x @ w + bias)),
    "MulInteger": (
        (octets(np.uint8, 2, 3), np.uint8(9), octets(np.int8, 3), np.int8(-4)),
        {},
        lambda a, zero_a, b, zero_b: (a.astype(np.int32) - zero_a) * (b.astype(np.int32) - zero_b),
    ),
    "ReduceSumInteger": (
        (octets(np.uint8, 2, 3, 4),),
        {"axes": [1], "keepdims": 0},
        lambda x: x.astype(np.int32).sum(1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_matches_its_formula(name: str) -> None:
    inputs, attributes, formula = CASES[name]
    h = onnx.helper
    wanted = formula(*inputs)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    outputs = [f"y{at}" for at in range(len(wanted))]
    feed = {f"x{at}": np.asarray(x) for at, x in enumerate(inputs)}
    node = h.make_node(name.partition(" ")[0], list(feed), outputs, domain="com.microsoft", **attributes)
    ends = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feed.items()]
    graph = h.make_graph([node], "one", ends, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8)
    for found, expected in zip(Backend.run_model(model, feed), wanted, strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
