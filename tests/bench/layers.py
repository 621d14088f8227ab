"""Writes NCHW float32 ONNX models of one layer each: groups, volumes, depthwise, pools, norms, resizes, data movement.

    python tests/bench/layers.py FOLDER [NAME ...]
    onert_bench FOLDER/*.onnx --peers onnxruntime,openvino --num_threads 1

Without NAME all are written, otherwise those whose name contains a NAME. The weights are random.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

RANDOM = np.random.default_rng(0)


def _saved(path: Path, kind: str, shape: tuple[int, ...], constants: dict[str, Any], **attributes: Any) -> None:
    """Save a model of one operator, with an empty input name for each constant that is None."""
    names = ["x", *(name if value is not None else "" for name, value in constants.items())]
    outputs = ["y", "places"] if kind == "TopK" else ["y"]
    node: NodeProto = helper.make_node(kind, names, outputs, **attributes)
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    held = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items() if v is not None]
    graph = helper.make_graph([node], path.stem, given, [helper.make_empty_tensor_value_info("y")], held)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def _windows(kind: str, outputs: int, sizes: tuple[int, ...], window: tuple[int, ...], **attributes: Any) -> Any:
    """A convolution of an input with shape `sizes`, channels first."""
    groups, rank = attributes.get("group", 1), len(window)
    shape = (outputs, sizes[0] // groups) if kind == "Conv" else (sizes[0], outputs // groups)
    weights = RANDOM.standard_normal((*shape, *window)).astype(np.float32) / np.float32(8)
    pads = attributes.pop("pads", [n // 2 for n in window])
    strides = [attributes.pop("stride", 1)] * rank
    return kind, (1, *sizes), {"w": weights}, {"pads": pads * 2, "strides": strides, **attributes}


def _pool(kind: str, channels: int, size: int, window: int) -> Any:
    return kind, (1, channels, size, size), {}, {"kernel_shape": [window] * 2, "pads": [window // 2] * 4}


def _nearest(channels: int, size: int, scale: float) -> Any:
    scales = np.float32([1, 1, scale, scale])
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return "Resize", (1, channels, size, size), {"roi": None, "scales": scales}, how


def _bilinear(channels: int, size: int, after: int) -> Any:
    sizes = np.int64([1, channels, after, after])
    return "Resize", (1, channels, size, size), {"roi": None, "scales": None, "sizes": sizes}, {"mode": "linear"}


LAYERS: dict[str, Any] = {
    "groups_of_8": _windows("Conv", 64, (64, 56, 56), (3, 3), group=8),
    "groups_of_2": _windows("Conv", 64, (64, 56, 56), (3, 3), group=32),
    "groups_of_8_by_2": _windows("Conv", 240, (240, 28, 28), (3, 3), group=30, stride=2),
    "three_filters_each": _windows("Conv", 96, (32, 56, 56), (3, 3), group=32),
    "each_31x31": _windows("Conv", 128, (128, 32, 32), (31, 31), group=128),
    "volume": _windows("Conv", 64, (64, 8, 28, 28), (3, 3, 3)),
    "volume_of_one_channel": _windows("Conv", 16, (1, 64, 64, 64), (3, 3, 3)),
    "volume_each": _windows("Conv", 54, (54, 8, 40, 40), (3, 3, 3), group=54),
    "volume_each_deep": _windows("Conv", 54, (54, 8, 40, 40), (5, 1, 1), group=54),
    "volume_groups_of_8": _windows("Conv", 64, (64, 8, 28, 28), (3, 3, 3), group=8),
    "transposed_groups_of_2": _windows("ConvTranspose", 64, (64, 32, 32), (3, 3), group=32, stride=2),
    "transposed_dilated": _windows("ConvTranspose", 64, (64, 32, 32), (3, 3), group=8, stride=2, dilations=[2, 2]),
    "greatest_of_5x5": _pool("MaxPool", 256, 20, 5),
    "average_of_9x9": _pool("AveragePool", 256, 14, 9),
    "nearest_by_2": _nearest(128, 64, 2),
    "nearest_by_1.5": _nearest(64, 40, 1.5),
    "normalised_planes": (
        "InstanceNormalization",
        (1, 32, 128, 128),
        {"s": np.ones(32, np.float32), "b": np.ones(32, np.float32)},
        {},
    ),
    "bilinear_by_2": _bilinear(32, 28, 56),
    "bilinear_to_160": _bilinear(3, 224, 160),
    "pixels_of_channels": ("DepthToSpace", (1, 12, 128, 128), {}, {"blocksize": 2, "mode": "CRD"}),
    "channels_of_pixels": ("SpaceToDepth", (1, 3, 256, 256), {}, {"blocksize": 2}),
    "edges": ("Pad", (1, 3, 224, 224), {"pads": np.int64([0, 0, 3, 3, 0, 0, 3, 3])}, {"mode": "edge"}),
    "greatest_10": ("TopK", (100, 1000), {"k": np.int64([10])}, {}),
    "greatest_50": ("TopK", (1, 50257), {"k": np.int64([50])}, {}),
    "greatest_of_80": ("TopK", (8400, 80), {"k": np.int64([1])}, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="*")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    for name, (kind, shape, constants, attributes) in LAYERS.items():
        if not wanted.name or any(part in name for part in wanted.name):
            _saved(wanted.folder / f"{name}.onnx", kind, shape, constants, **attributes)


if __name__ == "__main__":
    main()
