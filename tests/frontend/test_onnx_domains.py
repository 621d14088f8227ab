"""Operators of com.microsoft and ai.onnx.ml give what ONNX Runtime gives, on numbers drawn once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.runtime.session import Backend

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is the peer")

MICROSOFT, LEARNING = "com.microsoft", "ai.onnx.ml"
_DRAW = np.random.default_rng(11)


def _f(*shape: int) -> Any:
    return _DRAW.standard_normal(shape).astype(np.float32)


def _b(*shape: int, kind: type = np.uint8) -> Any:
    low, high = (0, 256) if kind is np.uint8 else (-128, 128)
    return _DRAW.integers(low, high, shape).astype(kind)


def _s(value: float) -> Any:
    return np.float32(value)


_POSITIONS = np.arange(16)[:, None] / (10.0 ** np.arange(4))
_COS, _SIN = np.cos(_POSITIONS).astype(np.float32), np.sin(_POSITIONS).astype(np.float32)
_QUANTIZED = (_b(2, 3), _s(0.02), np.uint8(120))
_LEAST = {"nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"]}
_TREE = {
    **_LEAST,
    "nodes_treeids": [0] * 5,
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 2, 0, 0],
    "nodes_values": [0.1, 0.0, -0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0],
}


def _votes(side: str, targets: list[int], weights: list[float]) -> dict[str, Any]:
    return {
        f"{side}_treeids": [0] * 3,
        f"{side}_nodeids": [1, 3, 4],
        f"{side}_ids": targets,
        f"{side}_weights": weights,
    }


_X = np.concatenate([_f(6, 3), np.float32([[np.nan, 0, 1]])])
_LINEAR = {"coefficients": [1.0, -2.0, 0.5, 0.1, 0.2, 0.3], "intercepts": [0.1, -0.1]}
CASES: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    (MICROSOFT, "FusedMatMul", (_f(2, 4, 3), _f(2, 4, 5)), {"transA": 1, "alpha": 0.5}, 1),
    (MICROSOFT, "FusedGemm", (_f(2, 3), _f(3, 4), _f(4)), {"activation": "Relu"}, 1),
    (MICROSOFT, "FusedConv", (_f(1, 2, 5, 5), _f(3, 2, 3, 3), _f(3)), {"activation": "Tanh", "pads": [1, 1, 1, 1]}, 1),
    (MICROSOFT, "BiasGelu", (_f(2, 3), _f(3)), {}, 1),
    (MICROSOFT, "FastGelu", (_f(2, 3), _f(3)), {}, 1),
    (MICROSOFT, "Gelu", (_f(2, 3),), {}, 1),
    (MICROSOFT, "QuickGelu", (_f(2, 3),), {"alpha": 1.5}, 1),
    (MICROSOFT, "SkipLayerNormalization", (_f(2, 3, 4), _f(2, 3, 4), _f(4), _f(4), _f(4)), {"epsilon": 1e-3}, 1),
    (MICROSOFT, "SkipSimplifiedLayerNormalization", (_f(2, 3, 4), _f(2, 3, 4), _f(4)), {"epsilon": 1e-3}, 1),
    ("", "SimplifiedLayerNormalization", (_f(2, 3, 4), _f(4)), {"epsilon": 1e-3}, 1),
    (MICROSOFT, "RotaryEmbedding", (_f(2, 3, 5, 8), np.int64([2]), _COS, _SIN), {}, 1),
    (MICROSOFT, "RotaryEmbedding", (_f(2, 5, 16), np.int64([[3, 4, 5, 6, 7]] * 2), _COS, _SIN), {"interleaved": 1}, 1),
    (MICROSOFT, "QLinearAdd", (*_QUANTIZED, _b(2, 3), _s(0.03), np.uint8(100), _s(0.05), np.uint8(110)), {}, 1),
    (MICROSOFT, "QLinearMul", (*_QUANTIZED, _b(2, 3), _s(0.03), np.uint8(100), _s(0.05), np.uint8(110)), {}, 1),
    (MICROSOFT, "QLinearSigmoid", (*_QUANTIZED, _s(1 / 256), np.uint8(0)), {}, 1),
    (MICROSOFT, "QLinearLeakyRelu", (*_QUANTIZED, _s(0.02), np.uint8(90)), {"alpha": 0.2}, 1),
    (MICROSOFT, "MatMulIntegerToFloat", (_b(2, 4), _b(4, 3), _s(0.1), _s(0.2), np.uint8(3), np.uint8(9), _f(3)), {}, 1),
    (MICROSOFT, "DynamicQuantizeMatMul", (_f(2, 4), _b(4, 3), _s(0.2), np.uint8(9), _f(3)), {}, 1),
    (LEARNING, "LinearRegressor", (_f(4, 3),), {**_LINEAR, "targets": 2}, 1),
    (
        LEARNING,
        "LinearClassifier",
        (_f(4, 3),),
        {**_LINEAR, "classlabels_ints": [5, 7], "post_transform": "SOFTMAX"},
        2,
    ),
    (LEARNING, "Scaler", (_f(4, 3),), {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, 1.0]}, 1),
    *((LEARNING, "Normalizer", (_f(4, 3),), {"norm": norm}, 1) for norm in ("MAX", "L1", "L2")),
    (
        LEARNING,
        "SVMRegressor",
        (_f(4, 3),),
        {
            "coefficients": [1.0, -0.5],
            "support_vectors": [0.1, 0.2, 0.3, -0.4, 0.5, 0.6],
            "n_supports": 2,
            "rho": [0.3],
            "kernel_type": "RBF",
            "kernel_params": [0.7, 0.0, 3.0],
        },
        1,
    ),
    *(
        (
            LEARNING,
            "TreeEnsembleRegressor",
            (_X,),
            {**_TREE, **_votes("target", [0, 0, 1], [1.0, 2.0, 3.0]), "n_targets": 2, "aggregate_function": how},
            1,
        )
        for how in ("SUM", "AVERAGE", "MIN", "MAX")
    ),
    *(
        (
            LEARNING,
            "TreeEnsembleClassifier",
            (_X,),
            {**_TREE, **_votes("class", targets, weights), "classlabels_int64s": labels, "post_transform": after},
            2,
        )
        for targets, weights, labels, after in (
            ([0, 1, 2], [0.5, 0.25, 0.125], [3, 4, 5], "NONE"),
            ([0, 1, 2], [0.5, 0.25, 0.125], [3, 4, 5], "SOFTMAX"),
            ([0, 0, 0], [0.9, 0.2, 0.6], [0, 1], "NONE"),
            ([0, 0, 0], [0.9, -0.2, 0.6], [0, 1], "LOGISTIC"),
            ([1, 1, 1], [0.9, 0.2, 0.6], [0, 1], "NONE"),
            ([1, 1, 1], [0.9, -0.2, 0.6], [0, 1], "LOGISTIC"),
        )
    ),
]


@pytest.mark.parametrize(
    ("domain", "name", "inputs", "attributes", "results"),
    CASES,
    ids=[f"{at} {case[1]}" for at, case in enumerate(CASES)],
)
def test_results_are_onnx_runtimes(
    domain: str, name: str, inputs: tuple[Any, ...], attributes: dict[str, Any], results: int
) -> None:
    h = onnx.helper
    arrays = {f"x{at}": np.asarray(x) for at, x in enumerate(inputs)}
    outputs = [f"y{at}" for at in range(results)]
    node = h.make_node(name, list(arrays), outputs, domain=domain, **attributes)
    ends = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in arrays.items()]
    graph = h.make_graph([node], "one", ends, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [h.make_opsetid("", 17), h.make_opsetid(MICROSOFT, 1), h.make_opsetid(LEARNING, 3)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    theirs = onnxruntime.InferenceSession(model).run(None, arrays)
    mine = Backend.run_model(model, arrays)
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind in "iu":  # what is computed in float is a step apart at most, where it is a tie
            assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max() <= 1
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1.0 if a.dtype.kind in "iu" else 1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_a_few_bits_are_unpacked_as_onnx_runtime_does(bits: int, *, zeros: bool) -> None:
    h, k, n, block = onnx.helper, 40, 3, 16
    blocks = -(-k // block)
    weights = [("b", _b(n, blocks, block * bits // 8)), ("scales", np.abs(_f(n * blocks)))]
    if zeros:
        weights.append(("zeros", _b(n * -(-blocks * bits // 8))))
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights]
    names = ["x", *(name for name, _ in weights)]
    node = h.make_node("MatMulNBits", names, ["y"], domain=MICROSOFT, K=k, N=n, bits=bits, block_size=block)
    graph = h.make_graph(
        [node], "one", [h.make_tensor_value_info("x", 1, [2, k])], [onnx.ValueInfoProto(name="y")], tensors
    )
    opsets = [h.make_opsetid("", 17), h.make_opsetid(MICROSOFT, 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    feed = {"x": _f(2, k)}
    (theirs,) = onnxruntime.InferenceSession(model).run(None, feed)
    np.testing.assert_allclose(Backend.run_model(model, feed)[0], theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
