"""The options of custom operators."""

from __future__ import annotations

from typing import Any

from flatbuffers import flexbuffers


def flexible(**options: Any) -> bytes:
    """Options as a flexbuffer."""
    builder = flexbuffers.Builder()
    builder.MapFromElements(options)
    return bytes(builder.Finish())


def node(**attributes: int | str | tuple[int, ...]) -> bytes:
    """The options of an operator of TensorFlow: its name and a NodeDef with these attributes, as converters write them.

    Integers below 2 become booleans. All sizes and numbers must be below 128.
    """
    definition = _field(2, b"Some")
    for name, value in attributes.items():
        if isinstance(value, tuple):
            stored = _field(1, _field(3, bytes(value)))
        else:
            stored = (
                _field(2, value.encode()) if isinstance(value, str) else bytes((5 << 3 if value < 2 else 3 << 3, value))
            )
        definition += _field(5, _field(1, name.encode()) + _field(2, stored))
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String("Some")
        builder.String(definition.decode())
    return bytes(builder.Finish())


def _field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that contains bytes."""
    return bytes((number << 3 | 2, len(content))) + content
