"""The outputs of a run, with everything that helps to interpret them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from onert.backend import TensorInfo
from onert.frontend.metadata.model_metadata import ModelMetadata
from onert.ir import Array, dequantize
from onert.ir.value import Value

from .labels import Labels

SHOWN_SCORE = 0.3
"""The lowest score of detections shown by default."""


@frozen
class Wanted(Value):
    """The user's options: --topk, --min-score, --labels and --task; None or empty if not given."""

    count: int | None = None
    score: float | None = None
    labels: Labels = field(factory=Labels)
    task: str | None = None


@frozen(eq=False)
class RunOutputs(Value):
    """The outputs of a run, dequantised.

    `plane` is the height and width of the input that was a picture, None if there was none.
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
        """The user's labels, otherwise the metadata's for one of these outputs, otherwise for the model."""
        if self.wanted.labels.names:
            return self.wanted.labels
        for at in positions:
            said = self.metadata.output(at)
            if said.value_labels or said.axis_labels:
                return Labels(said.value_labels or said.axis_labels)
        return Labels(self.metadata.labels)

    def least(self, *positions: int) -> float:
        """The lowest score shown: the user's, no limit if --topk is given, the metadata's, or the default."""
        if self.wanted.score is not None:
            return self.wanted.score
        if self.wanted.count is not None:
            return -float("inf")
        said = [t for at in positions if (t := self.metadata.output(at).threshold) is not None]
        return said[0] if said else SHOWN_SCORE


def real_outputs(infos: Sequence[TensorInfo], arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Dequantise outputs of quantised integers; the others are returned unchanged."""
    return tuple(
        array if info.quantization is None or array.dtype.kind == "f" else dequantize(array, info.quantization)
        for info, array in zip(infos, arrays, strict=True)
    )
