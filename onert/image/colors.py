"""Pixel formats and conversions between them.

Colours follow ITU-R BT.601. Images are arrays of uint8, `[height, width, channels]`, or `[batch, height, width,
channels]`; a grey image may omit the channel axis. NV12 and NV21 are `[3 * height / 2, width]`: rows of luma, then rows
of chroma pairs, one pair for each block of four pixels.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from onert.ir import Array, ExecutionError


class Format(Enum):
    """The order of an image's bytes."""

    GRAY = "GRAY"
    RGB = "RGB"
    BGR = "BGR"
    RGBA = "RGBA"
    BGRA = "BGRA"
    NV12 = "NV12"
    NV21 = "NV21"

    @property
    def planar(self) -> bool:
        """Whether luma and chroma are stored separately."""
        return self in (Format.NV12, Format.NV21)

    @property
    def channels(self) -> int:
        """The number of elements of one pixel; 1 if chroma is stored separately."""
        return 1 if self is Format.GRAY or self.planar else len(self.value)


def convert_color(image: Array, source: Format, target: Format, *, full_range: bool = False) -> Array:
    """The image in another format, always as a new array.

    Every format converts to every other. Missing alpha is set to 255. Luma and chroma use the values 16 to 235 and 16
    to 240, as in video, or all 256 values with `full_range`, as in JPEG files. Four pixels share the chroma of their
    mean colour. Raises ExecutionError if the array is not an image of the source format.
    """
    pixels = _checked(image, source)
    if source is target:
        return pixels.copy()
    if source.planar and target.planar:
        return _swapped(pixels)
    color = _rgb_of_planes(pixels, source, full_range) if source.planar else pixels
    order = "RGB" if source.planar else "GGG" if source is Format.GRAY else source.value
    red, green, blue = (color[..., order.index(name) if source is not Format.GRAY else 0] for name in "RGB")
    if target is Format.GRAY:
        return color.copy() if source is Format.GRAY else _luma(red, green, blue)[..., None]
    if target.planar:
        return _planes(np.stack((red, green, blue), -1), target, full_range)
    alpha = color[..., 3] if source in (Format.RGBA, Format.BGRA) else np.full_like(red, 255)
    by_name = {"R": red, "G": green, "B": blue, "A": alpha}
    return np.stack([by_name[name] for name in target.value], -1)


def _checked(image: Array, source: Format) -> Array:
    """The image with all axes but the batch's."""
    if image.dtype != np.uint8:
        raise ExecutionError(f"an image has elements of type {image.dtype}, expected uint8")
    shape = list(image.shape)
    if source.planar:
        if image.ndim not in (2, 3) or shape[-2] % 3 or shape[-1] % 2:
            raise ExecutionError(
                f"a {source.value} image has shape {shape}, expected 3 rows for each 2 of the image and an even width"
            )
        return image
    if source is Format.GRAY and image.ndim == 2:
        return image[..., None]
    if image.ndim not in (3, 4) or shape[-1] != source.channels:
        raise ExecutionError(
            f"a {source.value} image has shape {shape}, expected [height, width, {source.channels}], optionally with a "
            "batch axis in front"
        )
    return image


def _luma(red: Array, green: Array, blue: Array) -> Array:
    """0.299 R + 0.587 G + 0.114 B, rounded, in 16-bit fixed point."""
    r, g, b = (plane.astype(np.uint32) for plane in (red, green, blue))
    gray: Array = ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16).astype(np.uint8)
    return gray


# ---- separate luma and chroma

_LUMA = np.array([0.299, 0.587, 0.114])
_CHROMA = (2 * (1 - _LUMA[2]), 2 * (1 - _LUMA[0]))
"""The divisors of blue and red minus luma, which scale chroma to -0.5 to 0.5."""


def _spans(full_range: bool) -> tuple[float, float, float]:
    """The smallest value of luma, and how many values luma and chroma span."""
    return (0.0, 255.0, 255.0) if full_range else (16.0, 219.0, 224.0)


def _rgb_of_planes(image: Array, source: Format, full_range: bool) -> Array:
    rows = image.shape[-2] // 3 * 2
    start, luma_span, chroma_span = _spans(full_range)
    luma = (image[..., :rows, :].astype(np.float64) - start) / luma_span
    pairs = image[..., rows:, :].reshape(*image.shape[:-2], rows // 2, -1, 2).astype(np.float64)
    pairs = np.repeat(np.repeat((pairs - 128) / chroma_span, 2, -3), 2, -2)
    u, v = (pairs[..., 0], pairs[..., 1]) if source is Format.NV12 else (pairs[..., 1], pairs[..., 0])
    blue, red = luma + _CHROMA[0] * u, luma + _CHROMA[1] * v
    green = (luma - _LUMA[0] * red - _LUMA[2] * blue) / _LUMA[1]
    return _bytes(255 * np.stack((red, green, blue), -1))


def _planes(color: Array, target: Format, full_range: bool) -> Array:
    """Luma and chroma of an RGB image."""
    *batch, height, width, _ = color.shape
    if height % 2 or width % 2:
        raise ExecutionError(f"{target.value} has one chroma pair for 2 x 2 pixels; {height} x {width} has an odd side")
    start, luma_span, chroma_span = _spans(full_range)
    real = color.astype(np.float64) / 255
    luma = start + luma_span * (real @ _LUMA)
    means = real.reshape(*batch, height // 2, 2, width // 2, 2, 3).mean((-4, -2))
    u, v = ((means[..., at] - means @ _LUMA) / by for at, by in ((2, _CHROMA[0]), (0, _CHROMA[1])))
    pair = np.stack((u, v) if target is Format.NV12 else (v, u), -1)
    chroma = 128 + chroma_span * pair.reshape(*batch, height // 2, width)
    return _bytes(np.concatenate((luma, chroma), -2))


def _swapped(image: Array) -> Array:
    """The image with the other order of chroma."""
    out = image.copy()
    rows = image.shape[-2] // 3 * 2
    out[..., rows:, 0::2], out[..., rows:, 1::2] = image[..., rows:, 1::2], image[..., rows:, 0::2]
    return out


def _bytes(real: Array) -> Array:
    out: Array = np.clip(np.rint(real), 0, 255).astype(np.uint8)
    return out
