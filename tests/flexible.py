"""The options of custom operators."""

from __future__ import annotations

from typing import Any

from flatbuffers import flexbuffers


def flexible(**options: Any) -> bytes:
    """Options as a flexbuffer."""
    builder = flexbuffers.Builder()
    builder.MapFromElements(options)
    return bytes(builder.Finish())
