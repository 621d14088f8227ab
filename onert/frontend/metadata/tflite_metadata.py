"""TFLite's metadata: a flatbuffer in one of the model's buffers, and files in a zip archive appended to the model.

Sources of slots and numbers: `metadata_schema.fbs` of TFLite Support (file identifier M001), `schema.fbs` of TFLite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from onert.frontend import flatbuffer
from onert.frontend.flatbuffer import Data, Table
from onert.frontend.nnpackage.zip_archive import ZipArchive
from onert.ir import ModelError

from . import ultralytics
from .labels import appended_archive, lines
from .model_metadata import Box, Calibration, ModelMetadata, TensorMetadata

IDENTIFIERS = (b"TFL3", b"CIR0")
"""File identifiers of models that may have such metadata."""
MAX_FILE = 1 << 22
"""The maximum size of an associated file, in bytes."""
_NAME = "TFLITE_METADATA"
_IDENTIFIER = b"M001"
_AXIS_LABELS, _VALUE_LABELS, _CALIBRATION = 2, 3, 4
_IMAGE, _BOX, _AUDIO = 2, 3, 4
_NORMALIZATION, _SCORE_CALIBRATION, _THRESHOLD = 1, 2, 3
_COLORS = {1: "RGB", 2: "GRAYSCALE"}
_TRANSFORMATIONS = {0: "identity", 1: "log", 2: "inverse_logistic"}
_BOXES = {1: "boundaries", 2: "upper_left", 3: "center"}


def tflite_metadata(content: Data) -> ModelMetadata:
    """The metadata in a model's content. Raises ModelError if it is malformed."""
    budget = flatbuffer.budget(len(content))
    found = _metadata_buffer(flatbuffer.root(content, budget), content)
    archive = appended_archive(content)
    out = ModelMetadata()
    if found is not None and flatbuffer.identifier(found) == _IDENTIFIER:
        root = flatbuffer.root(found, flatbuffer.budget(len(found)))
        out = ModelMetadata(root.text(0), root.text(1), root.text(2), root.text(4), root.text(5))
        subgraph = next(root.tables(3), None)
        if subgraph is not None:
            out = evolve(
                out,
                inputs=tuple(_tensor(t, archive) for t in subgraph.tables(2)),
                outputs=tuple(_tensor(t, archive) for t in subgraph.tables(3)),
            )
    for name in ultralytics.FILES:
        if archive is not None and name in archive.members:
            out = ultralytics.from_file(bytes(archive.read(name, MAX_FILE)), out)
    return out


def _metadata_buffer(model: Table, content: Data) -> Data | None:
    """The buffer that the model's list of metadata names `TFLITE_METADATA`."""
    number = next((int(entry.scalar(1, "I", 0)) for entry in model.tables(6) if entry.text(0) == _NAME), None)
    if number is None or number >= model.count(4):
        return None
    buffer = next(table for at, table in enumerate(model.tables(4)) if at == number)
    start, size = int(buffer.scalar(1, "Q", 0)), int(buffer.scalar(2, "Q", 0))
    if start > 1:  # large models have their buffers after the flatbuffer
        return content[start : start + size]
    return buffer.bytes(0)


def _tensor(table: Table, archive: ZipArchive | None) -> TensorMetadata:
    files = _files(table, archive)
    stats = table.table(5)
    out = TensorMetadata(
        table.text(0),
        table.text(1),
        high=() if stats is None else tuple(stats.array(0, "f").tolist()),
        low=() if stats is None else tuple(stats.array(1, "f").tolist()),
        axis_labels=lines(files.get(_AXIS_LABELS, b"").decode("utf-8", "replace")),
        value_labels=lines(files.get(_VALUE_LABELS, b"").decode("utf-8", "replace")),
    )
    content = table.table(3)
    properties = None if content is None else content.table(1)
    if content is not None and properties is not None:
        kind = int(content.scalar(0, "B", 0))
        if kind == _IMAGE:
            out = evolve(out, color=_COLORS.get(int(properties.scalar(0, "b", 0)), ""))
        elif kind == _AUDIO:
            rate, channels = (int(properties.scalar(slot, "I", 0)) for slot in (0, 1))
            out = evolve(out, sample_rate=rate or None, channels=channels or None)
        elif kind == _BOX:
            out = evolve(out, box=_box(properties))
    for unit in table.tables(4):
        options = unit.table(1)
        if options is None:
            continue
        kind = int(unit.scalar(0, "B", 0))
        if kind == _NORMALIZATION:
            mean, deviation = (tuple(options.array(slot, "f").tolist()) for slot in (0, 1))
            if not all(map(math.isfinite, mean)) or not all(d > 0 and math.isfinite(d) for d in deviation):
                raise ModelError(f"tensor {out.name!r} is normalised by mean {mean} and deviation {deviation}")
            out = evolve(out, mean=mean, deviation=deviation)
        elif kind == _SCORE_CALIBRATION:
            out = evolve(out, calibration=_calibration(options, files.get(_CALIBRATION), out.name))
        elif kind == _THRESHOLD:
            out = evolve(out, threshold=options.scalar(0, "f", 0.0))
    return out


def _files(table: Table, archive: ZipArchive | None) -> Mapping[int, bytes]:
    """The tensor's associated files by type; of several languages, the unnamed one, English, or the first."""
    chosen: dict[int, tuple[int, str]] = {}
    for entry in table.tables(6):
        kind, locale = int(entry.scalar(2, "b", 0)), entry.text(3)
        rank = 0 if not locale else 1 if locale.startswith("en") else 2
        if kind in (_AXIS_LABELS, _VALUE_LABELS, _CALIBRATION) and (kind not in chosen or rank < chosen[kind][0]):
            chosen[kind] = (rank, entry.text(0))
    if chosen and archive is None:
        raise ModelError(f"it names {next(iter(chosen.values()))[1]!r}, but no archive is appended to the model")
    return {} if archive is None else {k: bytes(archive.read(name, MAX_FILE)) for k, (_, name) in chosen.items()}


def _box(properties: Table) -> Box:
    order = [int(n) for n in properties.array(0, "I")]
    if sorted(order) != [0, 1, 2, 3]:
        order = [0, 1, 2, 3]
    a, b, c, d = order
    kind = _BOXES.get(int(properties.scalar(1, "b", 0)), "boundaries")
    return Box(kind, (a, b, c, d), int(properties.scalar(2, "b", 0)) == 1)


def _calibration(options: Table, content: bytes | None, name: str) -> Calibration:
    """The rows of the calibration file: `scale,slope,offset[,minimum]`, empty for a class without calibration."""
    rows: list[tuple[float, float, float, float | None] | None] = []
    for line in (content or b"").decode("utf-8", "replace").split("\n"):
        if not line.strip():
            rows.append(None)
            continue
        try:
            numbers = [float(word) for word in line.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (3, 4) or not all(map(math.isfinite, numbers)):
            raise ModelError(f"the calibration of {name!r} has the row {line[:60]!r}, expected scale,slope,offset")
        rows.append((numbers[0], numbers[1], numbers[2], numbers[3] if len(numbers) == 4 else None))
    while rows and rows[-1] is None:
        rows.pop()
    kind = int(options.scalar(0, "b", 0))
    return Calibration(_TRANSFORMATIONS.get(kind, "identity"), options.scalar(1, "f", 0.0), tuple(rows))
