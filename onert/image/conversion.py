"""Conversions between images and tensors: a model's preprocessing as one value."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from attrs import Attribute, field, frozen

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError, dequantize, quantize
from onert.ir import shape as shapes
from onert.ir.value import Value

from .colors import Format, convert_color
from .geometry import Interpolation, resize


class Layout(Enum):
    """The order of a tensor's dimensions."""

    NHWC = "NHWC"
    NCHW = "NCHW"


def _numbers(values: float | Sequence[float]) -> tuple[float, ...]:
    return tuple(map(float, values)) if isinstance(values, Sequence) else (float(values),)


def _no_zero(conversion: Conversion, attribute: Attribute[tuple[float, ...]], values: tuple[float, ...]) -> None:
    if 0.0 in values:
        raise ExecutionError(f"scale is {values}, expected numbers other than 0")


@frozen
class Conversion(Value):
    """How pixels become a tensor: `scale * pixel + bias` (TNN's MatConvertParam), and `(element - bias) / scale` back.

    - `format`: the order of the tensor's channels, not NV12 or NV21
    - `scale`, `bias`: one number for all channels, or one for each in the order of `format`
    - `layout`: the order of the tensor's dimensions
    - `interpolation`: how images of other sizes are resized; None rejects them
    - `full_range`: whether luma and chroma of NV12 and NV21 use all 256 values
    """

    format: Format = Format.RGB
    scale: tuple[float, ...] = field(default=(1.0,), converter=_numbers, validator=_no_zero)
    bias: tuple[float, ...] = field(default=(0.0,), converter=_numbers)
    layout: Layout = Layout.NHWC
    interpolation: Interpolation | None = Interpolation.LINEAR
    full_range: bool = False

    def __attrs_post_init__(self) -> None:
        if self.format.planar:
            raise ExecutionError(f"a tensor has format {self.format.value}, expected one with interleaved channels")
        for name, values in (("scale", self.scale), ("bias", self.bias)):
            if len(values) not in (1, self.format.channels):
                raise ExecutionError(
                    f"{name} has {len(values)} numbers, expected 1 or {self.format.channels} for {self.format.value}"
                )

    @classmethod
    def normalized(
        cls,
        mean: float | Sequence[float],
        deviation: float | Sequence[float],
        format: Format = Format.RGB,  # noqa: A002 # the field's name
        layout: Layout = Layout.NHWC,
    ) -> Conversion:
        """`(pixel - mean) / deviation`, both on the scale of pixels, 0 to 255."""
        means, deviations = np.broadcast_arrays(_numbers(mean), _numbers(deviation))
        if not deviations.all():
            raise ExecutionError(f"deviation is {deviations.tolist()}, expected numbers other than 0")
        return cls(format, (1 / deviations).tolist(), (-means / deviations).tolist(), layout)

    def to_tensor(self, image: Array, source: Format, info: TensorInfo) -> Array:
        """Elements for an input from an image, or from a batch of images.

        The image is resized if the input has a known, different size. Numbers are quantised if the input is, and
        rounded and saturated for other integer inputs. Raises ExecutionError if the image or the batch does not fit.
        """
        batch, height, width = self._plane(info)
        pixels = convert_color(image, source, self.format, full_range=self.full_range)
        if pixels.ndim == 3:
            pixels = pixels[None]
        size = (height or pixels.shape[1], width or pixels.shape[2])
        if size != pixels.shape[1:3]:
            if self.interpolation is None:
                raise ExecutionError(
                    f"input {info.name!r} is given an image of {pixels.shape[1]} x {pixels.shape[2]} pixels, expected "
                    f"{size[0]} x {size[1]}"
                )
            pixels = resize(pixels, *size, self.interpolation)
        if batch not in (None, len(pixels)):
            raise ExecutionError(f"input {info.name!r} is given {len(pixels)} images, expected {batch}")
        real = pixels.astype(np.float32) * np.array(self.scale, np.float32) + np.array(self.bias, np.float32)
        if self.layout is Layout.NCHW:
            real = np.moveaxis(real, -1, 1)
        if len(info.shape) < 4:
            real = real[0]
        return _stored(real.reshape(size) if len(info.shape) == 2 else real, info)

    def to_image(self, tensor: Array, info: TensorInfo, target: Format | None = None) -> Array:
        """The image, or the batch of images, in a tensor; converted to `target` if that is given.

        Pixels are rounded and saturated. A tensor of rank 3 is one image.
        """
        real = tensor.astype(np.float32)
        if info.dtype.is_integer and info.quantization is not None:
            real = dequantize(tensor, info.quantization).astype(np.float32)
        if real.ndim == 2 and self.format is Format.GRAY:
            real = real[None] if self.layout is Layout.NCHW else real[..., None]
        if real.ndim not in (3, 4) or real.shape[self._channel_axis] != self.format.channels:
            raise ExecutionError(f"{info.name!r} has shape {list(tensor.shape)}, which is no {self._described}")
        if self.layout is Layout.NCHW:
            real = np.moveaxis(real, -3, -1)
        numbers = (real - np.array(self.bias, np.float32)) / np.array(self.scale, np.float32)
        pixels = np.clip(np.rint(numbers), 0, 255).astype(np.uint8)
        return pixels if target is None else convert_color(pixels, self.format, target, full_range=self.full_range)

    @property
    def _channel_axis(self) -> int:
        return -1 if self.layout is Layout.NHWC else -3

    @property
    def _described(self) -> str:
        return f"{self.format.value} image in {self.layout.value}"

    def _plane(self, info: TensorInfo) -> tuple[int | None, int | None, int | None]:
        """The numbers of images, rows and columns that an input accepts, None if they are open."""
        dims = list(info.shape)
        if len(dims) == 2 and self.format is Format.GRAY:
            dims.insert(0 if self.layout is Layout.NCHW else 2, 1)
        if len(dims) not in (3, 4) or dims[self._channel_axis] not in (None, self.format.channels):
            raise ExecutionError(
                f"input {info.name!r} has shape {shapes.text(info.shape)}, which is no {self._described}"
            )
        del dims[self._channel_axis]
        return (1, dims[0], dims[1]) if len(dims) == 2 else (dims[0], dims[1], dims[2])


def _stored(real: Array, info: TensorInfo) -> Array:
    """Real numbers converted to the elements of an input."""
    if not info.dtype.is_integer:
        return real.astype(info.dtype.numpy)
    if info.quantization is not None:
        return quantize(real, info.quantization, info.dtype)
    low, high = info.dtype.limits
    out: Array = np.clip(np.rint(real), low, high).astype(info.dtype.numpy)
    return out
