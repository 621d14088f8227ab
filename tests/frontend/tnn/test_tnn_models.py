"""TNN's layers match formulas in NumPy, one by one and in whole structures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from frontend.tnn import tnn_writer as writer
from frontend.tnn.tnn_logic import LAYERS as LOGIC
from frontend.tnn.tnn_selection import LAYERS as SELECTION
from frontend.tnn.tnn_semantics import Network
from frontend.tnn.tnn_volume import LAYERS as VOLUME
from frontend.tnn.tnn_writer import Resource
from shared_material import SHARED, needs_shared

import onert
from onert.frontend.tnn import load
from onert.ir import Array

FOLDER = SHARED / "models" / "tnn"
STRUCTURES = sorted(path.name for path in FOLDER.glob("*.tnnproto"))
SMALL = ("darrenyao87-chinese-ocr-angle_net.tnnproto", "darrenyao87-mobilenet_v2-ssd-mobilenetv2_ssd.tnnproto")
COLUMNS = {"MatMul_285": 384}
"""Columns of a weight that no structure declares; other matrix weights are square."""

LAYERS = {
    "explicit padding": "Convolution l 1 1 x y 1 4 6 3 3 2 2 1 1 1 -1 1 1 0",
    "uneven SAME": "Convolution l 1 1 x y 1 4 6 3 2 2 2 0 0 1 0 1 1 1",
    "VALID": "Convolution l 1 1 x y 1 4 6 3 3 2 2 0 0 0 1 1 1 2",
    "SAME that leaves rows out": "Convolution l 1 1 x y 1 4 6 1 1 4 4 0 0 1 0 1 1 0",
    "groups": "Convolution l 1 1 x y 2 4 6 3 1 1 1 1 0 1 -1 1 1 0",
    "depthwise": "Convolution l 1 1 x y 4 4 4 3 3 1 2 1 1 1 -1 1 1 256",
    "dilation": "Convolution l 1 1 x y 1 4 6 3 3 1 1 2 2 1 -1 2 2",
    "deconvolution": "Deconvolution l 1 1 x y 1 4 6 2 2 2 2 0 0 1 -1 1 1 1",
    "deconvolution with padding": "Deconvolution l 1 1 x y 1 4 6 4 4 2 2 1 1 1 -1 1 1",
    "deconvolution with odd padding": "Deconvolution l 1 1 x y 1 4 6 3 3 2 2 1 1 1 -1 1 1",
    "deconvolution of groups": "Deconvolution l 1 1 x y 2 4 6 3 3 2 1 1 1 0 -1 1 1",
    "deconvolution of each channel": "Deconvolution l 1 1 x y 4 4 4 4 4 2 2 1 1 1 -1 1 1",
    "deconvolution with dilation": "Deconvolution l 1 1 x y 1 4 6 3 3 2 2 1 1 1 -1 2 2 0",
    "largest": "Pooling l 1 1 x y 0 3 3 2 2 1 1 -1 -1 -1 0",
    "largest, rounded up": "Pooling l 1 1 x y 0 3 3 2 2 0 0 -1 -1 -1 1",
    "average": "Pooling l 1 1 x y 1 3 3 2 2 1 1 -1 -1 -1 1",
    "average of all": "Pooling l 1 1 x y 1 0 0 1 1 0 0 -1 -1 -1 0",
    "average, SAME": "Pooling l 1 1 x y 1 2 2 2 2 0 0 -1 -1 0 0",
    "rows": "InnerProduct l 1 1 x y 5 1 0 1",
    "nearest": "Upsample l 1 1 x y 1 2 3 0",
    "bilinear": "Upsample l 1 1 x y 2 2 2 0 11 5",
    "parts": "StridedSliceV2 l 1 1 x y 1 1 1 2147483647 1 3 1 2",
    "slice": "StridedSlice l 1 1 x y 4 0 1 0 2 4 0 3 0 8 4 1 1 2 3",
    "margins": "Pad l 1 1 x y 0 0 1 2 3 0 1 1 0 0",
    "order of channels": "Reshape l 1 1 x y 0 4 4 0 -1 3 3 1",
    "slopes": "PReLU l 1 1 x y 0 0",
    "shuffled": "ShuffleChannel l 1 1 x y 2",
    "integers": "QuantizedConvolution l 1 1 x y 1 4 6 3 3 2 2 1 1 1 -1 1 1 1",
    "integers, depthwise": "QuantizedConvolution l 1 1 x y 4 4 4 3 3 1 1 1 1 1 -1 1 1 0",
    "integers added": "QuantizedAdd l 2 1 x x y 1",
    "integers pooled": "QuantizedPooling l 1 1 x y 0 3 3 2 2 0 0 -1 -1 -1 1",
    **SELECTION,
}


def agree(
    text: str,
    place: Path,
    tolerance: float,
    columns: dict[str, int] | None = None,
    backends: tuple[str, ...] = ("reference",),
) -> None:
    """Check that a file with weights drawn in NumPy gives the results computed in NumPy."""
    net = Network(text, columns)
    version = 2 if "4206624772" in text.splitlines()[0] else 1
    path = writer.write(place, text, net.resources, net.constants, version)
    program = onert.compile(onert.load(path), backends=backends, max_work=10**14)
    results = onert.Execution(program).run(list(net.inputs.values()))
    assert list(results) == list(net.outputs)
    for name, found in results.items():
        wanted = net.outputs[name]
        assert found.shape == wanted.shape
        if "Quantized" in text and tolerance < 1e-3:  # off-by-one steps accumulate: compare the direction
            assert float((found * wanted).sum() / np.sqrt((found**2).sum() * (wanted**2).sum())) > 0.98
            continue
        reach = max(1.0, float(np.abs(wanted).max()))
        assert float(np.abs(found.astype(np.float64) - wanted).max()) <= tolerance * reach, name


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_matches_its_formula(name: str, tmp_path: Path) -> None:
    text = writer.structure("x 4 2 4 9 10 0", "y", [LAYERS[name]])
    agree(text, tmp_path, 1 / 31 if name.startswith("integers") else 1e-5)


@pytest.mark.parametrize("backends", [("reference",), pytest.param((), marks=pytest.mark.long)], ids=["", "native"])
@pytest.mark.parametrize("name", [*VOLUME, *LOGIC])
def test_a_layer_with_other_inputs_matches_its_formula(name: str, backends: tuple[str, ...], tmp_path: Path) -> None:
    inputs, *layers = {**VOLUME, **LOGIC}[name]
    outputs = "y h c" if " y h c " in layers[-1] else "y"
    agree(writer.structure(inputs, outputs, layers), tmp_path, 1 / 31 if "integers" in name else 2e-5, None, backends)


def computed(place: Path, inputs: str, layer: str, *arrays: Array, resources: Sequence[Resource] = ()) -> list[Array]:
    """The outputs y, and z, u and v if the layer has them."""
    outputs = " ".join(name for name in "yzuv" if f" {name} " in f"{layer} ")
    path = writer.write(place, writer.structure(inputs, outputs, [layer]), resources)
    program = onert.compile(onert.load(path), backends=("reference",))
    return [np.asarray(y) for y in onert.Execution(program).run(list(arrays)).values()]


def test_elements_are_gathered_and_scattered_along_an_axis(tmp_path: Path) -> None:
    x, at = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[0, -1], [1, 1], [3, -4]], np.int32)
    (y,) = computed(tmp_path, "x 2 3 4 0 : at 2 3 2 3", "GatherElements l 2 1 x at y 1", x, at)
    assert y.tolist() == np.take_along_axis(x, at, 1).tolist()
    new = np.float32([[1, 2], [3, 4], [5, 6]])
    inputs = "x 2 3 4 0 : at 2 3 2 3 : new 2 3 2 0"
    (y,) = computed(tmp_path, inputs, "ScatterElements l 3 1 x at new y 1 1", x, at, new)
    wanted = x.copy()
    np.add.at(wanted, (np.arange(3)[:, None], at), new)
    assert y.tolist() == wanted.tolist()
    stored = [Resource("ScatterElements", "l", [b"\1", x])]
    inputs, layer = "at 2 3 2 3 : new 2 3 2 0", "ScatterElements l 2 1 at new y 1"
    (y,) = computed(tmp_path, inputs, layer, at, new, resources=stored)
    np.put_along_axis(x, at, new, 1)
    assert y.tolist() == x.tolist()


def test_integers_are_counted_shifted_and_generated(tmp_path: Path) -> None:
    x = np.array([[3, 0, 1], [1, 1, 4]], np.int32)
    (y,) = computed(tmp_path, "x 2 2 3 3", "Histogram l 1 1 x y 6", x)
    assert y.tolist() == [1, 3, 0, 1, 1, 0]
    (y,) = computed(tmp_path, "x 2 2 3 3", "BitShift l 1 1 x y 0 1", x - 2)
    assert y.tolist() == ((x - 2).view(np.uint32) >> 1).view(np.int32).tolist()
    (y,) = computed(tmp_path, "x 2 2 3 3", "BitShift l 1 1 x y 1 3", x)
    assert y.tolist() == (x << 3).tolist()
    numbers = (np.full(1, n, np.int32) for n in (3, 11, 2))
    (y,) = computed(tmp_path, "a 1 1 3 : b 1 1 3 : c 1 1 3", "Range l 3 1 a b c y", *numbers)
    assert y.tolist() == [3, 5, 7, 9]


@pytest.mark.parametrize("mode", [0, 1])
def test_roi_align_samples_without_half_pixel_offsets(mode: int, tmp_path: Path) -> None:
    inputs = "x 4 2 3 8 9 0 : regions 2 3 4 0 : at 1 3 3"
    x = writer.numbers(1, 2, 3, 8, 9)
    regions, at = np.float32([[0, 1, 6, 9], [2, 2, 2, 2], [-3, 4, 12, 20]]), np.array([0, 1, 1], np.int32)
    (y,) = computed(tmp_path, inputs, f"RoiAlign l 3 1 x regions at y {mode} 2 3 2 0.5", x, regions, at)
    for number, (left, top, right, bottom) in enumerate(regions * 0.5):
        high, wide = max(bottom - top, 1.0) / 2, max(right - left, 1.0) / 3
        for row, column in np.ndindex(2, 3):
            shares = [
                shared(x[at[number]], top + (row + (i + 0.5) / 2) * high, left + (column + (j + 0.5) / 2) * wide)
                for i in range(2)
                for j in range(2)
            ]
            wanted = np.mean([sum(s) for s in shares], 0) if mode else np.max([np.max(s, 0) for s in shares], 0)
            assert np.abs(y[number, :, row, column] - wanted).max() < 1e-5


def shared(x: Array, down: float, across: float) -> list[Array]:
    """The four elements around a point, each times its weight; zeros far outside."""
    _, h, w = x.shape
    if not (-1 <= down <= h and -1 <= across <= w):
        return [np.zeros(len(x), np.float32)] * 4
    down, across = min(max(down, 0), h - 1), min(max(across, 0), w - 1)
    top, left = int(down), int(across)
    bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
    v, u = down - top, across - left
    corners = (
        (top, left, (1 - v) * (1 - u)),
        (top, right, (1 - v) * u),
        (bottom, left, v * (1 - u)),
        (bottom, right, v * u),
    )
    return [x[:, i, j] * share for i, j, share in corners]


def test_suppression_returns_batch_class_and_box_indices(tmp_path: Path) -> None:
    boxes = np.float32([[[0, 0, 2, 2], [0, 0, 2, 1.9], [4, 4, 5, 5]]])
    scores = np.float32([[[0.5, 0.9, 0.3], [0.1, 0.2, 0.8]]])
    inputs, layer = "x 3 1 3 4 0 : s 3 1 2 3 0", "NonMaxSuppression l 2 1 x s y 0 2 0.5 0.25"
    (y,) = computed(tmp_path, inputs, layer, boxes, scores)
    assert y.tolist() == [[0, 0, 1], [0, 0, 2], [0, 1, 2]]


def test_anchors_are_decoded_to_detections(tmp_path: Path) -> None:
    anchors = np.float32([[0.5, 0.5, 0.4, 0.4], [0.2, 0.2, 0.2, 0.2]])
    x, s = np.zeros((1, 2, 1, 4), np.float32), np.float32([[[[0.1, 0.9, 0.2]], [[0.1, 0.3, 0.8]]]])
    layer = "DetectionPostProcess l 2 4 x s y z u v 2 1 1 0 0.1 0.5 2 10 10 5 5 1"
    stored = [Resource("DetectionPostProcess", "l", ["l", anchors])]
    found = computed(tmp_path, "x 4 1 2 1 4 0 : s 4 1 2 1 3 0", layer, x, s, resources=stored)
    boxes, classes, scores, count = found
    assert [y.shape for y in found] == [(1, 2, 4, 1), (1, 2, 1, 1), (1, 2, 1, 1), (1, 1, 1, 1)]
    assert np.allclose(boxes[0, :, :, 0], [[0.3, 0.3, 0.7, 0.7], [0.1, 0.1, 0.3, 0.3]])
    assert classes.reshape(-1).tolist() == [0, 1]
    assert np.allclose(scores.reshape(-1), [0.9, 0.8])
    assert count.item() == 2


def test_grid_sample_matches_its_formula(tmp_path: Path) -> None:
    inputs = "x 4 2 3 5 6 0 : grid 4 2 3 4 2 0"
    agree(writer.structure(inputs, "y", ["GridSample l 2 1 x grid y 2 0 0"]), tmp_path, 1e-5)


def test_gather_nd_selects_slices_by_index_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tnnproto"
    path.write_text(writer.structure("x 3 2 3 4 0 : at 2 2 2 3", "y", ["GatherND l 2 1 x at y 0"]))
    program = onert.compile(load(path, random_weights=0), backends=("reference",))
    x, at = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.int32([[1, 2], [0, 1]])
    (y,) = onert.Execution(program).run([x, at]).values()
    assert y.tolist() == [x[1, 2].tolist(), x[0, 1].tolist()]


def test_each_channel_may_have_its_own_scale(tmp_path: Path) -> None:
    scales = np.array([0.01, 0.02], np.float32)
    weight = np.array([[3, -1], [2, 5]], np.int8).reshape(2, 2, 1, 1)
    factors, bias = np.array([0.001, 0.002], np.float32), np.array([10, -20], np.int32)
    resources = [
        writer.Resource("QuantizedConvolution", "c", ["c", 1, weight, bias, factors]),
        *(writer.Resource("BlobScale", f"{name}_scale_data_", [scales, np.zeros(1, np.int32)]) for name in "xy"),
    ]
    proto = writer.structure("x 4 1 2 1 3 0", "y", ["QuantizedConvolution c 1 1 x y 1 2 2 1 1 1 1 0 0 1 -1 1 1 2"])
    path = writer.write(tmp_path, proto, resources)
    x = np.array([[0.5, -1, 0.2], [2, 1, -0.4]], np.float32).reshape(1, 2, 1, 3)
    stored = np.rint(x[0, :, 0] / scales[:, None])
    sums = (weight[:, :, 0, 0] @ stored + bias[:, None]) * (factors / scales)[:, None]
    wanted = np.clip(np.rint(sums), 0, 127) * scales[:, None]
    program = onert.compile(onert.load(path), backends=("reference",))
    (y,) = onert.Execution(program).run([x]).values()
    assert np.abs(y[0, :, 0] - wanted).max() <= 0.02


@needs_shared
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_loads_with_random_weights(name: str) -> None:
    model = load(FOLDER / name, random_weights=3).model.primary
    words = (FOLDER / name).read_text(encoding="utf-8").splitlines()[3].strip('" ,').split()
    assert [model.operands[o].name for o in model.outputs] == words


@needs_shared
@pytest.mark.parametrize("name", SMALL)
def test_a_small_structure_matches_its_formulas(name: str, tmp_path: Path) -> None:
    agree((FOLDER / name).read_text(encoding="utf-8"), tmp_path, 1e-4, COLUMNS)


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in STRUCTURES if name not in SMALL])
def test_a_structure_matches_its_formulas(name: str, tmp_path: Path) -> None:
    agree((FOLDER / name).read_text(encoding="utf-8"), tmp_path, 1e-4, COLUMNS)
