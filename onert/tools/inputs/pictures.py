"""Decode pictures of any format to upright pixels with 8 bits per channel."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array, ExecutionError
from onert.ir.value import Value

from .placing import Placement

MAX_PIXELS = 100_000_000
"""The most pixels of a picture that is decoded."""
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
PADDING = 114
"""The grey value that pads a picture, the same as in YOLO's exporters."""
_HIGHEST_16 = 65535


@frozen(eq=False)
class Picture(Value):
    """`pixels` are uint8 `[height, width, 4]` (red, green, blue, opacity); `said` describes the decoding."""

    name: str
    pixels: Array
    said: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[0], self.pixels.shape[1]

    @property
    def rgb(self) -> Array:
        """The picture blended onto white: uint8 `[height, width, 3]`."""
        opacity = self.pixels[..., 3:].astype(np.uint16)
        if (opacity == 255).all():
            return np.ascontiguousarray(self.pixels[..., :3])
        on_white = self.pixels[..., :3] * opacity + 255 * (255 - opacity)
        return ((on_white + 127) // 255).astype(np.uint8)


def pillow() -> Any:
    """Pillow's `Image`. Raises ExecutionError if Pillow is not installed."""
    try:
        from PIL import Image  # noqa: PLC0415 # optional
    except ImportError as error:
        raise ExecutionError("images need Pillow; pip install 'onert-toolkit[images]'") from error
    return Image


def decode(source: Path | bytes, name: str) -> Picture:
    """Decode a file or its content into a picture, rotated as its EXIF orientation says.

    16 bits per channel are reduced to 8. Only the first picture of an animation is decoded. Raises ExecutionError if
    the content is not a picture or has more than MAX_PIXELS pixels.
    """
    image_type = pillow()
    try:
        with (
            warnings.catch_warnings(),
            image_type.open(source if isinstance(source, Path) else io.BytesIO(source), formats=_FORMATS) as opened,
        ):
            warnings.simplefilter("ignore")  # about odd tags, and large pictures, which are rejected below
            width, height = opened.size
            if width * height > MAX_PIXELS:
                raise ExecutionError(
                    f"{name} has {width} x {height} pixels, expected at most {MAX_PIXELS} in a picture"
                )
            count = getattr(opened, "n_frames", 1)
            opened.load()
            upright, turned = _upright(opened)
            pixels = _pixels(upright)
    except (ExecutionError, MemoryError):
        raise
    except image_type.DecompressionBombError as error:
        raise ExecutionError(f"{name} has more than {MAX_PIXELS} pixels, expected at most that many") from error
    except Exception as error:  # decoders raise all kinds of errors for damaged files
        raise ExecutionError(f"{name} cannot be read as an image: {error}") from error
    said = (*((f"the first of {count} pictures",) if count > 1 else ()), *turned)
    return Picture(name, pixels, said)


def _upright(image: Any) -> tuple[Any, tuple[str, ...]]:
    from PIL import ImageOps  # noqa: PLC0415 # optional

    try:
        orientation = image.getexif().get(0x0112, 1)
    except Exception:  # damaged EXIF is ignored
        return image, ()
    if orientation not in range(2, 9):
        return image, ()
    return ImageOps.exif_transpose(image), ("rotated as its EXIF orientation says",)


def _pixels(image: Any) -> Array:
    """Red, green, blue and opacity of an image of any mode."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _shallow(np.asarray(image))
    found: Array = np.asarray(image.convert("RGBA"))
    return found


def _shallow(deep: Array) -> Array:
    """Reduce grey values of more than 8 bits to 8: 16-bit ones from 65535, reals from 1 if none is larger, to 255."""
    real = np.nan_to_num(deep.astype(np.float64))
    highest = (
        1.0 if deep.dtype.kind == "f" and real.max(initial=0) <= 1 else 255.0 if real.max(initial=0) <= 255 else 0.0
    )
    if deep.dtype.itemsize == 2 or highest == 0:
        highest = _HIGHEST_16
    grey = np.clip(np.rint(real * (255 / highest)), 0, 255).astype(np.uint8)
    return np.dstack([grey, grey, grey, np.full_like(grey, 255)])


def placed(picture: Picture, placement: Placement, channels: int) -> Array:
    """The picture resized bilinearly and placed in its plane: uint8 `[height, width, channels]`, channels 1, 3 or 4."""
    image_type = pillow()
    pixels = picture.pixels if channels == 4 else picture.rgb
    image = image_type.fromarray(pixels)
    if channels == 1:
        image = image.convert("L")
    size = (placement.width, placement.height)
    if size[0] * size[1] > MAX_PIXELS:
        raise ExecutionError(
            f"{picture.name} becomes {size[0]} x {size[1]} pixels, expected at most {MAX_PIXELS} in a picture"
        )
    resized = np.asarray(image.resize(size, image_type.Resampling.BILINEAR))
    resized = resized.reshape(*resized.shape[:2], channels)
    if (placement.top, placement.left, size[1], size[0]) == (0, 0, *placement.plane):
        return resized
    plane = np.full((*placement.plane, channels), PADDING, np.uint8)
    top, bottom, left, right = placement.window
    plane[top:bottom, left:right] = resized[
        top - placement.top : bottom - placement.top, left - placement.left : right - placement.left
    ]
    return plane
