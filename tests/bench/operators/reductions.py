"""Pools, rows, reductions and sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .drawn import DRAW, Case, floats, integers, positive


def pools() -> Iterator[Case]:
    for kind in ("MaxPool", "AveragePool"):
        for shape, window, stride, pad in (
            ((1, 64, 112, 112), 3, 2, 1),
            ((1, 192, 28, 28), 3, 1, 1),
            ((1, 64, 56, 56), 2, 2, 0),
            ((8, 32, 28, 28), 2, 2, 0),
            ((1, 256, 20, 20), 5, 1, 2),
            ((1, 64, 512), 3, 2, 1),
            ((1, 128, 1000), 2, 2, 0),
            ((1, 16, 32, 32, 32), 2, 2, 0),
            ((1, 64, 8, 28, 28), 3, 2, 1),
            ((1, 32, 16, 56, 56), 3, 1, 1),
        ):
            rank = len(shape) - 2
            how = {"kernel_shape": [window] * rank, "strides": [stride] * rank, "pads": [pad] * (2 * rank)}
            yield f"{kind} {shape} {window}/{stride}", kind, [floats(*shape)], [], how
    yield (
        "MaxPool indices 64x56x56 2/2",
        "MaxPool:2",
        [floats(1, 64, 56, 56)],
        [],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    )
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    yield "MaxPool u8 64x56x56 3/2", "MaxPool", [integers("uint8", 255, 1, 64, 56, 56)], [], pool
    yield "LpPool 64x56x56 3/2", "LpPool", [floats(1, 64, 56, 56)], [], pool
    for shape in ((1, 1280, 7, 7), (1, 64, 56, 56), (1, 512, 100), (1, 64, 8, 14, 14)):
        yield f"GlobalAveragePool {shape}", "GlobalAveragePool", [floats(*shape)], [], {}
        yield f"GlobalMaxPool {shape}", "GlobalMaxPool", [floats(*shape)], [], {}


def rows() -> Iterator[Case]:
    for kind in ("Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (
            ((32, 5000), 1),
            ((1, 30522), 1),
            ((12, 128, 128), 2),
            ((1, 21, 65, 65), 1),
            ((8, 100, 64), 1),
            ((64, 10), 1),
            ((1, 8, 1500, 40), 2),
        ):
            yield f"{kind} {shape} axis {axis}", kind, [floats(*shape)], [], {"axis": axis}
    for shape in ((128, 768), (1, 196, 384), (8, 32, 64), (1, 1, 4096), (64, 1500)):
        n = shape[-1]
        yield (
            f"LayerNormalization {shape}",
            "LayerNormalization",
            [floats(*shape)],
            [floats(n), floats(n)],
            {"axis": -1},
        )
        yield f"RMSNormalization {shape}", "RMSNormalization", [floats(*shape)], [floats(n)], {"axis": -1}
    yield (
        "SkipLayerNormalization 1x128x768",
        "com.microsoft::SkipLayerNormalization",
        [floats(1, 128, 768), floats(1, 128, 768)],
        [floats(768), floats(768)],
        {},
    )
    for shape in ((1, 32, 128, 128), (1, 256, 16, 16), (4, 64, 500), (1, 16, 16, 32, 32)):
        c = shape[1]
        yield f"InstanceNormalization {shape}", "InstanceNormalization", [floats(*shape)], [floats(c), floats(c)], {}
        yield (
            f"GroupNormalization {shape}",
            "GroupNormalization",
            [floats(*shape)],
            [floats(c), floats(c)],
            {"num_groups": 8},
        )
        yield (
            f"BatchNormalization {shape}",
            "BatchNormalization",
            [floats(*shape)],
            [floats(c), floats(c), floats(c), positive(c)],
            {},
        )
    for shape in ((1, 96, 27, 27), (1, 64, 56, 56)):
        yield f"LRN {shape}", "LRN", [floats(*shape)], [], {"size": 5}
    for shape, axis in (((128, 768), -1), ((1, 64, 28, 28), 1)):
        yield f"LpNormalization {shape}", "LpNormalization", [floats(*shape)], [], {"axis": axis}
        yield f"MeanVarianceNormalization {shape}", "MeanVarianceNormalization", [floats(*shape)], [], {"axes": [axis]}


def reductions() -> Iterator[Case]:
    kinds = (
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSumExp",
        "ReduceSumSquare",
        "ReduceLogSum",
    )
    for kind in kinds:
        few = kind not in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")
        for shape, axes in (
            ((128, 768), [1]),
            ((1, 64, 56, 56), [2, 3]),
            ((1, 64, 56, 56), [1]),
            ((128, 768), [0]),
            ((16, 64, 32), [0, 2]),
            ((4, 8, 16, 64), [0, 1, 2, 3]),
            ((32, 100, 8), [2]),
        )[: 3 if few else 7]:
            yield f"{kind} {shape} {axes}", kind, [positive(*shape)], [np.int64(axes)], {"keepdims": 0}
    for dtype in ("int32", "int64", "float64"):
        for kind in ("ReduceSum", "ReduceMax", "ReduceMean"):
            for axes in ([1], [0]):
                x = DRAW.integers(-99, 99, (256, 512)).astype(dtype)
                yield f"{kind} {dtype} 256x512 {axes}", kind, [x], [np.int64(axes)], {"keepdims": 0}
    for kind in ("ArgMax", "ArgMin"):
        for shape, axis in (((1, 21, 128, 128), 1), ((128, 1000), 1), ((1, 50257), 1), ((8400, 80), 1), ((500, 6), 0)):
            yield f"{kind} {shape} {axis}", kind, [floats(*shape)], [], {"axis": axis, "keepdims": 0}
    yield "ArgMax int32 128x1000", "ArgMax", [integers("int32", 1000, 128, 1000)], [], {"axis": 1}
    for shape, axis in (((64, 1000), 1), ((1000, 64), 0), ((8, 50, 32), 1)):
        yield f"CumSum {shape} {axis}", "CumSum", [floats(*shape)], [np.int64(axis)], {}
    yield "CumSum int64 (1, 512)", "CumSum", [integers("int64", 2, 1, 512)], [np.int64(1)], {}
    for shape, k in (
        ((100, 1000), 10),
        ((1, 8400), 300),
        ((8400, 80), 1),
        ((1, 50257), 50),
        ((64, 64), 64),
        ((32, 5000), 100),
    ):
        yield f"TopK {shape} {k}", "TopK:2", [floats(*shape)], [np.int64([k])], {}
    yield "TopK 80x8400 axis 0", "TopK:2", [floats(80, 8400)], [np.int64([5])], {"axis": 0}
    yield "TopK int64 1x5000", "TopK:2", [integers("int64", 9999, 1, 5000)], [np.int64([100])], {}
