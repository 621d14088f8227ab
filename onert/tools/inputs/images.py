"""Images as inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onert.backend import TensorInfo
from onert.image import Conversion, Format, Layout
from onert.ir import DType, ExecutionError
from onert.ir import shape as shapes

from .given import Given, Reading

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"})
_MODES = {"0to1": (1 / 255, 0.0), "neg1to1": (2 / 255, -1.0), "0to255": (1.0, 0.0), "neg128to127": (1.0, -128.0)}
_CHANNELS = {1: Format.GRAY, 3: Format.RGB, 4: Format.RGBA}


def image(path: Path, info: TensorInfo, reading: Reading) -> Given:
    """An image resized (bilinear) to the input's height and width, its pixels as the mode says.

    The input is `[1, height, width, channels]`, `[height, width, channels]`, `[1, height, width]`, `[height, width]` or
    one of the first two with its channels before the height, channels being 1 (grey), 3 or 4. A quantised input takes
    pixels as they are stored for the modes 0to255 and neg128to127, and for the others the numbers quantised.
    ExecutionError for any other input, and for what is no image.
    """
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 # optional
    except ImportError as error:
        raise ExecutionError("images need Pillow; pip install 'onert-toolkit[images]'") from error
    height, width, channels, layout = _plane(path, info)
    try:
        with Image.open(path) as opened:
            size = opened.size
            decoded = opened.convert("L" if channels == 1 else _CHANNELS[channels].value)
            pixels = np.asarray(decoded.resize((width, height), Image.Resampling.BILINEAR))
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise ExecutionError(f"{path} cannot be read as an image: {error}") from error
    chosen = reading.image_mode or {DType.UINT8: "0to255", DType.INT8: "neg128to127"}.get(info.dtype, "neg1to1")
    scale, offset = _MODES[chosen]
    quantization = info.quantization if chosen in ("0to1", "neg1to1") else None
    whole = (1, height, width, channels) if layout is Layout.NHWC else (1, channels, height, width)
    plane = TensorInfo(info.name, info.dtype, whole, quantization)
    tensor = Conversion(_CHANNELS[channels], scale, offset, layout).to_tensor(pixels, _CHANNELS[channels], plane)
    resized = "" if size == (width, height) else f" resized from {size[0]}x{size[1]} to {width}x{height},"
    return Given(tensor.reshape(tuple(d or 1 for d in info.shape)), f"{path},{resized} pixels as {chosen}")


def _plane(path: Path, info: TensorInfo) -> tuple[int, int, int, Layout]:
    """Height, width, channels and layout of an input that takes an image."""
    dims = [d or 1 for d in info.shape]
    if (len(dims) == 4 and dims[0] == 1) or (len(dims) == 3 and dims[0] == 1 and dims[2] not in _CHANNELS):
        dims = dims[1:]
    if len(dims) == 2 and dims[0] > 1:  # a single row is a vector
        dims = [*dims, 1]
    if len(dims) == 3 and dims[2] in _CHANNELS:
        return dims[0], dims[1], dims[2], Layout.NHWC
    if len(dims) == 3 and dims[0] in _CHANNELS:
        return dims[1], dims[2], dims[0], Layout.NCHW
    raise ExecutionError(
        f"{path} is an image, but input {info.name!r} has shape {shapes.text(info.shape)}, which is no image's: "
        "one has a height, a width, and 1, 3 or 4 channels"
    )
