"""Conversions between all pairs of pixel formats, compared with formulas written here and with Pillow."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from PIL import Image

from onert.image import Format, convert_color
from onert.ir import ExecutionError

HEIGHT, WIDTH = 6, 8
RGB = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
RGBA = np.concatenate((RGB, np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, 1), np.uint8)), -1)
FLAT = np.repeat(np.repeat(RGB[::2, ::2], 2, 0), 2, 1)
"""An image whose colours are constant over 2 x 2 pixels, so that chroma subsampling loses nothing."""
INTERLEAVED = {"RGB": [0, 1, 2], "BGR": [2, 1, 0], "RGBA": [0, 1, 2, 3], "BGRA": [2, 1, 0, 3]}


@pytest.mark.parametrize(("source", "target"), list(product(INTERLEAVED, repeat=2)))
def test_channels_are_reordered_and_alpha_is_added_or_dropped(source: str, target: str) -> None:
    image = RGBA[..., INTERLEAVED[source]]
    opaque = RGBA if source in ("RGBA", "BGRA") else np.concatenate((RGB, np.full((HEIGHT, WIDTH, 1), 255)), -1)
    found = convert_color(image, Format(source), Format(target))
    np.testing.assert_array_equal(found, opaque[..., INTERLEAVED[target]])
    assert found.dtype == np.uint8
    assert not np.shares_memory(found, image)


@pytest.mark.parametrize("source", INTERLEAVED)
def test_grey_matches_pillow(source: str) -> None:
    found = convert_color(RGBA[..., INTERLEAVED[source]], Format(source), Format.GRAY)
    np.testing.assert_array_equal(found[..., 0], np.asarray(Image.fromarray(RGB).convert("L")))


@pytest.mark.parametrize("target", INTERLEAVED)
@pytest.mark.parametrize("channel", [True, False])
def test_grey_becomes_a_colour_with_equal_channels(target: str, channel: bool) -> None:
    gray = RGB[..., :1] if channel else RGB[..., 0]
    found = convert_color(gray, Format.GRAY, Format(target))
    for at in range(3):
        np.testing.assert_array_equal(found[..., at], RGB[..., 0])
    assert (found[..., 3:] == 255).all()


def planes(rgb: np.ndarray, full_range: bool, order: str) -> np.ndarray:
    """Luma and chroma by the matrices of BT.601, for an image that is constant over 2 x 2 pixels."""
    r, g, b = (rgb[..., at].astype(float) for at in range(3))
    if full_range:
        y = 0.299 * r + 0.587 * g + 0.114 * b
        u = 128 - 0.168736 * r - 0.331264 * g + 0.5 * b
        v = 128 + 0.5 * r - 0.418688 * g - 0.081312 * b
    else:
        y = 16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
        u = 128 + (-37.797 * r - 74.203 * g + 112.0 * b) / 255
        v = 128 + (112.0 * r - 93.786 * g - 18.214 * b) / 255
    pair = {"u": u[::2, ::2], "v": v[::2, ::2]}
    chroma = np.stack([pair[name] for name in order], -1).reshape(HEIGHT // 2, WIDTH)
    return np.clip(np.rint(np.concatenate((y, chroma))), 0, 255).astype(np.uint8)


PLANAR = {"NV12": "uv", "NV21": "vu"}


@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize(("target", "order"), PLANAR.items())
@pytest.mark.parametrize("source", INTERLEAVED)
def test_luma_and_chroma_follow_bt_601(source: str, target: str, order: str, full_range: bool) -> None:
    flat = np.concatenate((FLAT, FLAT[..., :1]), -1)[..., INTERLEAVED[source]]
    found = convert_color(flat, Format(source), Format(target), full_range=full_range)
    assert found.shape == (HEIGHT * 3 // 2, WIDTH)
    assert np.abs(found.astype(int) - planes(FLAT, full_range, order)).max() <= 1


def test_full_range_luma_and_chroma_match_pillow() -> None:
    found = convert_color(FLAT, Format.RGB, Format.NV12, full_range=True).astype(int)
    y, u, v = np.moveaxis(np.asarray(Image.fromarray(FLAT).convert("YCbCr")).astype(int), -1, 0)
    assert np.abs(found[:HEIGHT] - y).max() <= 1
    assert np.abs(found[HEIGHT:, 0::2] - u[::2, ::2]).max() <= 1
    assert np.abs(found[HEIGHT:, 1::2] - v[::2, ::2]).max() <= 1


@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize(("source", "order"), PLANAR.items())
@pytest.mark.parametrize("target", INTERLEAVED)
def test_colours_are_recovered_from_luma_and_chroma(source: str, order: str, target: str, full_range: bool) -> None:
    found = convert_color(planes(FLAT, full_range, order), Format(source), Format(target), full_range=full_range)
    rgb = found[..., [INTERLEAVED[target].index(at) for at in range(3)]].astype(int)
    assert np.abs(rgb - FLAT).max() <= 3
    assert (found[..., 3:] == 255).all()


@pytest.mark.parametrize("source", PLANAR)
def test_decoding_is_close_to_tnn_s_integer_formula(source: str) -> None:
    image = np.random.default_rng(3).integers(16, 236, (9, 8), np.uint8)
    pair = np.repeat(np.repeat(image[6:].reshape(3, 4, 2).astype(int), 2, 0), 2, 1) - 128
    u, v = (pair[..., 0], pair[..., 1]) if source == "NV12" else (pair[..., 1], pair[..., 0])
    y = image[:6].astype(int) * 74 - 1135
    expected = np.stack(((y + 129 * u) >> 6, (y - 52 * v - 25 * u) >> 6, (y + 102 * v) >> 6), -1).clip(0, 255)
    found = convert_color(image, Format(source), Format.BGR).astype(int)
    assert np.abs(found - expected).max() <= 4


@pytest.mark.parametrize("target", ["GRAY", "NV12", "NV21"])
@pytest.mark.parametrize("source", ["NV12", "NV21"])
def test_nv12_and_nv21_convert_to_grey_and_to_each_other(source: str, target: str) -> None:
    image = convert_color(FLAT, Format.RGB, Format(source))
    found = convert_color(image, Format(source), Format(target))
    if target == "GRAY":
        expected = np.asarray(Image.fromarray(FLAT).convert("L"))
        assert np.abs(found[..., 0].astype(int) - expected).max() <= 2
    else:
        np.testing.assert_array_equal(found, convert_color(FLAT, Format.RGB, Format(target)))


@pytest.mark.parametrize(("source", "target"), list(product(Format, repeat=2)), ids=lambda f: f.name)
def test_a_batch_is_converted_image_by_image(source: Format, target: Format) -> None:
    images = [convert_color(image, Format.RGB, source) for image in (RGB, RGB[::-1], FLAT)]
    found = convert_color(np.stack(images), source, target)
    for image, one in zip(images, found, strict=True):
        np.testing.assert_array_equal(one, convert_color(image, source, target))


REFUSED = {
    "floats": (RGB.astype(np.float32), "RGB", "RGB", "elements of type float32, expected uint8"),
    "too few channels": (RGB, "RGBA", "RGB", r"a RGBA image has shape \[6, 8, 3\], expected \[height, width, 4\]"),
    "no channels": (RGB[..., 0], "RGB", "GRAY", r"a RGB image has shape \[6, 8\]"),
    "rows of no picture": (
        RGB[:5, :, 0],
        "NV12",
        "RGB",
        r"a NV12 image has shape \[5, 8\], expected 3 rows for each 2",
    ),
    "an odd width": (RGB[:, :7, 0], "NV21", "RGB", "an even width"),
    "odd for chroma": (RGB[:5], "RGB", "NV12", "NV12 has one chroma pair for 2 x 2 pixels; 5 x 8 has an odd side"),
}


@pytest.mark.parametrize(("image", "source", "target", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_arrays_that_do_not_fit_the_format_are_rejected(image: np.ndarray, source: str, target: str, says: str) -> None:
    with pytest.raises(ExecutionError, match=says):
        convert_color(image, Format(source), Format(target))
