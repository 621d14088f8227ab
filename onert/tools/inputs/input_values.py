"""The value of an input and its origin, and the settings for reading it."""

from __future__ import annotations

from attrs import field, frozen

from onert.frontend.metadata.model_metadata import TensorMetadata
from onert.ir import Array
from onert.ir.value import Value

from .pictures import Picture
from .placing import Fit, Placement


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
