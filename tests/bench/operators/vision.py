"""Resizing, sampling, regions and transforms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .drawn import DRAW, Case, floats, integers, positive

_OMITTED = (("nearest", "pytorch_half_pixel"), ("linear", "pytorch_half_pixel"), ("nearest", "align_corners"))


def vision() -> Iterator[Case]:
    for shape, to in (
        ((1, 64, 28, 28), (56, 56)),
        ((1, 3, 224, 224), (160, 160)),
        ((1, 128, 33, 33), (65, 65)),
        ((1, 256, 20, 20), (40, 40)),
        ((1, 21, 65, 65), (257, 257)),
        ((1, 3, 480, 640), (224, 224)),
    ):
        for mode in ("nearest", "linear", "cubic"):
            for where in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"):
                if (mode, where) in _OMITTED:
                    continue
                yield (
                    f"Resize {mode} {where} {shape} {to}",
                    "Resize",
                    [floats(*shape)],
                    [None, None, np.int64([*shape[:2], *to])],
                    {"mode": mode, "coordinate_transformation_mode": where, "nearest_mode": "floor"},
                )
    for name, x, sizes, how in (
        ("linear antialias 224 to 112", floats(1, 3, 224, 224), (1, 3, 112, 112), {"mode": "linear", "antialias": 1}),
        ("cubic antialias 512 to 224", floats(1, 3, 512, 512), (1, 3, 224, 224), {"mode": "cubic", "antialias": 1}),
        ("1d linear (1, 64, 200)", floats(1, 64, 200), (1, 64, 400), {"mode": "linear"}),
        ("1d nearest (1, 64, 200)", floats(1, 64, 200), (1, 64, 400), {"mode": "nearest"}),
        ("3d linear", floats(1, 16, 8, 16, 16), (1, 16, 16, 32, 32), {"mode": "linear"}),
        ("3d nearest", floats(1, 16, 8, 16, 16), (1, 16, 16, 32, 32), {"mode": "nearest"}),
        ("u8 linear 480x640 to 224", integers("uint8", 255, 1, 3, 480, 640), (1, 3, 224, 224), {"mode": "linear"}),
        ("nhwc linear 56 to 112", floats(1, 56, 56, 32), (1, 112, 112, 32), {"mode": "linear"}),
    ):
        yield f"Resize {name}", "Resize", [x], [None, None, np.int64(sizes)], how
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            grid = DRAW.uniform(-1.1, 1.1, (1, 56, 56, 2)).astype(np.float32)
            yield (
                f"GridSample {mode} {padding} 32x56x56",
                "GridSample",
                [floats(1, 32, 56, 56), grid],
                [],
                {"mode": mode, "padding_mode": padding},
            )
    for channels, n in ((3, 224), (8, 128), (256, 16)):
        grid = DRAW.uniform(-1.1, 1.1, (1, n, n, 2)).astype(np.float32)
        yield (
            f"GridSample linear {channels}x{n}x{n}",
            "GridSample",
            [floats(1, channels, n, n), grid],
            [],
            {"mode": "linear"},
        )
    for channels, count, size in ((256, 100, 7), (64, 20, 14)):
        low = DRAW.uniform(0, 300, (count, 2))
        rois = np.concatenate([low, low + DRAW.uniform(30, 400, (count, 2))], 1).astype(np.float32)
        for mode in ("avg", "max"):
            yield (
                f"RoiAlign {mode} {channels}x50x50 {count}",
                "RoiAlign",
                [floats(1, channels, 50, 50), rois, np.zeros(count, np.int64)],
                [],
                {
                    "output_height": size,
                    "output_width": size,
                    "sampling_ratio": 2,
                    "spatial_scale": 0.0625,
                    "mode": mode,
                },
            )
    rois = np.concatenate([np.zeros((50, 1)), rois_low := DRAW.uniform(0, 300, (50, 2)), rois_low + 200], 1).astype(
        np.float32
    )
    yield (
        "MaxRoiPool 64x50x50",
        "MaxRoiPool",
        [floats(1, 64, 50, 50), rois],
        [],
        {"pooled_shape": [7, 7], "spatial_scale": 0.0625},
    )
    yield "AffineGrid 1x56x56", "AffineGrid", [floats(1, 2, 3)], [np.int64([1, 3, 56, 56])], {}
    for n in (256, 400, 512):
        yield f"DFT {n}", "DFT", [floats(8, n, 1)], [None, np.int64(1)], {"onesided": 1}
        yield f"DFT complex {n}", "DFT", [floats(8, n, 2)], [None, np.int64(1)], {}
    yield "DFT inverse 512", "DFT", [floats(8, 512, 2)], [None, np.int64(1)], {"inverse": 1}
    for step, size in ((160, 400), (128, 512)):
        constants = [np.int64(step), positive(size), np.int64(size)]
        yield f"STFT 16000 by {step}, {size}", "STFT", [floats(1, 16000, 1)], constants, {"onesided": 1}
    yield (
        "MelWeightMatrix",
        "MelWeightMatrix",
        [np.int64(80), np.int64(512), np.int64(16000), np.float32(0), np.float32(8000)],
        [],
        {},
    )
    yield "HannWindow", "HannWindow", [np.int64(400)], [], {}
    yield "Det 100x4x4", "Det", [floats(100, 4, 4)], [], {}
