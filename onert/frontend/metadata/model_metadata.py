"""What a model file may say of itself, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from onert.ir.value import Value


@frozen
class Calibration(Value):
    """How scores become probabilities: `scale / (1 + exp(-(slope * t(score) + offset)))`, a row for each class.

    `transformation` is t: "identity", "log", or "inverse_logistic", `log(score) - log(1 - score)`. A row is None for a
    class that is not calibrated, which then has `default`; the fourth number of a row is the lowest score that is
    calibrated, None where all are. Source: TFLite's `metadata_schema.fbs`, ScoreCalibrationOptions.
    """

    transformation: str
    default: float
    rows: tuple[tuple[float, float, float, float | None] | None, ...]


@frozen
class Box(Value):
    """How an output's boxes are written. Source: TFLite's `metadata_schema.fbs`, BoundingBoxProperties.

    `kind` is "boundaries" (left, top, right, bottom), "upper_left" (left, top, width, height) or "center" (middle x,
    middle y, width, height). `order` says at which place of a box each of these four stands. `pixels` is whether they
    are numbers of pixels and not parts of the image.
    """

    kind: str = "boundaries"
    order: tuple[int, int, int, int] = (0, 1, 2, 3)
    pixels: bool = False


@frozen
class TensorMetadata(Value):
    """What is said of an input or an output; empty, or None, where nothing is.

    - `mean`, `deviation`: an input takes `(value - mean) / deviation`, one number for all channels or one for each
    - `color`: "RGB" or "GRAYSCALE", where the tensor is an image
    - `sample_rate` (Hz) and `channels` of a sound
    - `low`, `high`: the least and the greatest values
    - `axis_labels`: names of the positions along the last dimension
    - `value_labels`: names of the values 0, 1, ...
    - `calibration`, `threshold`: how scores are calibrated, and the lowest that counts
    - `box`: how boxes are written
    - `dimensions`: a name for each dimension that has one, empty for others: those of one name have one size
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
    """What a file says of its model.

    - `inputs`, `outputs`: in the order of the first subgraph's, empty where nothing is said
    - `labels`: names of the model's classes, where it has one list for all outputs
    - `task`: "detect", "segment", "pose", "classify" or "obb", in the words of Ultralytics' exporter
    - `image_size`: the height and width that the model was trained on
    - `keypoints`: how many points a pose has, and how many numbers each
    - `letterbox`: whether images keep their aspect and are padded, and do not fill the input
    - `texts`: whatever else was written, by its key
    - `notes`: what could not be read, a sentence each
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
        """What is said of an input."""
        return self.inputs[position] if position < len(self.inputs) else TensorMetadata()

    def output(self, position: int) -> TensorMetadata:
        """What is said of an output."""
        return self.outputs[position] if position < len(self.outputs) else TensorMetadata()
