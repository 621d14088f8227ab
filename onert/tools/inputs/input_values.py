"""The value of an input and its origin, and the settings for reading it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import field, frozen

from onert.frontend.metadata.model_metadata import TensorMetadata
from onert.ir import Array
from onert.ir.value import Value

from .placing import Fit, Placement

if TYPE_CHECKING:
    from fractions import Fraction

    from .pictures import Picture

MODES = {
    "0to1": ((1 / 255,), (0.0,)),
    "neg1to1": ((2 / 255,), (-1.0,)),
    "0to255": ((1.0,), (0.0,)),
    "neg128to127": ((1.0,), (-128.0,)),
    "imagenet": (
        tuple(1 / (255 * d) for d in (0.229, 0.224, 0.225)),
        tuple(-m / d for m, d in zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)),
    ),
}
"""Scale and offset of a pixel from 0 to 255, for all channels or for each. The last mode subtracts ImageNet's mean and
divides by its standard deviation, as networks of torchvision and timm expect."""
MAX_RATE = 1_000_000
"""The highest sample rate in Hz. Resampling can need memory for a second of samples."""


@frozen(eq=False)
class InputValue(Value):
    """The elements of an input. `source` describes where they come from and how they were converted.

    If they come from a picture, `picture` and its `placement` in the input's plane are set. `is_sound`: they are
    samples.
    """

    array: Array
    source: str
    picture: Picture | None = None
    placement: Placement | None = None
    is_sound: bool = False


@frozen
class ReadSettings(Value):
    """How to convert images, sounds and text to tensors, from the options and the model's metadata.

    `image_mode` is the range of pixel values, None for the one in the metadata or the default of the element type.
    `fit` is how pictures of another shape are fitted. `image_size` is the height and width to use if the input's are
    dynamic. `sample_rate` is the model's rate in Hz, None if unknown. `start` is where in a sound to begin, in seconds.
    `said` is the metadata of the input.
    """

    image_mode: str | None = None
    sample_rate: int | None = None
    start: float = 0.0
    fit: Fit = Fit.STRETCH
    image_size: tuple[int, int] | None = None
    said: TensorMetadata = field(factory=TensorMetadata)


@frozen(eq=False)
class Stream(Value):
    """The consecutive values of an input.

    `count` is their number, None if unknown. `pieces` is whether they are pieces of one sound, and `continuous` whether
    each continues the previous one, so that a model's state is kept between them. `rate` is a video's frame rate.
    """

    items: Iterator[InputValue]
    count: int | None = 1
    pieces: bool = False
    continuous: bool = False
    rate: Fraction | None = None
