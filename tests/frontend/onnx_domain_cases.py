"""Nodes of com.microsoft and ai.onnx.ml, with inputs from a fixed random seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

MICROSOFT, LEARNING = "com.microsoft", "ai.onnx.ml"
_DRAW = np.random.default_rng(11)


@frozen
class Constant:
    """An input that is a constant of the model."""

    array: Any


def floats(*shape: int) -> Any:
    return _DRAW.standard_normal(shape).astype(np.float32)


def octets(*shape: int, kind: type = np.uint8) -> Any:
    low, high = (0, 256) if kind is np.uint8 else (-128, 128)
    return _DRAW.integers(low, high, shape).astype(kind)


def _s(value: float) -> Any:
    return np.float32(value)


_POSITIONS = np.arange(16)[:, None] / (10.0 ** np.arange(4))
_COS, _SIN = np.cos(_POSITIONS).astype(np.float32), np.sin(_POSITIONS).astype(np.float32)
_QUANTIZED = (octets(2, 3), _s(0.02), np.uint8(120))
_FUSED: dict[str, dict[str, float]] = {
    "Elu": {"activation_alpha": 0.7},
    "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
    "Selu": {"activation_alpha": 1.6, "activation_gamma": 1.1},
    "Softplus": {},
    "Softsign": {},
    "ThresholdedRelu": {"activation_alpha": 0.3},
}
_LINEAR = {"coefficients": [1.0, -2.0, 0.5, 0.1, 0.2, 0.3], "intercepts": [0.1, -0.1]}
CASES: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    (MICROSOFT, "FusedMatMul", (floats(2, 4, 3), floats(2, 4, 5)), {"transA": 1, "alpha": 0.5}, 1),
    (MICROSOFT, "FusedGemm", (floats(2, 3), floats(3, 4), floats(4)), {"activation": "Relu"}, 1),
    (
        MICROSOFT,
        "FusedConv",
        (floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3)),
        {"activation": "Tanh", "pads": [1, 1, 1, 1]},
        1,
    ),
    (MICROSOFT, "BiasGelu", (floats(2, 3), floats(3)), {}, 1),
    (MICROSOFT, "FastGelu", (floats(2, 3), floats(3)), {}, 1),
    (MICROSOFT, "Gelu", (floats(2, 3),), {}, 1),
    (MICROSOFT, "QuickGelu", (floats(2, 3),), {"alpha": 1.5}, 1),
    (
        MICROSOFT,
        "SkipLayerNormalization",
        (floats(2, 3, 4), floats(2, 3, 4), floats(4), floats(4), floats(4)),
        {"epsilon": 1e-3},
        1,
    ),
    (
        MICROSOFT,
        "SkipSimplifiedLayerNormalization",
        (floats(2, 3, 4), floats(2, 3, 4), floats(4)),
        {"epsilon": 1e-3},
        1,
    ),
    ("", "SimplifiedLayerNormalization", (floats(2, 3, 4), floats(4)), {"epsilon": 1e-3}, 1),
    (MICROSOFT, "RotaryEmbedding", (floats(2, 3, 5, 8), np.int64([2]), _COS, _SIN), {}, 1),
    (
        MICROSOFT,
        "RotaryEmbedding",
        (floats(2, 5, 16), np.int64([[3, 4, 5, 6, 7]] * 2), _COS, _SIN),
        {"interleaved": 1},
        1,
    ),
    (MICROSOFT, "QLinearAdd", (*_QUANTIZED, octets(2, 3), _s(0.03), np.uint8(100), _s(0.05), np.uint8(110)), {}, 1),
    (MICROSOFT, "QLinearMul", (*_QUANTIZED, octets(2, 3), _s(0.03), np.uint8(100), _s(0.05), np.uint8(110)), {}, 1),
    (MICROSOFT, "QLinearSigmoid", (*_QUANTIZED, _s(1 / 256), np.uint8(0)), {}, 1),
    (MICROSOFT, "QLinearLeakyRelu", (*_QUANTIZED, _s(0.02), np.uint8(90)), {"alpha": 0.2}, 1),
    (
        MICROSOFT,
        "MatMulIntegerToFloat",
        (octets(2, 4), octets(4, 3), _s(0.1), _s(0.2), np.uint8(3), np.uint8(9), floats(3)),
        {},
        1,
    ),
    (MICROSOFT, "DynamicQuantizeMatMul", (floats(2, 4), octets(4, 3), _s(0.2), np.uint8(9), floats(3)), {}, 1),
    (LEARNING, "LinearRegressor", (floats(4, 3),), {**_LINEAR, "targets": 2}, 1),
    (
        LEARNING,
        "LinearClassifier",
        (floats(4, 3),),
        {**_LINEAR, "classlabels_ints": [5, 7], "post_transform": "SOFTMAX"},
        2,
    ),
    (
        LEARNING,
        "LinearClassifier",
        (floats(4, 3),),
        {**_LINEAR, "coefficients": [*_LINEAR["coefficients"], 7.0, 8.0, 9.0, -5.0], "classlabels_ints": [5, 7]},
        2,
    ),
    (LEARNING, "Scaler", (floats(4, 3),), {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, 1.0]}, 1),
    *((LEARNING, "Normalizer", (floats(4, 3),), {"norm": norm}, 1) for norm in ("MAX", "L1", "L2")),
    (
        LEARNING,
        "SVMRegressor",
        (floats(4, 3),),
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
        (MICROSOFT, "FusedGemm", (floats(4, 3), floats(3, 4)), {"activation": name, **numbers}, 1)
        for name, numbers in _FUSED.items()
    ),
]


_N, _HEADS = None, {"num_heads": 2}
_Q, _K, _PAST = floats(2, 3, 8), floats(2, 5, 8), floats(2, 2, 2, 4)
_BITS = _DRAW.random((2, 3, 5)) > 0.3


def _i(*values: int) -> Any:
    return np.int32(values)


def _grouped(
    new: int, past: int | None, lengths: tuple[int, int], most: int, *more: Any, packed: bool = False, **attributes: Any
) -> tuple[str, str, tuple[Any, ...], dict[str, Any], int]:
    """GroupQueryAttention of two sequences, four query heads and two key heads with 16 features.

    Places behind the new tokens are 0: ONNX Runtime fills them so, unless the caches are used in place.
    """
    q, k, v = floats(2, new, 64), floats(2, new, 32), floats(2, new, 32)
    given = (np.concatenate([q, k, v], 2), _N, _N) if packed else (q, k, v)
    seen = (_N, _N) if past is None else (floats(2, 2, past, 16), floats(2, 2, past, 16))
    for cache in seen if past is not None else ():
        for own, last in zip(cache, lengths, strict=True):
            own[:, new if most == new else last + 1 :] = 0
    inputs = (*given, *seen, _i(*lengths), np.int32(most), *more)
    results = 4 if attributes.get("qk_output") else 3
    return MICROSOFT, "GroupQueryAttention", inputs, {"num_heads": 4, "kv_num_heads": 2, **attributes}, results


_TURNS = (np.cos(floats(20, 8)), np.sin(floats(20, 8)))
_EXPERTS = (floats(4, 6, 8), floats(4, 6), floats(4, 8, 6), floats(4, 8))
_STORED = tuple(
    Constant(x)
    for x in (octets(4, 64, 16), np.abs(floats(4, 64)) / 99, floats(4, 64), octets(4, 32, 16), np.abs(floats(4, 32)))
)
_TO = (_s(0.05), np.uint8(110))
_IMAGE = (octets(1, 3, 6, 6), _s(0.02), np.uint8(120))
_VECTORS = {"support_vectors": floats(18).tolist(), "kernel_params": [0.5, 0.1, 2.0]}
_CATEGORIES = {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_string": "z"}
_TABLE_OF = {"block_size": 16, "quantize_axis": 1, "gather_axis": 0}
MORE: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    *(
        (MICROSOFT, "MultiHeadAttention", inputs, {**_HEADS, **attributes}, 3 if len(inputs) > 6 else 1)
        for inputs, attributes in (
            ((_Q, _K, floats(2, 5, 6), floats(22)), {"scale": 0.3}),
            ((_Q, _K, _K, _N, _i(3, 5)), {}),
            ((_Q, _K, _K, _N, _BITS[:, 0].astype(np.int32)), {"mask_filter_value": -5.0}),
            ((_Q, _K, _K, _N, _BITS.astype(np.int32), floats(1, 2, 3, 5)), {}),
            ((_Q, _Q, _Q, _N, _N, floats(2, 1, 3, 5), _PAST, _PAST), {"unidirectional": 1}),
            ((_Q, floats(2, 2, 5, 4), floats(2, 2, 5, 4), floats(24)), {}),
        )
    ),
    *(
        (MICROSOFT, "Attention", (floats(2, 3, 6), floats(6, 24), floats(24), *more), {**_HEADS, **attributes}, results)
        for more, attributes, results in (
            ((_N, floats(2, 2, 2, 3, 4)), {"unidirectional": 1}, 2),
            ((_i(2, 3),), {"unidirectional": 1}, 1),
            ((_i(2, 3, 1, 0),), {}, 1),
            ((_BITS[:, :, :3].astype(np.int32), _N, floats(2, 2, 3, 3)), {}, 1),
        )
    ),
    (
        MICROSOFT,
        "Attention",
        (floats(2, 3, 6), floats(6, 20), floats(20)),
        {**_HEADS, "qkv_hidden_sizes": [8, 8, 4]},
        1,
    ),
    (
        MICROSOFT,
        "QAttention",
        (
            octets(2, 3, 6),
            octets(6, 24),
            floats(24),
            _s(0.02),
            _s(0.03),
            _N,
            np.uint8(120),
            np.uint8(110),
            floats(2, 2, 2, 3, 4),
        ),
        {**_HEADS, "unidirectional": 1},
        2,
    ),
    _grouped(3, 0, (2, 2), 3),
    _grouped(3, 5, (1, 2), 3, packed=True),
    _grouped(3, None, (2, 2), 3, causal=0),
    _grouped(1, 5, (3, 5), 6, *_TURNS, do_rotary=1),
    _grouped(3, 0, (2, 2), 3, *_TURNS, do_rotary=1, rotary_interleaved=1, local_window_size=2),
    _grouped(1, 8, (3, 5), 6, softcap=2.0, smooth_softmax=1),
    _grouped(1, 5, (5, 5), 6, _N, _N, _N, floats(1, 4, 1, 6), floats(4), scale=0.4, qk_output=1),
    _grouped(1, 8, (3, 5), 6, _N, _N, _N, floats(1, 4, 1, 6), smooth_softmax=1),
    (
        MICROSOFT,
        "EmbedLayerNormalization",
        (
            _i([1, 2, 6], [0, 3, 3]),
            _i([0, 1, 1], [1, 1, 0]),
            floats(7, 6),
            floats(9, 6),
            floats(2, 6),
            floats(6),
            floats(6),
            _i([1, 1, 0], [1, 1, 1]),
        ),
        {"epsilon": 1e-5},
        3,
    ),
    *(
        (
            MICROSOFT,
            "QEmbedLayerNormalization",
            (
                _i([1, 2, 6], [0, 3, 3]),
                segments and _i([0, 1, 1], [1, 1, 0]),
                Constant(octets(7, 6)),
                octets(9, 6),
                segments and octets(2, 6),
                octets(6),
                octets(6),
                _i([1, 1, 0], [1, 1, 1]),
                *(np.float32(0.02), np.float32(0.03), segments and np.float32(0.01)),
                *(np.float32(0.005), np.float32(0.04)),
                *(np.uint8(120), np.uint8(130), segments and np.uint8(128), np.uint8(7), np.uint8(100)),
            ),
            {"epsilon": 1e-5},
            2,
        )
        for segments in (True, None)
    ),
    *(
        (
            MICROSOFT,
            "MoE",
            (floats(5, 8), floats(5, 4), *_EXPERTS),
            {"k": 2, "activation_type": kind, "normalize_routing_weights": whole},
            1,
        )
        for kind, whole in (("relu", 0), ("gelu", 1), ("silu", 0), ("identity", 1))
    ),
    (
        MICROSOFT,
        "MoE",
        (floats(1, 5, 6), floats(5, 4), floats(4, 8, 6), floats(4, 8), floats(4, 6, 4)),
        {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "activation_beta": 1.0, "swiglu_limit": 1.0},
        1,
    ),
    (
        MICROSOFT,
        "QMoE",
        (floats(5, 32), floats(5, 4), *_STORED),
        {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1},
        1,
    ),
    (MICROSOFT, "GatherBlockQuantized", (octets(5, 16), np.int64([[0, -1]]), floats(5, 2), octets(5, 1)), _TABLE_OF, 1),
    (MICROSOFT, "GatherBlockQuantized", (octets(5, 32), np.int64([4, 2]), floats(5, 2)), {**_TABLE_OF, "bits": 8}, 1),
    (
        MICROSOFT,
        "QGemm",
        (
            *_IMAGE[:0],
            octets(3, 4),
            *_IMAGE[1:],
            octets(4, 5),
            _s(0.03),
            np.uint8(9),
            np.arange(5, dtype=np.int32),
            *_TO,
        ),
        {},
        1,
    ),
    (
        MICROSOFT,
        "QGemm",
        (octets(4, 3), *_IMAGE[1:], octets(5, 4), np.abs(floats(5)), octets(5)),
        {"transA": 1, "transB": 1, "alpha": 0.5},
        1,
    ),
    (MICROSOFT, "QLinearAveragePool", (*_IMAGE, *_TO), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 1),
    (MICROSOFT, "QLinearAveragePool", (*_IMAGE, *_TO), {"kernel_shape": [3, 3], "channels_last": 1}, 1),
    (
        MICROSOFT,
        "QLinearConv",
        (*_IMAGE, octets(4, 6, 3, 3), *_IMAGE[1:], _s(0.5), np.uint8(9)),
        {"channels_last": 1},
        1,
    ),
    (MICROSOFT, "QLinearSoftmax", (*_QUANTIZED, _s(1 / 256), np.uint8(0)), {"opset": 13, "axis": -1}, 1),
    (MICROSOFT, "QLinearWhere", (_BITS[0, :2, :3], *_QUANTIZED, *_QUANTIZED, *_TO), {}, 1),
    (MICROSOFT, "CDist", (floats(3, 4), floats(5, 4)), {"metric": "euclidean"}, 1),
    (MICROSOFT, "ExpandDims", (floats(3, 4), np.int32(1)), {}, 1),
    (MICROSOFT, "GatherND", (floats(3, 4), np.int64([[1], [0]])), {}, 1),
    (MICROSOFT, "GatedAdd", (floats(3, 4), floats(3, 4), floats(3, 1)), {}, 1),
    (MICROSOFT, "GridSample", (floats(1, 2, 5, 5), floats(1, 3, 3, 2)), {"mode": "bilinear", "align_corners": 1}, 1),
    (MICROSOFT, "MatMulInteger16", (np.int16([[1, -2]]), np.int16([[300], [400]])), {}, 1),
    (MICROSOFT, "NhwcMaxPool", (octets(1, 6, 6, 3),), {"kernel_shape": [2, 2], "strides": [2, 2]}, 1),
    (MICROSOFT, "Pad", (floats(3, 4), np.int64([0, 1, 1, 0]), _s(2)), {"mode": "constant"}, 1),
    (MICROSOFT, "Range", (_s(1), _s(5)), {}, 1),
    (MICROSOFT, "ScaledSiLU", (floats(3, 4),), {"alpha": 0.7}, 1),
    *(
        (
            LEARNING,
            "SVMClassifier",
            (floats(20, 3),),
            {
                **_VECTORS,
                "kernel_type": kind,
                "coefficients": floats(12).tolist()[: 6 * (count - 1)],
                "rho": [0.1, -0.1, 0.2][: count * (count - 1) // 2],
                "vectors_per_class": [6 // count] * count,
                "classlabels_ints": [7, 5, 6][:count],
                **(
                    {"prob_a": [-1.0, -0.5, -2.0][: 2 * count - 3], "prob_b": [0.1, 0.0, 0.3][: 2 * count - 3]}
                    if sure
                    else {}
                ),
                "post_transform": after,
            },
            2,
        )
        for kind, count, sure, after in (
            ("RBF", 2, False, "LOGISTIC"),
            ("RBF", 2, True, "NONE"),
            ("POLY", 3, False, "NONE"),
            ("SIGMOID", 3, True, "SOFTMAX"),
        )
    ),
    (LEARNING, "CategoryMapper", (np.int64([[1, 2], [5, 1]]),), _CATEGORIES, 1),
]

REFUSED = {
    "rotary": (
        MICROSOFT,
        "Attention",
        (floats(2, 3, 6), floats(6, 24), floats(24)),
        {**_HEADS, "do_rotary": 1},
        "attribute do_rotary",
    ),
    "features": (MICROSOFT, "Attention", (floats(2, 3, 6), floats(6, 25)), {**_HEADS}, "expected a sum of 25"),
    "mask": (MICROSOFT, "MultiHeadAttention", (_Q, _K, _K, _N, _i(1, 2, 3)), {**_HEADS}, "expected a length for each"),
    "experts": (MICROSOFT, "MoE", (floats(5, 8), floats(5, 4), *_EXPERTS), {"k": 5}, "k is 5, expected 1 to 4"),
    "activation": (
        MICROSOFT,
        "MoE",
        (floats(5, 8), floats(5, 4), *_EXPERTS),
        {"activation_type": "tan"},
        "activation_type is 'tan'",
    ),
    "blocks": (
        MICROSOFT,
        "GatherBlockQuantized",
        (octets(5, 16), np.int64([0]), floats(5, 3)),
        _TABLE_OF,
        "there are 3 scales",
    ),
    "vectors": (
        LEARNING,
        "SVMClassifier",
        (floats(4, 3),),
        {**_VECTORS, "vectors_per_class": [2, 2], "classlabels_ints": [1, 2], "rho": [0.0], "coefficients": [1.0]},
        "18 numbers, 1 coefficients and 1 offsets",
    ),
    "columns": (LEARNING, "ZipMap", (floats(4, 3),), {"classlabels_int64s": [3, 4]}, "there are 2 names"),
}
