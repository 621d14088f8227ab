"""Data movement and indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .drawn import DRAW, Case, floats, integers


def moves() -> Iterator[Case]:
    for shape, perm in (
        ((512, 768), (1, 0)),
        ((1, 128, 12, 64), (0, 2, 1, 3)),
        ((1, 12, 128, 64), (0, 1, 3, 2)),
        ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 56, 56, 64), (0, 3, 1, 2)),
        ((8, 3, 64, 64), (1, 0, 2, 3)),
        ((1, 8, 2, 56, 56), (0, 2, 1, 3, 4)),
        ((1, 3, 85, 20, 20), (0, 1, 3, 4, 2)),
        ((1, 7, 8, 7, 8, 96), (0, 1, 3, 2, 4, 5)),
        ((2, 3, 4, 5, 6, 7), (5, 4, 3, 2, 1, 0)),
        ((64, 100, 3), (2, 0, 1)),
        ((32, 32, 32), (2, 1, 0)),
        ((3, 4, 64, 4, 64), (0, 2, 4, 1, 3)),
        ((1000, 2), (1, 0)),
        ((1, 4, 128, 128, 2), (0, 4, 2, 3, 1)),
    ):
        yield f"Transpose {shape} {perm}", "Transpose", [floats(*shape)], [], {"perm": perm}
    for dtype in ("uint8", "int64", "float16", "float64", "bool"):
        for shape, perm in (((1, 3, 224, 224), (0, 2, 3, 1)), ((1, 128, 12, 64), (0, 2, 1, 3)), ((512, 384), (1, 0))):
            yield (
                f"Transpose {dtype} {shape}",
                "Transpose",
                [integers("uint8", 2, *shape).astype(dtype)],
                [],
                {"perm": perm},
            )
    for shape, axis, n in (
        ((1, 64, 56, 56), 1, 2),
        ((1, 56, 56, 64), 3, 2),
        ((128, 768), 1, 3),
        ((1000, 4), 1, 4),
        ((1, 8400, 4), 1, 3),
        ((100, 1), 1, 4),
    ):
        yield f"Concat {n} of {shape} {axis}", "Concat", [floats(*shape) for _ in range(n)], [], {"axis": axis}
    for shape, axis, n in (
        ((1, 64, 56, 56), 1, 2),
        ((1, 56, 56, 64), 3, 2),
        ((128, 2304), 1, 3),
        ((8400, 4), 1, 4),
        ((1, 3, 640, 640), 1, 3),
    ):
        yield f"Split {shape} {axis} in {n}", f"Split:{n}", [floats(*shape)], [], {"axis": axis, "num_outputs": n}
    for mode in ("constant", "reflect", "edge", "wrap"):
        for shape, pads in (
            ((1, 3, 224, 224), [0, 0, 3, 3, 0, 0, 3, 3]),
            ((1, 64, 56, 56), [0, 0, 1, 1, 0, 0, 1, 1]),
            ((1, 80, 1000), [0, 0, 7, 0, 0, 8]),
        ):
            yield f"Pad {mode} {shape}", "Pad", [floats(*shape)], [np.int64(pads)], {"mode": mode}
    yield "Pad channels (1, 32, 56, 56)", "Pad", [floats(1, 32, 56, 56)], [np.int64([0, 8, 0, 0, 0, 8, 0, 0])], {}
    for shape, times in (
        ((1, 64, 28, 28), [1, 1, 2, 2]),
        ((1, 100, 1), [1, 1, 256]),
        ((32, 64), [8, 1]),
        ((1, 1, 64, 64), [1, 3, 1, 1]),
    ):
        yield f"Tile {shape} {times}", "Tile", [floats(*shape)], [np.int64(times)], {}
    for shape, to in (
        ((1, 64, 1, 1), [1, 64, 56, 56]),
        ((1, 1, 256), [8, 100, 256]),
        ((128, 1), [128, 768]),
        ((1, 8, 1, 128, 64), [1, 8, 4, 128, 64]),
    ):
        yield f"Expand {shape} {to}", "Expand", [floats(*shape)], [np.int64(to)], {}
    for shape, starts, ends, axes, steps in (
        ((1, 64, 56, 56), [0], [32], [1], [1]),
        ((1, 3, 640, 640), [0, 0], [9999, 9999], [2, 3], [2, 2]),
        ((1, 128, 768), [0], [64], [2], [1]),
        ((1, 80, 1000), [-1], [-9999], [2], [-1]),
        ((1, 64, 56, 56), [1, 1], [-1, -1], [2, 3], [1, 1]),
    ):
        yield (
            f"Slice {shape} {axes} {steps}",
            "Slice",
            [floats(*shape)],
            [np.int64(n) for n in (starts, ends, axes, steps)],
            {},
        )
    yield "DepthToSpace DCR 64x56x56", "DepthToSpace", [floats(1, 64, 56, 56)], [], {"blocksize": 2}
    yield "DepthToSpace CRD 64x56x56", "DepthToSpace", [floats(1, 64, 56, 56)], [], {"blocksize": 2, "mode": "CRD"}
    yield "DepthToSpace CRD 48x64x64 by 4", "DepthToSpace", [floats(1, 48, 64, 64)], [], {"blocksize": 4, "mode": "CRD"}
    yield "SpaceToDepth 3x640x640", "SpaceToDepth", [floats(1, 3, 640, 640)], [], {"blocksize": 2}
    yield "ReverseSequence 50x8x64", "ReverseSequence", [floats(50, 8, 64), integers("int64", 50, 8, low=1)], [], {}
    yield "Trilu 512x512", "Trilu", [floats(512, 512)], [np.int64(1)], {"upper": 1}
    yield "EyeLike 512", "EyeLike", [floats(512, 512)], [], {}
    yield "ConstantOfShape 1x512x512", "ConstantOfShape", [np.int64([1, 512, 512])], [], {}
    yield "Range 5000", "Range", [np.int64(0), np.int64(5000), np.int64(1)], [], {}
    yield "Shape", "Shape", [floats(1, 64, 56, 56)], [], {}
    yield (
        "CenterCropPad 1x3x256x256",
        "CenterCropPad",
        [floats(1, 3, 256, 256)],
        [np.int64([224, 224])],
        {"axes": [2, 3]},
    )


def indices() -> Iterator[Case]:
    for shape, axis, at in (
        ((30522, 128), 0, (1, 128)),
        ((1, 128, 768), 1, (1,)),
        ((1, 64, 56, 56), 1, (64,)),
        ((1000, 64), 1, (10,)),
        ((8400, 4), 0, (300,)),
        ((64, 64), 0, (2000,)),
        ((1, 3, 224, 224), 3, (224,)),
    ):
        yield (
            f"Gather {shape} {axis} {at}",
            "Gather",
            [floats(*shape), integers("int64", shape[axis], *at)],
            [],
            {"axis": axis},
        )
    for dtype in ("int64", "uint8", "float16"):
        yield (
            f"Gather {dtype} 5000x16",
            "Gather",
            [integers("uint8", 100, 5000, 16).astype(dtype), integers("int64", 5000, 1000)],
            [],
            {},
        )
    for shape, axis, at in (
        ((128, 1000), 1, (128, 10)),
        ((1, 8400, 4), 1, (1, 300, 4)),
        ((64, 64, 32), 0, (64, 64, 32)),
        ((8400, 80), 1, (8400, 1)),
    ):
        yield (
            f"GatherElements {shape} {axis}",
            "GatherElements",
            [floats(*shape), integers("int64", shape[axis], *at)],
            [],
            {"axis": axis},
        )
        yield (
            f"ScatterElements {shape} {axis}",
            "ScatterElements",
            [floats(*shape), integers("int64", shape[axis], *at), floats(*at)],
            [],
            {"axis": axis},
        )
        yield (
            f"ScatterElements add {shape} {axis}",
            "ScatterElements",
            [floats(*shape), integers("int64", shape[axis], *at), floats(*at)],
            [],
            {"axis": axis, "reduction": "add"},
        )
    for shape, at in (
        ((64, 64, 32), (1000, 2)),
        ((1, 8400, 4), (300, 2)),
        ((100, 100), (5000, 2)),
        ((1000, 64), (200, 1)),
    ):
        rest = (at[0], *shape[at[1] :])
        where = np.stack([integers("int64", shape[i], at[0]) for i in range(at[1])], 1)
        yield f"GatherND {shape} {at}", "GatherND", [floats(*shape), where], [], {}
        yield f"ScatterND {shape} {at}", "ScatterND", [floats(*shape), where, floats(*rest)], [], {}
        yield (
            f"ScatterND add {shape} {at}",
            "ScatterND",
            [floats(*shape), where, floats(*rest)],
            [],
            {"reduction": "add"},
        )
    yield "OneHot 128 of 1000", "OneHot", [integers("int64", 1000, 128)], [np.int64(1000), np.float32([0, 1])], {}
    yield "OneHot 1x5000 of 20", "OneHot", [integers("int64", 20, 1, 5000)], [np.int64(20), np.float32([0, 1])], {}
    yield "NonZero 100x100", "NonZero", [integers("bool", 2, 100, 100)], [], {}
    yield "NonZero f32 1x8400", "NonZero", [integers("int64", 2, 1, 8400).astype(np.float32)], [], {}
    yield "Compress 1000x64", "Compress", [floats(1000, 64), integers("bool", 2, 1000)], [], {"axis": 0}
    yield "Unique 5000 int64", "Unique", [integers("int64", 500, 5000)], [], {}
    yield (
        "Where 1x12x128x128",
        "Where",
        [integers("bool", 2, 1, 1, 128, 128), floats(1, 12, 128, 128)],
        [np.float32(-1e9)],
        {},
    )
    yield "Where 64x56x56", "Where", [integers("bool", 2, 64, 56, 56), floats(64, 56, 56), floats(64, 56, 56)], [], {}
    yield (
        "Where int64 100x512",
        "Where",
        [integers("bool", 2, 100, 512), integers("int64", 99, 100, 512), integers("int64", 99, 100, 512)],
        [],
        {},
    )
    boxes = np.concatenate(
        [low := DRAW.uniform(0, 1, (1, 5000, 2)), low + DRAW.uniform(0.02, 0.3, (1, 5000, 2))], 2
    ).astype(np.float32)
    for count, classes, most in ((300, 1, 100), (1000, 20, 50), (2000, 80, 100), (5000, 1, 300), (5000, 4, 200)):
        scores = DRAW.uniform(0, 1, (1, classes, count)).astype(np.float32) ** 4
        limits = [np.int64([most]), np.float32([0.5]), np.float32([0.25])]
        yield (
            f"NonMaxSuppression {count} boxes {classes} classes",
            "NonMaxSuppression",
            [boxes[:, :count], scores],
            limits,
            {},
        )
