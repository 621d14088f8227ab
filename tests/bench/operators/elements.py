"""Element-wise functions and conversions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .drawn import DRAW, Case, floats, integers, positive

_FUNCTIONS = [
    "Relu",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Exp",
    "Log",
    "Sqrt",
    "Reciprocal",
    "Abs",
    "Neg",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Asinh",
    "Atanh",
    "Softplus",
    "Softsign",
    "Elu",
    "Selu",
    "Celu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Gelu",
    "ThresholdedRelu",
    "Swish",
    "IsNaN",
    "IsInf",
    "Not",
    "Identity",
    "Shrink",
]


def pointwise() -> Iterator[Case]:
    kinds = _FUNCTIONS
    for kind in kinds:
        x = (
            integers("bool", 2, 64, 56, 56)
            if kind == "Not"
            else DRAW.uniform(0.01, 0.99, (64, 56, 56)).astype(np.float32)
        )
        yield f"{kind} 64x56x56", kind, [x], [], {}
    for kind in ("Sigmoid", "Tanh", "Erf", "Gelu", "Exp", "Relu", "Sqrt", "Neg", "Log"):
        yield f"{kind} 128x64", kind, [positive(128, 64)], [], {}
        if kind not in ("Erf", "Gelu"):
            yield f"{kind} f64 128x256", kind, [positive(128, 256).astype(np.float64)], [], {}
        yield f"{kind} f16 128x256", kind, [positive(128, 256).astype(np.float16)], [], {}
    for kind in ("Add", "Mul", "Sub", "Div", "Pow", "Min", "Max", "Mean", "PRelu"):
        yield f"{kind} 64x56x56", kind, [positive(64, 56, 56), positive(64, 56, 56)], [], {}
        yield f"{kind} 64x56x56 by channel", kind, [positive(64, 56, 56), positive(64, 1, 1)], [], {}
        yield f"{kind} 128x768 by row", kind, [positive(128, 768), positive(768)], [], {}
    yield "Pow 64x56x56 of 2", "Pow", [positive(64, 56, 56)], [np.float32(2)], {}
    yield "Pow 64x56x56 of 0.5", "Pow", [positive(64, 56, 56)], [np.float32(0.5)], {}
    yield "Pow 64x56x56 of 2.2", "Pow", [positive(64, 56, 56)], [np.float32(2.2)], {}
    yield "Add 128x1 + 1x512", "Add", [floats(128, 1), floats(1, 512)], [], {}
    yield "Add 8x1x64x64 + 1x16x64x1", "Add", [floats(8, 1, 64, 64), floats(1, 16, 64, 1)], [], {}
    for dtype in ("int32", "int64", "float64", "float16", "uint8"):
        for kind in ("Add", "Mul", "Sub", "Div", "Mod", "Max", "Pow"):
            if (dtype in ("uint8", "float16") and kind in ("Pow", "Mod")) or (kind == "Mod" and dtype == "float64"):
                continue
            yield (
                f"{kind} {dtype} 100x512",
                kind,
                [
                    integers("uint8", 9, 100, 512, low=1).astype(dtype),
                    integers("uint8", 5, 100, 512, low=1).astype(dtype),
                ],
                [],
                {},
            )
    yield "Mod fmod f32 100x512", "Mod", [positive(100, 512), positive(100, 512)], [], {"fmod": 1}
    for kind in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        for dtype in ("float32", "int64", "int32"):
            yield (
                f"{kind} {dtype} 100x512",
                kind,
                [integers("uint8", 9, 100, 512).astype(dtype), integers("uint8", 9, 100, 512).astype(dtype)],
                [],
                {},
            )
    yield "Greater f32 64x56x56 scalar", "Greater", [floats(64, 56, 56)], [np.float32(0.5)], {}
    for kind in ("And", "Or", "Xor"):
        yield f"{kind} 100x512", kind, [integers("bool", 2, 100, 512), integers("bool", 2, 100, 512)], [], {}
        yield (
            f"{kind} 1x1x512x512 row",
            kind,
            [integers("bool", 2, 1, 1, 512, 512), integers("bool", 2, 1, 1, 1, 512)],
            [],
            {},
        )
    for kind in ("BitwiseAnd", "BitwiseXor"):
        yield f"{kind} int32", kind, [integers("int32", 999, 100, 512), integers("int32", 999, 100, 512)], [], {}
    yield "BitwiseNot int64", "BitwiseNot", [integers("int64", 999, 100, 512)], [], {}
    yield (
        "BitShift uint32",
        "BitShift",
        [integers("uint32", 999, 100, 512), integers("uint32", 9, 100, 512)],
        [],
        {"direction": "LEFT"},
    )
    yield "Abs int64", "Abs", [integers("int64", 999, 100, 512, low=-999)], [], {}
    yield "Neg int32", "Neg", [integers("int32", 999, 100, 512, low=-999)], [], {}
    yield "Sign int64", "Sign", [integers("int64", 999, 100, 512, low=-999)], [], {}
    yield "Clip 64x56x56", "Clip", [floats(64, 56, 56)], [np.float32(0), np.float32(6)], {}
    yield "Clip int64 100x512", "Clip", [integers("int64", 99, 100, 512)], [np.int64(3), np.int64(50)], {}
    yield "Sum of 3 64x56x56", "Sum", [floats(64, 56, 56) for _ in range(3)], [], {}
    yield "CastLike", "CastLike", [floats(100, 512)], [np.int32(1)], {}
    codes = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
    for a, b in (
        ("float32", "int64"),
        ("int64", "float32"),
        ("float32", "int32"),
        ("int32", "float32"),
        ("float32", "float16"),
        ("float16", "float32"),
        ("uint8", "float32"),
        ("float32", "uint8"),
        ("bool", "float32"),
        ("float32", "bool"),
        ("int64", "int32"),
        ("int32", "int64"),
        ("float64", "float32"),
        ("float32", "float64"),
        ("int64", "bool"),
        ("bool", "int64"),
        ("int64", "float64"),
        ("uint8", "int64"),
    ):
        yield f"Cast {a} to {b} 100x512", "Cast", [integers("uint8", 9, 100, 512).astype(a)], [], {"to": codes[b]}
    yield (
        "DequantizeLinear 64x56x56",
        "DequantizeLinear",
        [integers("uint8", 255, 64, 56, 56)],
        [np.float32(0.1), np.uint8(128)],
        {},
    )
    yield "QuantizeLinear 64x56x56", "QuantizeLinear", [floats(64, 56, 56)], [np.float32(0.1), np.uint8(128)], {}
    yield "DynamicQuantizeLinear 128x768", "DynamicQuantizeLinear:3", [floats(128, 768)], [], {}
    for domain in ("QuickGelu", "FastGelu"):
        yield f"{domain} 128x3072", f"com.microsoft::{domain}", [floats(1, 128, 3072)], [], {}
    yield "BiasGelu 128x3072", "com.microsoft::BiasGelu", [floats(1, 128, 3072), floats(3072)], [], {}
