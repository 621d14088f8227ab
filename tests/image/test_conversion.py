"""Conversion of images to tensors and back: layouts, scale and bias, sizes, element types."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend import TensorInfo
from onert.image import Conversion, Format, Interpolation, Layout, convert_color, resize
from onert.ir import DType, ExecutionError, Quantization

RGB = np.random.default_rng(5).integers(0, 256, (6, 8, 3), np.uint8)
SCALES = {1: (0.5,), 3: (0.5, 0.25, 2.0), 4: (0.5, 0.25, 2.0, 1.0)}
BIASES = {1: (3.0,), 3: (-1.0, 2.0, 0.5), 4: (-1.0, 2.0, 0.5, 0.0)}
TENSOR_FORMATS = (Format.GRAY, Format.RGB, Format.BGR, Format.RGBA, Format.BGRA)


def info(*shape: int | None, dtype: DType = DType.FLOAT32, quantization: Quantization | None = None) -> TensorInfo:
    return TensorInfo("image", dtype, shape, quantization)


@pytest.mark.parametrize("layout", Layout, ids=lambda x: x.name)
@pytest.mark.parametrize("per_channel", [True, False], ids=["per channel", "for all"])
@pytest.mark.parametrize(("source", "format_"), list(product(Format, TENSOR_FORMATS)), ids=lambda f: f.name)
def test_a_tensor_is_scale_times_pixel_plus_bias_and_converts_back(
    source: Format, format_: Format, per_channel: bool, layout: Layout
) -> None:
    channels = format_.channels if per_channel else 1
    conversion = Conversion(format_, SCALES[channels], BIASES[channels], layout)
    image = convert_color(RGB, Format.RGB, source)
    pixels = convert_color(image, source, format_).astype(np.float32)
    expected = pixels * np.float32(SCALES[channels]) + np.float32(BIASES[channels])
    if layout is Layout.NCHW:
        expected = expected.transpose(2, 0, 1)
    tensor_info = info(1, *expected.shape)
    tensor = conversion.to_tensor(image, source, tensor_info)
    np.testing.assert_array_equal(tensor, expected[None])
    np.testing.assert_array_equal(conversion.to_image(tensor, tensor_info), pixels.astype(np.uint8)[None])
    back = conversion.to_image(tensor[0], tensor_info, Format.NV21)
    np.testing.assert_array_equal(back, convert_color(pixels.astype(np.uint8), format_, Format.NV21))


MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


@pytest.mark.parametrize("deviation", [DEVIATION, 127.5], ids=["per channel", "for all"])
def test_normalisation_uses_mean_and_deviation_in_pixel_units(deviation: Any) -> None:
    tensor = Conversion.normalized(MEAN, deviation).to_tensor(RGB, Format.RGB, info(1, 6, 8, 3))
    np.testing.assert_allclose(tensor[0], (RGB - np.array(MEAN)) / np.array(deviation), atol=1e-5)


PLANES: dict[str, tuple[tuple[int | None, ...], Layout, Format, tuple[int, ...]]] = {
    "batch": ((1, 6, 8, 3), Layout.NHWC, Format.RGB, (1, 6, 8, 3)),
    "no batch": ((6, 8, 3), Layout.NHWC, Format.RGB, (6, 8, 3)),
    "no batch, channels first": ((3, 6, 8), Layout.NCHW, Format.RGB, (3, 6, 8)),
    "grey plane": ((6, 8), Layout.NHWC, Format.GRAY, (6, 8)),
    "grey plane, channels first": ((6, 8), Layout.NCHW, Format.GRAY, (6, 8)),
    "open size": ((1, None, None, 3), Layout.NHWC, Format.BGR, (1, 6, 8, 3)),
    "open batch": ((None, 3, 4, 3), Layout.NHWC, Format.RGB, (1, 3, 4, 3)),
    "all open": ((None, None, None, None), Layout.NCHW, Format.RGB, (1, 3, 6, 8)),
    "smaller": ((1, 3, 4, 4), Layout.NHWC, Format.RGBA, (1, 3, 4, 4)),
    "larger, channels first": ((1, 3, 12, 20), Layout.NCHW, Format.BGR, (1, 3, 12, 20)),
}


@pytest.mark.parametrize(("shape", "layout", "format_", "expected_shape"), PLANES.values(), ids=PLANES.keys())
def test_an_image_is_resized_to_the_shape_of_the_input(
    shape: tuple[int | None, ...], layout: Layout, format_: Format, expected_shape: tuple[int, ...]
) -> None:
    tensor = Conversion(format_, layout=layout).to_tensor(RGB, Format.RGB, info(*shape))
    assert tensor.shape == expected_shape
    size = [
        d
        for at, d in enumerate(expected_shape[-3:])
        if len(expected_shape) == 2 or at != (2 if layout is Layout.NHWC else 0)
    ]
    pixels = resize(convert_color(RGB, Format.RGB, format_), size[-2], size[-1])
    expected = pixels if layout is Layout.NHWC else pixels.transpose(2, 0, 1)
    np.testing.assert_array_equal(tensor.ravel(), expected.ravel())


def test_images_of_a_batch_are_converted_together() -> None:
    batch = np.stack([RGB, RGB[::-1]])
    tensor = Conversion(Format.BGR).to_tensor(batch, Format.RGB, info(2, 6, 8, 3))
    np.testing.assert_array_equal(tensor, batch[..., ::-1].astype(np.float32))


QUANT = Quantization((1 / 128,), (3,))
STORED: dict[str, tuple[DType, Quantization | None, Callable[[np.ndarray], np.ndarray]]] = {
    "float16": (DType.FLOAT16, None, lambda real: real.astype(np.float16)),
    "quantised": (DType.INT8, QUANT, lambda real: np.clip(np.rint(real * 128) + 3, -128, 127).astype(np.int8)),
    "plain bytes": (DType.UINT8, None, lambda real: np.clip(np.rint(real), 0, 255).astype(np.uint8)),
    "plain signed bytes": (DType.INT8, None, lambda real: np.clip(np.rint(real), -128, 127).astype(np.int8)),
}


@pytest.mark.parametrize(("dtype", "quantization", "store"), STORED.values(), ids=STORED.keys())
@pytest.mark.parametrize("scale", [1 / 255, 1.0, -2.0])
def test_values_are_stored_in_the_element_type_of_the_input(
    dtype: DType, quantization: Quantization | None, store: Callable[[np.ndarray], np.ndarray], scale: float
) -> None:
    tensor_info = info(1, 6, 8, 3, dtype=dtype, quantization=quantization)
    tensor = Conversion(scale=scale).to_tensor(RGB, Format.RGB, tensor_info)
    assert tensor.dtype == dtype.numpy
    np.testing.assert_array_equal(tensor[0], store(RGB.astype(np.float32) * np.float32(scale)))


def test_a_quantised_output_is_converted_to_an_image() -> None:
    tensor_info = info(1, 6, 8, 3, dtype=DType.UINT8, quantization=Quantization((1 / 255,), (0,)))
    conversion = Conversion(scale=1 / 255)
    np.testing.assert_array_equal(conversion.to_image(RGB[None], tensor_info)[0], RGB)
    wild = np.array([-1e9, 1e9, 0.503], np.float32).reshape(1, 1, 3)
    assert conversion.to_image(wild, info(1, 1, 3)).ravel().tolist() == [0, 255, 128]


def test_a_model_classifies_a_converted_picture() -> None:
    from PIL import Image

    digits = REPOSITORY / "nnpackage" / "examples" / "digits_float"
    program = onert.compile(onert.load(digits), backends=("reference",))
    picture = np.asarray(Image.open(digits / "samples" / "3.png").convert("RGB"))
    tensor = Conversion(Format.GRAY, 1 / 255).to_tensor(picture, Format.RGB, program.inputs[0])
    (scores,) = onert.Execution(program).run([tensor]).values()
    assert scores.argmax() == 3


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a tensor of planes": (lambda: Conversion(Format.NV12), "a tensor has format NV12"),
    "no scale": (lambda: Conversion(scale=0), "expected numbers other than 0"),
    "no deviation": (lambda: Conversion.normalized(0, 0), "deviation is .*, expected numbers other than 0"),
    "too few scales": (lambda: Conversion(scale=(1, 2)), "scale has 2 numbers, expected 1 or 3 for RGB"),
    "too many biases": (lambda: Conversion(Format.GRAY, bias=(1, 2)), "bias has 2 numbers, expected 1 or 1 for GRAY"),
    "other channels": (
        lambda: Conversion().to_tensor(RGB, Format.RGB, info(1, 6, 8, 1)),
        r"input 'image' has shape \[1, 6, 8, 1\], which is no RGB image in NHWC",
    ),
    "another layout": (
        lambda: Conversion(layout=Layout.NCHW).to_tensor(RGB, Format.RGB, info(1, 6, 8, 3)),
        "which is no RGB image in NCHW",
    ),
    "no picture": (lambda: Conversion().to_tensor(RGB, Format.RGB, info(10)), r"shape \[10\]"),
    "another batch": (
        lambda: Conversion().to_tensor(RGB, Format.RGB, info(2, 6, 8, 3)),
        "input 'image' is given 1 images, expected 2",
    ),
    "another size": (
        lambda: Conversion(interpolation=None).to_tensor(RGB, Format.RGB, info(1, 3, 4, 3)),
        "given an image of 6 x 8 pixels, expected 3 x 4",
    ),
    "no image back": (lambda: Conversion().to_image(np.zeros((6, 8), np.float32), info(6, 8)), "is no RGB image in"),
}


@pytest.mark.parametrize(("work", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_conversions_are_rejected(work: Callable[[], object], says: str) -> None:
    with pytest.raises(ExecutionError, match=says):
        work()


def test_an_image_of_the_right_size_is_not_resized() -> None:
    found = Conversion(interpolation=None).to_tensor(RGB, Format.RGB, info(1, 6, 8, 3))
    np.testing.assert_array_equal(found[0], RGB)
    area = Conversion(interpolation=Interpolation.AREA).to_tensor(RGB, Format.RGB, info(1, 3, 4, 3))
    np.testing.assert_array_equal(area[0], resize(RGB, 3, 4, Interpolation.AREA))
