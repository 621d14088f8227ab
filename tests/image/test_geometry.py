"""Resizing, cropping, borders and affine warps, compared with formulas written here and with Pillow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from PIL import Image

from onert.image import Align, Border, Interpolation, crop, make_border, resize, resize_and_paste, warp_affine
from onert.ir import ExecutionError

IMAGE = np.random.default_rng(4).integers(0, 256, (7, 9, 3), np.uint8)
SIZES = [(7, 9), (14, 18), (3, 4), (5, 20), (20, 5), (1, 1), (7, 8)]
NEAREST, LINEAR, AREA = Interpolation.NEAREST, Interpolation.LINEAR, Interpolation.AREA


def bilinear(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear resizing by its definition: half-pixel centres, edges repeated."""
    rows, columns, channels = image.shape
    out = np.empty((height, width, channels))
    for y, x in product(range(height), range(width)):
        sy, sx = (y + 0.5) * rows / height - 0.5, (x + 0.5) * columns / width - 0.5
        y0, x0 = int(np.floor(sy)), int(np.floor(sx))
        near = [(yy, xx, (1 - abs(sy - yy)) * (1 - abs(sx - xx))) for yy in (y0, y0 + 1) for xx in (x0, x0 + 1)]
        out[y, x] = sum(w * image[min(max(yy, 0), rows - 1), min(max(xx, 0), columns - 1)] for yy, xx, w in near)
    return out


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_linear_resizing_follows_its_definition(size: tuple[int, int], dtype: Any) -> None:
    found = resize(IMAGE.astype(dtype), *size)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, bilinear(IMAGE, *size), atol=0.501 if dtype is np.uint8 else 1e-3)


FILTERS = {NEAREST: (Image.Resampling.NEAREST, 0), AREA: (Image.Resampling.BILINEAR, 1)}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("interpolation", FILTERS, ids=lambda i: i.name)
def test_nearest_and_area_resizing_match_pillow(size: tuple[int, int], interpolation: Interpolation) -> None:
    kernel, tolerance = FILTERS[interpolation]
    expected = np.asarray(Image.fromarray(IMAGE).resize(size[::-1], kernel)).astype(int)
    assert np.abs(resize(IMAGE, *size, interpolation).astype(int) - expected).max() <= tolerance


@pytest.mark.parametrize("interpolation", Interpolation, ids=lambda i: i.name)
def test_resizing_preserves_a_constant_image_and_returns_a_copy(interpolation: Interpolation) -> None:
    flat = np.full((5, 6, 2), 200, np.uint8)
    for size in ((5, 6), (3, 11)):
        found = resize(flat, *size, interpolation)
        assert (found == 200).all()
        assert not np.shares_memory(found, flat)


@pytest.mark.parametrize(("top", "left", "height", "width"), [(0, 0, 7, 9), (2, 3, 4, 5), (6, 8, 1, 1)])
def test_a_crop_matches_pillow(top: int, left: int, height: int, width: int) -> None:
    expected = np.asarray(Image.fromarray(IMAGE).crop((left, top, left + width, top + height)))
    np.testing.assert_array_equal(crop(IMAGE, top, left, height, width), expected)


BORDERS = {
    Border.CONSTANT: [9, 9, 1, 2, 3, 9, 9],
    Border.REFLECT: [2, 1, 1, 2, 3, 3, 2],
    Border.EDGE: [1, 1, 1, 2, 3, 3, 3],
}


@pytest.mark.parametrize(("border", "row"), BORDERS.items(), ids=lambda x: getattr(x, "name", ""))
def test_borders_are_filled_in_the_requested_mode(border: Border, row: list[int]) -> None:
    line = np.array([1, 2, 3], np.uint8).reshape(1, 3, 1)
    assert make_border(line, left=2, right=2, border=border, value=9).ravel().tolist() == row
    assert make_border(line.reshape(3, 1, 1), top=2, bottom=2, border=border, value=9).ravel().tolist() == row
    assert warp_affine(line, [[1, 0, 2], [0, 1, 0]], 1, 7, NEAREST, border, 9).ravel().tolist() == row
    assert warp_affine(line, [[1, 0, 2], [0, 1, 0]], 1, 7, LINEAR, border, 9).ravel().tolist() == row


PASTED = {
    # requested size and alignment; size and position of the pasted image
    "wide into a square": ((12, 12), Align.CENTER, (9, 12), (1, 0)),
    "wide into a square, upper left": ((12, 12), Align.TOP_LEFT, (9, 12), (0, 0)),
    "into a tall": ((21, 9), Align.CENTER, (7, 9), (7, 0)),
    "into a wide": ((7, 20), Align.CENTER, (7, 9), (0, 5)),
    "same": ((7, 9), Align.CENTER, (7, 9), (0, 0)),
}


@pytest.mark.parametrize(("size", "align", "inside", "position"), PASTED.values(), ids=PASTED.keys())
def test_an_image_is_pasted_with_its_aspect_ratio_preserved(
    size: tuple[int, int], align: Align, inside: tuple[int, int], position: tuple[int, int]
) -> None:
    found = resize_and_paste(IMAGE, *size, align, value=114)
    assert found.image.shape == (*size, 3)
    assert (found.top, found.left) == position
    assert found.scale == min(size[0] / 7, size[1] / 9)
    (top, left), (height, width) = position, inside
    np.testing.assert_array_equal(found.image[top : top + height, left : left + width], resize(IMAGE, *inside))
    outside = np.ones(size, bool)
    outside[top : top + height, left : left + width] = False
    assert (found.image[outside] == 114).all()


