"""What an input is given, and a sentence on where it comes from."""

from __future__ import annotations

from attrs import field, frozen

from onert.frontend.metadata.model_metadata import TensorMetadata
from onert.ir import Array
from onert.ir.value import Value

from .pictures import Picture
from .placing import Fit, Placement


@frozen(eq=False)
class Given(Value):
    """Elements for an input; `source` says where they are from and what was done to them on the way.

    A picture is there with where it lies in the input's plane; `is_sound` says that the elements are samples.
    """

    array: Array
    source: str
    picture: Picture | None = None
    placement: Placement | None = None
    is_sound: bool = False


@frozen
class Reading(Value):
    """How files that are no tensors become tensors: what the user says, and what the model's metadata does.

    `image_mode` is what pixels become, None for what the metadata says or suits the element type. `fit` is how pictures
    of another shape go into the input. `image_size` is the height and width where the input leaves them open.
    `sample_rate` is what the model takes, in Hz, None where it is not known. `start` is where a sound begins that is
    longer than the input, in seconds. `said` is what the metadata says of the input.
    """

    image_mode: str | None = None
    sample_rate: int | None = None
    start: float = 0.0
    fit: Fit = Fit.STRETCH
    image_size: tuple[int, int] | None = None
    said: TensorMetadata = field(factory=TensorMetadata)
