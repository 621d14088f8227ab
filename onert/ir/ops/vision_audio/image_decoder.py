"""Decoding of image files."""

from __future__ import annotations

import io
from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

MAX_PIXELS = 1 << 26


class Pixels(Enum):
    """The channels of a decoded pixel."""

    RGB = "RGB"
    BGR = "BGR"
    GRAYSCALE = "Grayscale"


@frozen
class ImageDecoder(Op):
    """Decodes an image from the bytes of a file; requires Pillow. Source: ONNX ImageDecoder.

    - `x`: uint8 of rank 1: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP

    Result: uint8 [height, width, channels], at most 2**26 pixels.
    """

    finds: ClassVar[bool] = True

    pixels: Pixels = Pixels.RGB

    def infer(self, x: TensorType) -> TensorType:
        require(x.dtype is DType.UINT8 and x.rank == 1, f"x is {x}, expected u8 of rank 1")
        if x.value is not None:
            return x.result(self.evaluate(x.value).shape)
        return x.result((None, None, 1 if self.pixels is Pixels.GRAYSCALE else 3))

    def flops(self, types: CallTypes) -> int:
        return 64 * (types.input(0).shape[0] or 0)

    def evaluate(self, x: Array) -> Array:
        try:
            from PIL import Image  # noqa: PLC0415 # optional
        except ImportError as error:
            raise RuleError("a picture is to be decoded, which requires Pillow: pip install pillow") from error
        try:
            with Image.open(io.BytesIO(x.tobytes())) as picture:
                width, height = picture.size
                require(width * height <= MAX_PIXELS, f"the picture is {width} x {height}, more than {MAX_PIXELS}")
                found = np.asarray(picture.convert("L" if self.pixels is Pixels.GRAYSCALE else "RGB"), np.uint8)
        except (OSError, SyntaxError, ValueError, ArithmeticError, Image.DecompressionBombError) as error:
            raise RuleError(f"the picture cannot be decoded: {error}") from error
        if self.pixels is Pixels.BGR:
            found = found[..., ::-1]
        return np.ascontiguousarray(found.reshape(height, width, -1))
