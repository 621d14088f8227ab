"""What an input is given, and a sentence on where it comes from."""

from __future__ import annotations

from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value


@frozen
class Given(Value):
    """Elements for an input; `source` says where they are from and what was done to them on the way."""

    array: Array
    source: str


@frozen
class Reading(Value):
    """How files that are no tensors become tensors: what the user says where the model does not.

    `image_mode` is what pixels become, None for what suits the element type. `sample_rate` is what the model takes, in
    Hz, None where it is not known. `start` is where a sound begins that is longer than the input, in seconds.
    """

    image_mode: str | None = None
    sample_rate: int | None = None
    start: float = 0.0
