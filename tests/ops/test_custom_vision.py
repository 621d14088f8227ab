"""Custom operators of MediaPipe and of LiteRT's additional kernels, read from files and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flexible import flexible
from model_writer import LiteRt, Model

import onert
from onert.ir import Array, DType, Quantization

SCALE = Quantization((0.5,), (3,))


def _run(code: str, inputs: list[Array], shape: tuple[int, ...], custom: bytes) -> Array:
    model = Model()
    graph = model.graph()
    given = [graph.input(DType.from_numpy(a.dtype), a.shape) for a in inputs]
    out = graph.tensor(DType.FLOAT32, shape)
    graph.operator(code, given, [out], custom=custom)
    graph.outputs(out)
    found: Array = next(iter(onert.Execution(onert.compile(onert.load(model.done()))).run(inputs).values()))
    return found


def test_a_landmark_matrix_maps_the_region_into_the_output_image() -> None:
    landmarks = np.random.default_rng(1).uniform(0, 100, (1, 6, 3)).astype(np.float32)
    options = {"left_rotation_idx": 0, "right_rotation_idx": 3, "subset_idxs": [1, 2, 4, 5]}
    options |= {"output_width": 16, "output_height": 8, "scale_x": 1.5, "scale_y": 1.25}
    matrix = _run("Landmarks2TransformMatrix", [landmarks], (1, 4, 4), flexible(**options))
    inside = np.linalg.solve(matrix[0], [*landmarks[0, :, :2].T, np.zeros(6), np.ones(6)])[:2].T
    subset = inside[[1, 2, 4, 5]]
    margin = np.array([16 - 16 / 1.5, 8 - 8 / 1.25]) / 2
    np.testing.assert_allclose(subset.min(0), margin, atol=1e-3)
    np.testing.assert_allclose(subset.max(0), [16, 8] - margin, atol=1e-3)
    np.testing.assert_allclose(inside[0, 1], inside[3, 1], atol=1e-3)  # on a horizontal line
    back = _run("TransformLandmarks", [inside[None].astype(np.float32), matrix], (1, 6, 2), b"\0")
    np.testing.assert_allclose(back[0], landmarks[0, :, :2], atol=1e-2)


@pytest.mark.parametrize(
    ("size", "strides", "sentence"),
    [
        ([2, 2, 2, 1], [1, 2, 2, 1], r"ksize is \[2, 2, 2, 1\], expected 4 numbers, the first and last of them 1"),
        ([1, 2, 2, 1], [1, 2, 2, 2], r"strides is \[1, 2, 2, 2\], expected 4 numbers"),
        ([2, 2], [1, 2, 2, 1], r"ksize is \[2, 2\], expected 4 numbers"),
    ],
)
def test_windows_over_batch_or_channels_are_refused(size: list[int], strides: list[int], sentence: str) -> None:
    custom = flexible(ksize=size, strides=strides, padding="VALID", include_batch_in_index=False)
    with pytest.raises(onert.ModelError, match=sentence):
        _run("MaxPoolWithArgmax", [np.zeros((2, 4, 6, 2), np.float32)], (2, 2, 3, 2), custom)


def test_transform_tensor_samples_a_region() -> None:
    features = np.random.default_rng(2).normal(size=(1, 5, 6, 2)).astype(np.float32)
    matrix = np.eye(4, dtype=np.float32)[None].copy()
    matrix[0, 0, 3] = 2
    options = flexible(output_width=3, output_height=5)
    np.testing.assert_allclose(
        _run("TransformTensorBilinear", [features, matrix], (1, 5, 3, 2), options), features[:, :, 2:5]
    )


def _verifying(**options: Any) -> bytes:
    model = Model()
    graph = model.graph()
    x, exact = graph.input(DType.INT8, (3,), SCALE), graph.input(DType.FLOAT32, (3,))
    out = graph.tensor(DType.FLOAT32, (3,))
    graph.operator("NumericVerify", [x, exact], [out], custom=flexible(**options))
    graph.outputs(out)
    return model.done()


def test_numeric_verify_loaded_from_a_file_equals_litert() -> None:
    x, exact = np.int8([3, 5, -7]), np.float32([0.25, 1, -5.5])
    model = _verifying(tolerance=5.0, log_if_failed=False)
    mine = next(iter(onert.Execution(onert.compile(onert.load(model))).run([x, exact]).values()))
    np.testing.assert_array_equal(mine, LiteRt(model)(x, exact)[0])


def test_numeric_verify_rejects_differences_beyond_the_tolerance() -> None:
    execution = onert.Execution(onert.compile(onert.load(_verifying(tolerance=5.0, log_if_failed=True))))
    with pytest.raises(onert.OnertError, match="from its reference"):
        execution.run([np.int8([3, 5, -7]), np.float32([9, 1, -5])])


def test_all_unimplemented_operators_are_named_at_once() -> None:
    model = Model()
    graph = model.graph()
    x = graph.input(DType.FLOAT32, (3,))
    for code in ("FlexErfinv", "FlexRoll"):
        out = graph.tensor(DType.FLOAT32, (3,))
        graph.operator(code, [x], [out], custom=b"\0")
        x = out
    graph.outputs(x)
    with pytest.raises(onert.CompileError, match=r"2 operations have no backend.*FlexErfinv.*FlexRoll"):
        onert.compile(onert.load(model.done()))
