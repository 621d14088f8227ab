"""Images as inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import frozen

from onert.backend import TensorInfo
from onert.image import Conversion, Format, Layout
from onert.ir import DType, ExecutionError
from onert.ir import shape as shapes
from onert.ir.value import Value

from .input_values import MODES, InputValue, ReadSettings
from .pictures import Picture, decode, placed
from .placing import Fit, place

_WHOLE = ("0to255", "neg128to127")
_CHANNELS = {1: Format.GRAY, 3: Format.RGB, 4: Format.RGBA}
_STEP, _MOST = 32, 1280
"""A dynamic height or width becomes a multiple of `_STEP`, and at most `_MOST`."""


@frozen
class Plane(Value):
    """Height, width (None if dynamic), channels and layout of an input that takes an image."""

    height: int | None
    width: int | None
    channels: int
    layout: Layout


def image(path: Path, info: TensorInfo, reading: ReadSettings) -> InputValue:
    """An image file as an input (`from_picture`)."""
    return from_picture(decode(path, str(path)), info, reading)


def from_picture(picture: Picture, info: TensorInfo, reading: ReadSettings) -> InputValue:
    """A picture resized bilinearly to the input's height and width, with pixels scaled as the mode says.

    The input is `[1, height, width, channels]`, `[height, width, channels]`, `[1, height, width]`, `[height, width]` or
    one of the first two with channels first; there are 1 (grey), 3 or 4 channels. A dynamic height or width is that of
    the reading, otherwise a multiple of 32 near the picture's. In a quantised input, the modes 0to255 and neg128to127
    store the pixels directly, and the others quantise the scaled values. Raises ExecutionError for any other input.
    """
    plane = plane_of(info, reading.said.color)
    if plane is None:
        raise ExecutionError(
            f"{picture.name} is an image, but input {info.name!r} has shape {shapes.text(info.shape)}, expected a "
            "height, a width, and 1, 3 or 4 channels"
        )
    height, width = _size(picture, plane, reading)
    placement = place(picture.size, (height, width), reading.fit)
    pixels = placed(picture, placement, plane.channels)
    scale, offset, mode = _numbers(info, plane.channels, reading)
    quantization = None if mode in _WHOLE else info.quantization
    whole = (1, height, width, plane.channels)
    if plane.layout is Layout.NCHW:
        whole = (1, plane.channels, height, width)
    target = TensorInfo(info.name, info.dtype, whole, quantization)
    format_ = _CHANNELS[plane.channels]
    tensor = Conversion(format_, scale, offset, plane.layout).to_tensor(pixels, format_, target)
    shape = tuple(d or 1 for d in info.open_shape) if None not in (plane.height, plane.width) else tensor.shape
    said = [picture.name, *picture.said]
    if picture.size != (height, width):
        how = {
            Fit.STRETCH: "",
            Fit.LETTERBOX: " keeping the aspect ratio, and padded",
            Fit.CROP: " keeping the aspect ratio, and cropped",
        }
        said.append(f"resized from {picture.size[1]}x{picture.size[0]} to {width}x{height}{how[reading.fit]}")
    return InputValue(tensor.reshape(shape), f"{', '.join(said)}, pixels as {mode}", picture, placement)


def plane_of(info: TensorInfo, color: str = "") -> Plane | None:
    """The plane of an input that takes images, None for others. `color` is the colour space in the metadata, if any."""
    dims = list(info.open_shape)
    is_batch = len(dims) == 4 or (len(dims) == 3 and dims[2] not in _CHANNELS)
    if is_batch and dims[0] in (1, None):
        dims = dims[1:]
    if len(dims) == 2 and dims[0] != 1:  # a single row is a vector
        dims = [*dims, 1] if color or None not in dims else []
    if len(dims) == 3 and dims[2] in _CHANNELS:
        return Plane(dims[0], dims[1], dims[2] or 1, Layout.NHWC)
    if len(dims) == 3 and dims[0] in _CHANNELS:
        return Plane(dims[1], dims[2], dims[0] or 1, Layout.NCHW)
    return None


def _size(picture: Picture, plane: Plane, reading: ReadSettings) -> tuple[int, int]:
    """The height and width to resize the picture to."""
    wanted = reading.image_size
    if wanted is None:
        shrink = min(1.0, _MOST / max(picture.size))
        height, width = (max(_STEP, round(side * shrink / _STEP) * _STEP) for side in picture.size)
        wanted = (height, width)
    return plane.height or wanted[0], plane.width or wanted[1]


def _numbers(
    info: TensorInfo, channels: int, reading: ReadSettings
) -> tuple[tuple[float, ...], tuple[float, ...], str]:
    """Scale and offset of pixels, and their description."""
    said = reading.said
    if reading.image_mode is None and info.dtype.is_float and said.deviation:
        means, deviations = np.broadcast_arrays(said.mean or (0.0,), said.deviation)
        if len(deviations) in (1, channels):
            scale = tuple((1 / deviations).tolist())
            offset = tuple((-means / deviations).tolist())
            return scale, offset, f"(p - {_text(means)}) / {_text(deviations)}, as the model's metadata says"
    chosen = reading.image_mode or default_mode(info, channels)
    scale, offset = MODES[chosen]
    if channels not in (len(scale), 3) and len(scale) != 1:
        raise ExecutionError(f"input {info.name!r} takes {channels} channels, expected 3 for --image-mode {chosen}")
    return scale, offset, chosen


def default_mode(info: TensorInfo, channels: int) -> str:
    """The mode if neither the user nor the metadata gives one. Grey floats, mostly digits, get 0 to 1."""
    whole = {DType.UINT8: "0to255", DType.INT8: "neg128to127"}.get(info.dtype)
    return whole or ("0to1" if channels == 1 else "neg1to1")


def _text(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    found = [f"{n:g}" for n in numbers.tolist()]
    return found[0] if len(set(found)) == 1 else f"[{', '.join(found)}]"
