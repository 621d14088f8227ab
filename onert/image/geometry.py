"""Sizes and positions of images: resize, crop, border, paste, affine warp.

The last three axes of an image are height, width and channels. The element type is preserved: integers are rounded and
saturated. Coordinates are in pixels from the upper left one, whose centre is (0, 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir import Array, ExecutionError


class Interpolation(Enum):
    """How values between pixels are computed.

    LINEAR uses the two nearest pixels along each axis. AREA uses all pixels that a pixel of a smaller image covers,
    weighted by their distance; it equals LINEAR when an image is enlarged.
    """

    NEAREST = "nearest"
    LINEAR = "linear"
    AREA = "area"


class Border(Enum):
    """The values outside an image: a constant, the image mirrored at its edge (`cba|abc|cba`), or its edge."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"


class Align(Enum):
    """The position of a smaller image on a larger one."""

    TOP_LEFT = "top left"
    CENTER = "center"


@frozen(eq=False)
class Placed:
    """An image on a larger one: pixel (x, y) of the pasted image is at about (x * scale + left, y * scale + top)."""

    image: Array
    scale: float
    top: int
    left: int


def resize(image: Array, height: int, width: int, interpolation: Interpolation = Interpolation.LINEAR) -> Array:
    """The image in another size; the centres of the corner pixels move inwards by half a pixel's growth, as in OpenCV,
    Pillow and TNN."""
    _require_image(image)
    _require_size(height, width)
    out: Array = image if interpolation is Interpolation.NEAREST else image.astype(np.float32)
    for axis, size in ((-3, height), (-2, width)):
        if out.shape[axis] != size:
            out = _along(out, axis, size, interpolation)
    return out.copy() if interpolation is Interpolation.NEAREST else _as(image.dtype, out)


def _along(image: Array, axis: int, size: int, interpolation: Interpolation) -> Array:
    """The image with another size along one axis."""
    length = image.shape[axis]
    centers = (np.arange(size) + 0.5) * (length / size)
    if interpolation is Interpolation.NEAREST:
        nearest: Array = np.take(image, np.minimum(centers.astype(np.int64), length - 1), axis)
        return nearest
    if interpolation is Interpolation.AREA and size < length:
        covered: Array = np.moveaxis(image, axis, -1) @ _triangles(length, size, centers).T
        return np.moveaxis(covered, -1, axis)
    low = np.floor(centers - 0.5)
    share = (centers - 0.5 - low).astype(np.float32).reshape((-1,) + (1,) * (-1 - axis))
    first, second = (np.take(image, np.clip(low + at, 0, length - 1).astype(np.int64), axis) for at in (0, 1))
    out: Array = first + (second - first) * share
    return out


def _triangles(length: int, size: int, centers: Array) -> Array:
    """Weights of all pixels for each pixel of a smaller row: decreasing with distance, 0 beyond one of its pixels."""
    distance = np.abs(np.arange(length) + 0.5 - centers[:, None]) * (size / length)
    weights = np.maximum(1 - distance, 0)
    out: Array = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return out


def crop(image: Array, top: int, left: int, height: int, width: int) -> Array:
    """A copy of a part of the image. Raises ExecutionError if it is not entirely inside."""
    _require_image(image)
    _require_size(height, width)
    rows, columns = image.shape[-3:-1]
    if not (0 <= top <= rows - height and 0 <= left <= columns - width):
        raise ExecutionError(
            f"a crop of {height} x {width} pixels at row {top}, column {left} is not inside an image of "
            f"{rows} x {columns}"
        )
    return image[..., top : top + height, left : left + width, :].copy()


def make_border(
    image: Array,
    top: int = 0,
    bottom: int = 0,
    left: int = 0,
    right: int = 0,
    border: Border = Border.CONSTANT,
    value: float = 0.0,
) -> Array:
    """The image with additional rows and columns around it."""
    _require_image(image)
    if min(top, bottom, left, right) < 0:
        raise ExecutionError(f"a border is {top}, {bottom}, {left}, {right} pixels wide, expected at least 0")
    widths = [(0, 0)] * (image.ndim - 3) + [(top, bottom), (left, right), (0, 0)]
    if border is Border.CONSTANT:
        return np.pad(image, widths, constant_values=_as(image.dtype, np.float32(value)))
    return np.pad(image, widths, mode="symmetric" if border is Border.REFLECT else "edge")


