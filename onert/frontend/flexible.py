"""Custom options written as a FlexBuffers map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from onert.ir import ModelError

Map = Mapping[str, Any]


def flexible_map(raw: bytes) -> Map:
    """Custom options as a map, an empty one where there are none; ModelError where they are something else."""
    try:
        value = flexbuffers.Loads(bytearray(raw)) if raw else {}
    except Exception as error:  # the reader was not made for hostile bytes: it fails in every way there is
        raise ModelError(f"the custom options are no FlexBuffers map: {type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"the custom options are a {type(value).__name__}, expected a map")
    return value


def number(options: Map, key: str, default: float | None = None) -> float:
    """A number; ModelError where it is missing and has no default, or is something else."""
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"the custom option {key} is {value!r}, expected a number")
    return value


def integer(options: Map, key: str, default: int | None = None) -> int:
    """A whole number; ModelError where it is missing and has no default, or is something else."""
    value = number(options, key, default)
    if value != value or value in (float("inf"), -float("inf")) or int(value) != value:
        raise ModelError(f"the custom option {key} is {value!r}, expected a whole number")
    return int(value)


def flag(options: Map, key: str) -> bool:
    """A boolean, which may be written as a number; false where it is missing."""
    value = options.get(key, False)
    if not isinstance(value, bool | int):
        raise ModelError(f"the custom option {key} is {value!r}, expected true or false")
    return bool(value)


def text(options: Map, key: str, default: str | None = None) -> str:
    """A string; ModelError where it is missing and has no default, or is something else."""
    value = options.get(key, default)
    if not isinstance(value, str):
        raise ModelError(f"the custom option {key} is {value!r}, expected a string")
    return value
