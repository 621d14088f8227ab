"""LiteRT-LM files: a header that lists sections, some of which are models.

Layout: `LITERTLM`, the version as three 32-bit numbers, four bytes of padding, the header's end as a 64-bit number, the
header as a flatbuffer, and sections at multiples of 16 KiB. Source: LiteRT-LM's litertlm_header_schema.fbs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from onert.frontend.flatbuffer import Data, Table, budget, root
from onert.frontend.format import Format
from onert.ir import ModelError

from .contained_models import MAX_MODELS, by_name, main_model

MAGIC = b"LITERTLM"
_BEGIN = struct.Struct("<8s3I4xQ")
_VERSION = 1
_MODEL = 3
"""The section type of a TFLite model. Type 7 (`_WEIGHTS`) is a model's external weights."""
_WEIGHTS = 7
_SECTIONS, _OBJECTS = 1, 0
_ITEMS, _FROM, _TO, _KIND = range(4)
_KEY, _TYPE, _VALUE = range(3)
_TEXT = 9
"""Fields of the root table, the section list, a section and a key-value pair; the union type of a string value."""


def models(data: Data) -> dict[str, Data]:
    """The models by the names in the header. Raises ModelError if the file breaks the format's rules."""
    if len(data) < _BEGIN.size:
        raise ModelError(f"it has {len(data)} bytes, fewer than the header has")
    magic, major, minor, patch, end = _BEGIN.unpack_from(data)
    if magic != MAGIC:
        raise ModelError(f"it begins with {magic!r}, expected {MAGIC!r}")
    if major != _VERSION:
        raise ModelError(f"its version is {major}.{minor}.{patch}, expected {_VERSION}")
    if not _BEGIN.size <= end <= len(data):
        raise ModelError(f"its header ends at byte {end}, expected {_BEGIN.size} to {len(data)}")
    return by_name(_sections(data, data[_BEGIN.size : end], end))


def _sections(data: Data, header: Data, end: int) -> Iterator[tuple[str, Data]]:
    """Yield the name and content of each section that holds a model."""
    listed = root(header, budget(len(header))).table(_SECTIONS)
    count = 0 if listed is None else listed.count(_OBJECTS)
    if listed is None or not 0 < count <= MAX_MODELS:
        raise ModelError(f"it has {count} sections, expected 1 to {MAX_MODELS}")
    for number, section in enumerate(listed.tables(_OBJECTS)):
        kind = int(section.scalar(_KIND, "B", 0))
        if kind == _WEIGHTS:
            raise ModelError(f"section {number} holds external weights, which are not supported")
        if kind != _MODEL:
            continue
        first, last = (int(section.scalar(field, "Q", 0)) for field in (_FROM, _TO))
        if not end <= first < last <= len(data):
            raise ModelError(
                f"section {number} spans bytes {first} to {last}, expected a range between the header's end {end} and "
                f"{len(data)}"
            )
        yield _name(section) or f"section {number}", data[first:last]


def _name(section: Table) -> str:
    """The value of the section's `model_type` entry, or an empty string."""
    for item in section.tables(_ITEMS):
        value = item.table(_VALUE)
        if item.text(_KEY) == "model_type" and int(item.scalar(_TYPE, "B", 0)) == _TEXT and value is not None:
            return value.text(0)
    return ""


FORMAT = Format(
    "litertlm", lambda head, path: head.startswith(MAGIC), lambda data, path: main_model(models(data), path)
)
