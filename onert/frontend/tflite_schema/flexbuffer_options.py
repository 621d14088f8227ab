"""Custom options encoded as a FlexBuffers map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flatbuffers import flexbuffers

from onert.frontend.flatbuffer import LETTERS
from onert.ir import ModelError
from onert.ir.process.budget import Budget

Map = Mapping[str, Any]

_DEPTH = 16
_READING = "reading its custom options"


def flexible_map(raw: bytes, budget: Budget) -> Map:
    """Decode custom options; an empty map if there are none. Raises ModelError if they are not a map.

    Vectors and maps refer to one another by offsets, so a thousand bytes can describe any number of elements; decoding
    is therefore charged to the budget.
    """
    try:
        value = _value(flexbuffers.GetRoot(bytearray(raw)), _DEPTH, budget, len(raw)) if raw else {}
    except ModelError:
        raise
    except Exception as error:  # the flatbuffers package does not validate its input
        raise ModelError(f"the custom options are not a FlexBuffers map: {type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"the custom options are a {type(value).__name__}, expected a map")
    return value


def _value(reference: Any, depth: int, budget: Budget, size: int) -> Any:
    """Decode the value at a reference, with at most `depth` nested vectors, in options of `size` bytes."""
    budget.spend(1, _READING)
    if reference.IsString or reference.IsKey or reference.IsBlob:
        budget.spend(size // LETTERS, _READING)  # the end of a key is searched for in all following bytes
        return reference.Value
    if reference.IsTypedVector or reference.IsFixedTypedVector:
        vector = reference.AsTypedVector if reference.IsTypedVector else reference.AsFixedTypedVector
        of_keys = vector.ElementType in (flexbuffers.Type.KEY, flexbuffers.Type.STRING)
        budget.spend(len(vector) * (1 + (size // LETTERS if of_keys else 0)), _READING)
        return vector.Value
    if not reference.IsVector:
        return reference.Value
    if depth == 0:
        raise ModelError(f"the custom options nest more than {_DEPTH} deep")
    if not reference.IsMap:
        return [_value(element, depth - 1, budget, size) for element in _elements(reference.AsVector)]
    map_ = reference.AsMap
    values = _elements(map_.Values)
    return {
        _value(key, depth - 1, budget, size): _value(value, depth - 1, budget, size)
        for key, value in zip(_elements(map_.Keys), values, strict=True)
    }


def _elements(vector: Any) -> Iterator[Any]:
    return (vector[at] for at in range(len(vector)))


def number(options: Map, key: str, default: float | None = None) -> float:
    """A number. Raises ModelError if it is missing without a default, or not a number."""
    value = options.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"the custom option {key} is {value!r}, expected a number")
    return value


def integer(options: Map, key: str, default: int | None = None) -> int:
    """An integer. Raises ModelError if it is missing without a default, or not an integer."""
    value = number(options, key, default)
    if value != value or value in (float("inf"), -float("inf")) or int(value) != value:
        raise ModelError(f"the custom option {key} is {value!r}, expected an integer")
    return int(value)


def flag(options: Map, key: str) -> bool:
    """A boolean, which may be encoded as a number; false if it is missing."""
    value = options.get(key, False)
    if not isinstance(value, bool | int):
        raise ModelError(f"the custom option {key} is {value!r}, expected true or false")
    return bool(value)


def text(options: Map, key: str, default: str | None = None) -> str:
    """A string. Raises ModelError if it is missing without a default, or not a string."""
    value = options.get(key, default)
    if not isinstance(value, str):
        raise ModelError(f"the custom option {key} is {value!r}, expected a string")
    return value
