"""The outputs of a run, with all that helps to read them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from onert.backend import TensorInfo
from onert.frontend.metadata.model_metadata import ModelMetadata
from onert.ir import Array, dequantize
from onert.ir.value import Value

from .labels import Labels

SHOWN_SCORE = 0.3
"""Detections of a lower score are left out where nobody says how many are wanted."""


@frozen
class Wanted(Value):
    """What the user asks for: how many, of which score at least, called how, read as what; None for what suits."""

    count: int | None = None
    score: float | None = None
    labels: Labels = field(factory=Labels)
    task: str | None = None


@frozen(eq=False)
class Ends(Value):
    """Outputs as real numbers where they are quantised.

    `plane` is the height and width of the picture's input, None where there was no picture.
    """

    infos: tuple[TensorInfo, ...]
    arrays: tuple[Array, ...]
    wanted: Wanted = field(factory=Wanted)
    metadata: ModelMetadata = field(factory=ModelMetadata)
    plane: tuple[int, int] | None = None

    @property
    def named(self) -> str:
        """The outputs with their types, for messages."""
        return ", ".join(
            f"{info.name!r} {info.dtype.numpy}{list(a.shape)}" for info, a in zip(self.infos, self.arrays, strict=True)
        )

    def labels(self, *positions: int) -> Labels:
        """The user's labels, else those that the metadata gives one of these outputs, else those of the model."""
        if self.wanted.labels.names:
            return self.wanted.labels
        for at in positions:
            said = self.metadata.output(at)
            if said.value_labels or said.axis_labels:
                return Labels(said.value_labels or said.axis_labels)
        return Labels(self.metadata.labels)

    def least(self, *positions: int) -> float:
        """The lowest score that is shown: the user's, else the metadata's, else what is usual; none of a count."""
        if self.wanted.score is not None:
            return self.wanted.score
        if self.wanted.count is not None:
            return -float("inf")
        said = [t for at in positions if (t := self.metadata.output(at).threshold) is not None]
        return said[0] if said else SHOWN_SCORE


def real_outputs(infos: Sequence[TensorInfo], arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs of quantised integers as real numbers, others as they are."""
    return tuple(
        array if info.quantization is None or array.dtype.kind == "f" else dequantize(array, info.quantization)
        for info, array in zip(infos, arrays, strict=True)
    )
