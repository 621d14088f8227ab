"""Convolutions, matrix products and recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .drawn import DRAW, Case, floats, integers


def _conv(
    label: str, outputs: int, shape: tuple[int, ...], window: tuple[int, ...], kind: str = "Conv", **how: Any
) -> Case:
    group, rank = how.get("group", 1), len(window)
    weights = (outputs, shape[1] // group, *window) if kind == "Conv" else (shape[1], outputs // group, *window)
    dilations = how.get("dilations", [1] * rank)
    pads = how.pop("pads", [(n - 1) * d // 2 for n, d in zip(window, dilations, strict=True)])
    strides = [how.pop("stride", 1)] * rank
    return (
        f"{label} {shape} to {outputs} {window}/{strides[0]}",
        kind,
        [floats(*shape)],
        [floats(*weights) / np.float32(8), floats(outputs)],
        {"pads": pads * 2, "strides": strides, **how},
    )


def convolutions() -> Iterator[Case]:
    yield _conv("Conv1d", 64, (1, 80, 1000), (3,))
    yield _conv("Conv1d", 512, (1, 512, 200), (5,))
    yield _conv("Conv1d", 1, (1, 32, 4000), (7,))
    yield _conv("Conv1d", 64, (1, 1, 16000), (10,), stride=5)
    yield _conv("Conv1d dilated", 64, (1, 64, 1000), (3,), dilations=[8])
    yield _conv("Conv1d depthwise", 256, (1, 256, 400), (31,), group=256)
    yield _conv("Conv1d depthwise", 512, (1, 512, 100), (3,), group=512)
    yield _conv("Conv1d batch", 32, (16, 8, 128), (5,))
    yield _conv("Conv", 64, (1, 3, 224, 224), (7, 7), stride=2)
    yield _conv("Conv", 64, (1, 64, 56, 56), (3, 3))
    yield _conv("Conv", 256, (1, 64, 56, 56), (1, 1))
    yield _conv("Conv", 32, (1, 1, 28, 28), (3, 3))
    yield _conv("Conv", 64, (1, 1, 128, 128), (5, 5))
    yield _conv("Conv", 3, (1, 64, 128, 128), (9, 9))
    yield _conv("Conv", 64, (1, 32, 100, 40), (3, 3), stride=2)
    yield _conv("Conv", 8, (1, 8, 256, 256), (3, 3))
    yield _conv("Conv 16x16/16", 192, (1, 3, 224, 224), (16, 16), stride=16, pads=[0, 0])
    yield _conv("Conv batch 8", 32, (8, 3, 32, 32), (3, 3))
    yield _conv("Conv (1,9)", 32, (1, 32, 40, 100), (1, 9))
    yield _conv("Conv dilated", 64, (1, 64, 56, 56), (3, 3), dilations=[4, 4])
    yield _conv("Conv grouped 4", 128, (1, 128, 28, 28), (3, 3), group=4)
    yield _conv("Conv grouped 32", 256, (1, 256, 14, 14), (3, 3), group=32)
    for c, n, k, s in (
        (64, 56, 3, 1),
        (32, 112, 3, 1),
        (64, 112, 3, 2),
        (256, 14, 5, 1),
        (96, 56, 7, 1),
        (384, 14, 7, 1),
        (64, 32, 13, 1),
        (128, 16, 31, 1),
    ):
        yield _conv("depthwise", c, (1, c, n, n), (k, k), group=c, stride=s)
    yield _conv("depthwise dilated", 128, (1, 128, 28, 28), (3, 3), group=128, dilations=[2, 2])
    yield _conv("Conv3d", 16, (1, 1, 32, 64, 64), (3, 3, 3))
    yield _conv("Conv3d", 32, (1, 16, 16, 32, 32), (3, 3, 3))
    yield _conv("Conv3d", 64, (1, 3, 8, 56, 56), (3, 7, 7), stride=2)
    yield _conv("Conv3d 1x1x1", 64, (1, 32, 8, 28, 28), (1, 1, 1))
    yield _conv("Conv3d depthwise", 64, (1, 64, 8, 28, 28), (3, 3, 3), group=64)
    for c, o, n, k, s, g in (
        (64, 32, 28, 2, 2, 1),
        (64, 32, 28, 4, 2, 1),
        (64, 64, 28, 3, 2, 1),
        (128, 128, 14, 4, 2, 128),
        (64, 64, 32, 3, 2, 32),
        (16, 3, 64, 4, 2, 1),
        (32, 1, 128, 9, 1, 1),
    ):
        yield _conv(
            "ConvTranspose", o, (1, c, n, n), (k, k), "ConvTranspose", stride=s, group=g, pads=[(k - s) // 2] * 2
        )
    for c, o, n, k, s in ((256, 128, 100, 16, 8), (128, 64, 400, 4, 2), (512, 1, 100, 20, 10)):
        yield _conv("ConvTranspose1d", o, (1, c, n), (k,), "ConvTranspose", stride=s, pads=[(k - s) // 2])
    yield _conv("ConvTranspose3d", 16, (1, 32, 8, 16, 16), (2, 2, 2), "ConvTranspose", stride=2, pads=[0] * 3)
    yield _conv("ConvTranspose3d", 16, (1, 16, 8, 16, 16), (4, 4, 4), "ConvTranspose", stride=2, pads=[1] * 3)
    for channels, n, k, steps, how in (
        (64, 28, 3, 784, {}),
        (16, 56, 3, 3136, {}),
        (32, 28, 4, 196, {"strides": [2, 2]}),
    ):
        name = f"Col2Im {k}x{k}{'/2' if how else ''} {n}x{n}"
        sizes = [np.int64([n, n]), np.int64([k, k])]
        yield name, "Col2Im", [floats(1, channels * k * k, steps)], sizes, {"pads": [1] * 4, **how}
    for shape in ((1, 16, 28, 28),):
        yield (
            f"DeformConv {shape}",
            "DeformConv",
            [floats(*shape), floats(16, 16, 3, 3), floats(1, 18, 28, 28)],
            [],
            {"pads": [1] * 4, "kernel_shape": [3, 3]},
        )


def products() -> Iterator[Case]:
    for a, b in (
        ((128, 768), (768, 768)),
        ((1, 768), (768, 3072)),
        ((7, 33), (33, 17)),
        ((100, 101), (101, 103)),
        ((12, 128, 64), (12, 64, 128)),
        ((64, 8, 8), (64, 8, 8)),
        ((500, 4, 4), (500, 4, 4)),
        ((1000, 3, 3), (1000, 3, 1)),
        ((16, 49, 32), (16, 32, 49)),
        ((1, 512), (512, 1)),
        ((2000, 4), (4, 2000)),
        ((3, 1000), (1000, 3)),
        ((512, 512), (512, 1)),
    ):
        for known in (False, True):
            arrays = [floats(*a), floats(*b)]
            yield f"MatMul {a} {b}{' constant' * known}", "MatMul", arrays[: 2 - known], arrays[2 - known :], {}
    for dtype in ("float16", "float64", "int32"):
        for a, b in (((64, 128), (128, 256)), ((1, 256), (256, 512)), ((8, 32, 32), (8, 32, 32))):
            yield (
                f"MatMul {dtype} {a} {b}",
                "MatMul",
                [integers("uint8", 5, *a).astype(dtype), integers("uint8", 5, *b).astype(dtype)],
                [],
                {},
            )
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = (128, 256), (256, 300)
            yield (
                f"Gemm {ta}{tb}",
                "Gemm",
                [floats(*a[:: 1 - 2 * ta]), floats(*b[:: 1 - 2 * tb])],
                [floats(300)],
                {"transA": ta, "transB": tb},
            )
    yield "Gemm constant 1x1024x1000", "Gemm", [floats(1, 1024)], [floats(1000, 1024), floats(1000)], {"transB": 1}
    yield (
        "Gemm alpha beta computed",
        "Gemm",
        [floats(64, 64), floats(64, 64), floats(64, 64)],
        [],
        {"alpha": 0.5, "beta": 2.0},
    )
    yield (
        "Gemm f64",
        "Gemm",
        [DRAW.standard_normal((32, 100))],
        [DRAW.standard_normal((100, 50)), DRAW.standard_normal(50)],
        {},
    )
    yield (
        "Gemm f64 1 row",
        "Gemm",
        [DRAW.standard_normal((1, 100))],
        [DRAW.standard_normal((100, 50)), DRAW.standard_normal(50)],
        {},
    )
    for equation, *shapes in (
        ("bij,bjk->bik", (8, 64, 64), (8, 64, 64)),
        ("bhid,bhjd->bhij", (1, 8, 128, 64), (1, 8, 128, 64)),
        ("bqhd,bkhd->bhqk", (1, 128, 8, 64), (1, 128, 8, 64)),
        ("bhqk,bkhd->bqhd", (1, 8, 128, 128), (1, 128, 8, 64)),
        ("i,j->ij", (512,), (512,)),
        ("bnd,de->bne", (4, 100, 64), (64, 128)),
        ("bchw,bkc->bkhw", (1, 32, 56, 56), (1, 21, 32)),
        ("ii->i", (512, 512)),
        ("nhwc,hkc->nhwk", (4, 14, 14, 64), (14, 14, 64)),
        ("ij,ij->i", (500, 300), (500, 300)),
        ("bij->bji", (8, 100, 100)),
    ):
        yield f"Einsum {equation}", "Einsum", [floats(*s) for s in shapes], [], {"equation": equation}
    for kind, gates, outs in (("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)):
        for steps, batch, inputs, units, both in (
            (32, 1, 64, 64, 0),
            (50, 1, 128, 128, 1),
            (20, 8, 64, 128, 0),
            (20, 32, 64, 64, 0),
            (100, 1, 40, 256, 0),
            (1, 1, 256, 256, 0),
        ):
            ways = both + 1
            constants = [
                floats(ways, gates * units, inputs) / 10,
                floats(ways, gates * units, units) / 10,
                floats(ways, 2 * gates * units) / 10,
            ]
            how = {"hidden_size": units, "direction": "bidirectional" if both else "forward"}
            if kind == "GRU":
                how["linear_before_reset"] = 1
            yield (
                f"{kind} steps {steps} batch {batch} {inputs}-{units}x{ways}",
                f"{kind}:{outs}",
                [floats(steps, batch, inputs)],
                constants,
                how,
            )
    yield (
        "MatMulInteger 64x256x256",
        "MatMulInteger",
        [integers("uint8", 255, 64, 256)],
        [integers("int8", 127, 256, 256), np.uint8(3)],
        {},
    )
    for shape in ((1, 64, 56, 56), (1, 256, 7, 7)):
        x = integers("uint8", 255, *shape)
        ends = [np.float32(0.1), np.uint8(128), np.float32(0.05), np.uint8(120)]
        yield f"QLinearGlobalAveragePool {shape}", "com.microsoft::QLinearGlobalAveragePool", [x], ends, {}
        yield (
            f"QLinearGlobalAveragePool last {shape}",
            "com.microsoft::QLinearGlobalAveragePool",
            [x.transpose(0, 2, 3, 1).copy()],
            ends,
            {"channels_last": 1},
        )
        yield f"QLinearSigmoid {shape}", "com.microsoft::QLinearSigmoid", [x], ends, {}
        yield f"QLinearLeakyRelu {shape}", "com.microsoft::QLinearLeakyRelu", [x], ends, {"alpha": 0.1}
        yield (
            f"QLinearAveragePool {shape}",
            "com.microsoft::QLinearAveragePool",
            [x],
            ends,
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4},
        )
    w, zero = integers("int8", 127, 64, 64, 3, 3, low=-127), np.int8(0)
    yield (
        "QLinearConv 64x28x28 3x3",
        "QLinearConv",
        [integers("uint8", 255, 1, 64, 28, 28)],
        [np.float32(0.1), np.uint8(120), w, np.float32(0.01), zero, np.float32(0.3), np.uint8(120)],
        {"pads": [1] * 4},
    )
    yield (
        "QLinearMatMul 64x256x256",
        "QLinearMatMul",
        [integers("uint8", 255, 64, 256)],
        [
            np.float32(0.1),
            np.uint8(120),
            integers("int8", 127, 256, 256, low=-127),
            np.float32(0.01),
            zero,
            np.float32(0.3),
            np.uint8(120),
        ],
        {},
    )