ANGLE = np.deg2rad(20)
MATRICES = {
    "identity": [[1, 0, 0], [0, 1, 0]],
    "shift": [[1, 0, 2], [0, 1, -1]],
    "half a pixel": [[1, 0, 0.5], [0, 1, 0.25]],
    "grow": [[2, 0, 0.6], [0, 1.5, 0.3]],
    "turn": [[np.cos(ANGLE), -np.sin(ANGLE), 3], [np.sin(ANGLE), np.cos(ANGLE), -1]],
    "shear and mirror": [[-1, 0.25, 8], [0.125, 1, 0]],
}


def warped(image: np.ndarray, matrix: list[list[float]], height: int, width: int, linear: bool) -> np.ndarray:
    """An affine warp by its definition, with 7 outside the image."""
    rows, columns, channels = image.shape
    out = np.zeros((height, width, channels))
    back = np.linalg.inv(np.array([*matrix, [0, 0, 1]], float))
    for y, x in product(range(height), range(width)):
        sx, sy, _ = back @ (x, y, 1)
        if linear:
            y0, x0 = int(np.floor(sy)), int(np.floor(sx))
            near = [(yy, xx, (1 - abs(sy - yy)) * (1 - abs(sx - xx))) for yy in (y0, y0 + 1) for xx in (x0, x0 + 1)]
        else:
            near = [(int(np.floor(sy + 0.5)), int(np.floor(sx + 0.5)), 1.0)]
        for yy, xx, weight in near:
            inside = 0 <= yy < rows and 0 <= xx < columns
            out[y, x] += weight * (image[yy, xx] if inside else 7)
    return out


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
@pytest.mark.parametrize("interpolation", [NEAREST, LINEAR], ids=lambda i: i.name)
def test_an_affine_warp_follows_its_definition(matrix: list[list[float]], interpolation: Interpolation) -> None:
    found = warp_affine(IMAGE, matrix, 8, 10, interpolation, value=7)
    expected = warped(IMAGE, matrix, 8, 10, interpolation is LINEAR)
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found, expected, atol=0.51)


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
def test_an_affine_warp_matches_pillow_away_from_the_border(matrix: list[list[float]]) -> None:
    back = np.linalg.inv(np.array([*matrix, [0, 0, 1]], float))[:2]
    (a, b, c), (d, e, f) = back
    corner = (a, b, c + 0.5 - 0.5 * (a + b), d, e, f + 0.5 - 0.5 * (d + e))  # Pillow's centres are at halves
    transformed = Image.fromarray(IMAGE).transform((10, 8), Image.Transform.AFFINE, corner, Image.Resampling.BILINEAR)
    sources = back @ np.stack([*np.meshgrid(np.arange(10), np.arange(8)), np.ones((8, 10))]).reshape(3, -1)
    inside = ((sources >= 0) & (sources <= [[8], [6]])).all(0).reshape(8, 10)
    difference = np.abs(warp_affine(IMAGE, matrix, 8, 10).astype(int) - np.asarray(transformed).astype(int))
    assert inside.sum() > 10
    assert difference[inside].max() <= 1


WORK: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "resize": lambda image: resize(image, 3, 5),
    "area": lambda image: resize(image, 3, 5, AREA),
    "crop": lambda image: crop(image, 1, 2, 3, 4),
    "border": lambda image: make_border(image, 1, 2, 3, 4, Border.REFLECT),
    "paste": lambda image: resize_and_paste(image, 6, 6).image,
    "warp": lambda image: warp_affine(image, MATRICES["turn"], 8, 8, border=Border.EDGE),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK.keys())
def test_a_batch_is_processed_image_by_image(work: Callable[[np.ndarray], np.ndarray]) -> None:
    batch = np.stack([IMAGE, IMAGE[::-1], IMAGE[:, ::-1]])
    for image, found in zip(batch, work(batch), strict=True):
        np.testing.assert_array_equal(found, work(image))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no channels": (lambda: resize(IMAGE[..., 0], 2, 2), r"shape \[7, 9\], expected \[height, width, channels\]"),
    "no pixels": (lambda: crop(IMAGE[:0], 0, 0, 1, 1), r"an image has shape \[0, 9, 3\]"),
    "no size": (lambda: resize(IMAGE, 0, 2), "the size is 0 x 2 pixels, expected at least"),
    "outside": (lambda: crop(IMAGE, 5, 0, 3, 2), "3 x 2 pixels at row 5, column 0 is not inside an image of 7 x 9"),
    "before": (lambda: crop(IMAGE, -1, 0, 3, 2), "at row -1"),
    "a negative border": (lambda: make_border(IMAGE, left=-1), "a border is 0, 0, -1, 0 pixels wide"),
    "no matrix": (lambda: warp_affine(IMAGE, [[1, 0], [0, 1]], 2, 2), r"shape \[2, 2\], expected 2 x 3"),
    "no numbers": (lambda: warp_affine(IMAGE, [[np.nan, 0, 0], [0, 1, 0]], 2, 2), "finite"),
    "onto a line": (lambda: warp_affine(IMAGE, [[1, 2, 0], [2, 4, 0]], 2, 2), "has no inverse"),
}


@pytest.mark.parametrize(("work", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_geometry_is_rejected(work: Callable[[], object], says: str) -> None:
    with pytest.raises(ExecutionError, match=says):
        work()
