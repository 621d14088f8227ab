"""Claims about what TNN's layers compute: against formulas in NumPy, layer by layer and in whole structures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontend.tnn import tnn_writer as writer
from frontend.tnn.tnn_selection import LAYERS as SELECTION
from frontend.tnn.tnn_semantics import Network
from shared_material import SHARED, needs_shared

import onert
from onert.frontend.tnn import load

FOLDER = SHARED / "models" / "tnn"
STRUCTURES = sorted(path.name for path in FOLDER.glob("*.tnnproto"))
SMALL = ("darrenyao87-chinese-ocr-angle_net.tnnproto", "darrenyao87-mobilenet_v2-ssd-mobilenetv2_ssd.tnnproto")
COLUMNS = {"MatMul_285": 384}
"""Columns of a weight that no structure says; other weights of products are square."""

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


def agree(text: str, place: Path, tolerance: float, columns: dict[str, int] | None = None) -> None:
    """A file with the weights that NumPy drew gives what NumPy computed."""
    net = Network(text, columns)
    version = 2 if "4206624772" in text.splitlines()[0] else 1
    path = writer.write(place, text, net.resources, net.constants, version)
    program = onert.compile(onert.load(path), backends=("reference",), max_work=10**14)
    results = onert.Execution(program).run(list(net.inputs.values()))
    assert list(results) == list(net.outputs)
    for name, found in results.items():
        wanted = net.outputs[name]
        assert found.shape == wanted.shape
        if "Quantized" in text and tolerance < 1e-3:  # steps of one add up from layer to layer: the direction stays
            assert float((found * wanted).sum() / np.sqrt((found**2).sum() * (wanted**2).sum())) > 0.98
            continue
        reach = max(1.0, float(np.abs(wanted).max()))
        assert float(np.abs(found - wanted).max()) <= tolerance * reach, name


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_tnn_does(name: str, tmp_path: Path) -> None:
    text = writer.structure("x 4 2 4 9 10 0", "y", [LAYERS[name]])
    agree(text, tmp_path, 1 / 31 if name.startswith("integers") else 1e-5)


def test_points_of_a_grid_are_sampled(tmp_path: Path) -> None:
    inputs = "x 4 2 3 5 6 0 : grid 4 2 3 4 2 0"
    agree(writer.structure(inputs, "y", ["GridSample l 2 1 x grid y 2 0 0"]), tmp_path, 1e-5)


def test_slices_are_gathered_by_rows_of_indices(tmp_path: Path) -> None:
    path = tmp_path / "a.tnnproto"
    path.write_text(writer.structure("x 3 2 3 4 0 : at 2 2 2 3", "y", ["GatherND l 2 1 x at y 0"]))
    program = onert.compile(load(path, random_weights=0), backends=("reference",))
    x, at = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.int32([[1, 2], [0, 1]])
    (y,) = onert.Execution(program).run([x, at]).values()
    assert y.tolist() == [x[1, 2].tolist(), x[0, 1].tolist()]


def test_every_channel_may_have_its_own_scale(tmp_path: Path) -> None:
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
def test_structures_load_with_random_weights(name: str) -> None:
    model = load(FOLDER / name, random_weights=3).model.primary
    words = (FOLDER / name).read_text(encoding="utf-8").splitlines()[3].strip('" ,').split()
    assert [model.operands[o].name for o in model.outputs] == words


@needs_shared
@pytest.mark.parametrize("name", SMALL)
def test_small_structures_compute_what_tnn_does(name: str, tmp_path: Path) -> None:
    agree((FOLDER / name).read_text(encoding="utf-8"), tmp_path, 1e-4, COLUMNS)


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in STRUCTURES if name not in SMALL])
def test_structures_compute_what_tnn_does(name: str, tmp_path: Path) -> None:
    agree((FOLDER / name).read_text(encoding="utf-8"), tmp_path, 1e-4, COLUMNS)