def resize_and_paste(
    image: Array,
    height: int,
    width: int,
    align: Align = Align.TOP_LEFT,
    value: float = 0.0,
    interpolation: Interpolation = Interpolation.LINEAR,
) -> Placed:
    """The image, as large as fits into this size with its aspect ratio unchanged, surrounded by `value`."""
    _require_image(image)
    _require_size(height, width)
    rows, columns = image.shape[-3:-1]
    scale = min(height / rows, width / columns)
    inside = (max(1, min(height, round(rows * scale))), max(1, min(width, round(columns * scale))))
    spare = (height - inside[0], width - inside[1])
    top, left = (spare[0] // 2, spare[1] // 2) if align is Align.CENTER else (0, 0)
    small = resize(image, *inside, interpolation)
    return Placed(make_border(small, top, spare[0] - top, left, spare[1] - left, value=value), scale, top, left)


def warp_affine(
    image: Array,
    matrix: Array | Sequence[Sequence[float]],
    height: int,
    width: int,
    interpolation: Interpolation = Interpolation.LINEAR,
    border: Border = Border.CONSTANT,
    value: float = 0.0,
) -> Array:
    """The image transformed by `matrix`, of two rows: pixel (x, y) moves to `matrix @ (x, y, 1)`.

    Raises ExecutionError for a matrix without an inverse.
    """
    _require_image(image)
    _require_size(height, width)
    forward = np.asarray(matrix, np.float64)
    if forward.shape != (2, 3) or not np.isfinite(forward).all():
        raise ExecutionError(f"an affine matrix has shape {list(forward.shape)}, expected 2 x 3 finite numbers")
    if abs(np.linalg.det(forward[:, :2])) < 1e-12:
        raise ExecutionError(f"the affine matrix {forward.tolist()} has no inverse")
    back = np.linalg.inv(forward[:, :2])
    places = np.stack(np.meshgrid(np.arange(width), np.arange(height))) - forward[:, 2].reshape(2, 1, 1)
    x, y = np.einsum("ij,jhw->ihw", back, places)
    if interpolation is Interpolation.NEAREST:
        return _as(image.dtype, _at(image, np.floor(y + 0.5), np.floor(x + 0.5), border, value))
    low_x, low_y = np.floor(x), np.floor(y)
    share_x, share_y = (x - low_x).astype(np.float32)[..., None], (y - low_y).astype(np.float32)[..., None]
    out = np.float32(0)
    for down, across in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight = (share_y if down else 1 - share_y) * (share_x if across else 1 - share_x)
        out = out + weight * _at(image, low_y + down, low_x + across, border, value)
    return _as(image.dtype, np.asarray(out))


def _at(image: Array, rows: Array, columns: Array, border: Border, value: float) -> Array:
    """The pixels at integer coordinates, which may be outside the image."""
    places = []
    outside = np.zeros(rows.shape, bool)
    for wanted, length in ((rows, image.shape[-3]), (columns, image.shape[-2])):
        if border is Border.REFLECT:
            turn = np.mod(wanted, 2 * length)
            wanted = np.where(turn < length, turn, 2 * length - 1 - turn)
        outside |= (wanted < 0) | (wanted >= length)
        places.append(np.clip(wanted, 0, length - 1).astype(np.int64))
    found = image[..., places[0], places[1], :].astype(np.float32)
    if border is Border.CONSTANT:
        found[..., outside, :] = value
    return found


def _as(dtype: np.dtype[np.generic], real: Array | np.float32) -> Array:
    """Real numbers as elements: rounded and saturated if these are integers."""
    if dtype.kind not in "iu":
        return np.asarray(real).astype(dtype)
    limits = np.iinfo(dtype)  # type: ignore[type-var] # the kind says so
    out: Array = np.clip(np.rint(real), limits.min, limits.max).astype(dtype)
    return out


def _require_image(image: Array) -> None:
    if image.ndim < 3 or 0 in image.shape:
        raise ExecutionError(f"an image has shape {list(image.shape)}, expected [height, width, channels] at the end")


def _require_size(height: int, width: int) -> None:
    if height < 1 or width < 1:
        raise ExecutionError(f"the size is {height} x {width} pixels, expected at least 1 x 1")
