"""Metadata written by Ultralytics' exporter: class names, the task, the image size.

Source: the metadata of its exports: texts by key in ONNX files, one mapping in an associated file of TFLite files. Its
models take RGB images with values from 0 to 1 that are padded to the size, keeping their aspect ratio.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from .model_metadata import ModelMetadata

FILES = ("temp_meta.txt", "metadata.json")
"""The name of the associated file, by the exporter's version."""
MAX_CLASSES = 1 << 16
MAX_SIDE = 1 << 14
_LONGEST = 1 << 20


def from_texts(texts: Mapping[str, str], known: ModelMetadata) -> ModelMetadata:
    """Add the metadata in a model's texts; values that are not literals remain texts."""
    return from_mapping({key: _literal(key, text) for key, text in texts.items()}, texts, known)


def from_file(content: bytes, known: ModelMetadata) -> ModelMetadata:
    """Add the metadata in the exporter's associated file; unchanged if that is not a mapping."""
    text = content[:_LONGEST].decode("utf-8", "replace")
    found = _parsed(text)
    if not isinstance(found, dict):
        return known
    values = {str(key): value for key, value in found.items()}
    return from_mapping(values, {key: str(value) for key, value in values.items()}, known)


def from_mapping(values: Mapping[str, Any], texts: Mapping[str, str], known: ModelMetadata) -> ModelMetadata:
    """Add metadata from values by key; values in another form than the exporter's are ignored."""
    names, task = _labels(values.get("names")), values.get("task")
    exported = task if names and isinstance(task, str) else ""
    return evolve(
        known,
        description=known.description or texts.get("description", ""),
        author=known.author or texts.get("author", ""),
        version=known.version or texts.get("version", ""),
        license=known.license or texts.get("license", ""),
        labels=names or known.labels,
        task=exported or known.task,
        image_size=_pair(values.get("imgsz")) or known.image_size,
        keypoints=_pair(values.get("kpt_shape")) or known.keypoints,
        letterbox=exported not in ("", "classify"),
        texts=dict(texts),
    )


def _literal(key: str, text: str) -> Any:
    return _parsed(text) if key in ("names", "imgsz", "kpt_shape") and len(text) <= _LONGEST else text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _labels(names: Any) -> tuple[str, ...]:
    """Class names, given by number or in order; empty for anything else, or if a number has no name."""
    if isinstance(names, dict):
        by_number = {int(key): name for key, name in names.items() if str(key).isdecimal() and len(str(key)) < 8}
        if len(by_number) != len(names) or sorted(by_number) != list(range(len(names))):
            return ()
        names = [by_number[at] for at in range(len(by_number))]
    if not isinstance(names, list | tuple) or len(names) > MAX_CLASSES:
        return ()
    return tuple(str(name) for name in names)


def _pair(value: Any) -> tuple[int, int] | None:
    """Two positive numbers, or one that is used for both; None for anything else."""
    found = [value, value] if type(value) is int else value
    if not isinstance(found, list | tuple) or len(found) != 2:
        return None
    first, second = found
    if type(first) is not int or type(second) is not int or not (0 < first <= MAX_SIDE and 0 < second <= MAX_SIDE):
        return None
    return first, second
