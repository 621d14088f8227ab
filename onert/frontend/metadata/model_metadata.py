"""Metadata of a model, independent of the file format."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from onert.ir.value import Value


@frozen
class Calibration(Value):
    """Conversion of scores to probabilities: `scale / (1 + exp(-(slope * t(score) + offset)))`, with a row per class.

    `transformation` is t: "identity", "log", or "inverse_logistic", `log(score) - log(1 - score)`. A row is None for a
    class that is not calibrated, which has the probability `default`; the fourth number of a row is the minimum score
    that is calibrated, None for no minimum. Source: TFLite's `metadata_schema.fbs`, ScoreCalibrationOptions.
    """

    transformation: str
    default: float
    rows: tuple[tuple[float, float, float, float | None] | None, ...]


@frozen
class Box(Value):
    """The representation of an output's boxes. Source: TFLite's `metadata_schema.fbs`, BoundingBoxProperties.

    `kind` is "boundaries" (left, top, right, bottom), "upper_left" (left, top, width, height) or "center" (middle x,
    middle y, width, height). `order` is the position of each of these four in a box. `pixels` is whether they are in
    pixels rather than fractions of the image.
    """

    kind: str = "boundaries"
    order: tuple[int, int, int, int] = (0, 1, 2, 3)
    pixels: bool = False


@frozen
class TensorMetadata(Value):
    """Metadata of an input or output; fields without information are empty or None.

    - `mean`, `deviation`: an input is normalised to `(value - mean) / deviation`, for all channels or per channel
    - `color`: "RGB" or "GRAYSCALE" if the tensor is an image
    - `sample_rate` (Hz) and `channels` of audio
    - `low`, `high`: the minimum and maximum values
    - `axis_labels`: names of the positions along the last dimension
    - `value_labels`: names of the values 0, 1, ...
    - `calibration`, `threshold`: the calibration of scores, and the minimum score to report
    - `box`: the representation of boxes
    - `dimensions`: the name of each dimension, or empty; dimensions with the same name have the same size
    """

    name: str = ""
    description: str = ""
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    color: str = ""
    sample_rate: int | None = None
    channels: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    axis_labels: tuple[str, ...] = ()
    value_labels: tuple[str, ...] = ()
    calibration: Calibration | None = None
    threshold: float | None = None
    box: Box | None = None
    dimensions: tuple[str, ...] = ()


@frozen
class ModelMetadata(Value):
    """Metadata of a model.

    - `inputs`, `outputs`: in the order of the first subgraph's; empty without information
    - `labels`: class names, if there is one list for all outputs
    - `task`: "detect", "segment", "pose", "classify" or "obb", as in Ultralytics' exporter
    - `image_size`: the height and width that the model was trained on
    - `keypoints`: the number of points of a pose, and of numbers per point
    - `letterbox`: whether images keep their aspect ratio and are padded, rather than stretched to the input
    - `texts`: all other entries, by key
    - `notes`: what could not be read, one sentence each
    """

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    outputs: tuple[TensorMetadata, ...] = ()
    labels: tuple[str, ...] = ()
    task: str = ""
    image_size: tuple[int, int] | None = None
    keypoints: tuple[int, int] | None = None
    letterbox: bool = False
    texts: Mapping[str, str] = field(factory=dict)
    notes: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.version, self.inputs, self.outputs, self.labels))

    def input(self, position: int) -> TensorMetadata:
        """The metadata of an input."""
        return self.inputs[position] if position < len(self.inputs) else TensorMetadata()

    def output(self, position: int) -> TensorMetadata:
        """The metadata of an output."""
        return self.outputs[position] if position < len(self.outputs) else TensorMetadata()
