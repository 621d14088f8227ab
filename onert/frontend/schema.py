"""Where the fields of the model schema's tables lie, taken from the package `circle-schema`.

Its generated modules write a field with a call such as `builder.PrependInt32Slot(1, stride, 0)`; called with a builder
that only listens, they tell the slot, the type and the default of every field, so that nothing is written down here.
circle and TFLite share the root table, the order of fields and the values of enumerations.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from attrs import frozen

_NEWEST = "circle_schema.v0_10.circle"
_CODES = {
    "Bool": "?",
    "Int8": "b",
    "Uint8": "B",
    "Int16": "h",
    "Uint16": "H",
    "Int32": "i",
    "Uint32": "I",
    "Int64": "q",
    "Uint64": "Q",
    "Float32": "f",
    "Float64": "d",
    "UOffsetTRelative": "",
}


@frozen
class Field:
    """A field's slot in the vtable, its type as struct's code (empty: an offset to something), and its default."""

    slot: int
    code: str
    default: float


class _Listener:
    """Stands for a flatbuffers Builder and remembers how a field would be written."""

    field: Field | None = None

    def __getattr__(self, name: str) -> Any:
        code = _CODES[name.removeprefix("Prepend").removesuffix("Slot")]

        def listen(slot: int, value: object, default: float) -> None:
            self.field = Field(slot, code, default)

        return listen


def _module(table: str) -> ModuleType:
    return importlib.import_module(f"{_NEWEST}.{table}")


@functools.cache
def layout(table: str) -> Mapping[str, Field]:
    """The fields of a table by their names in snake case (`stride_w`)."""
    module = _module(table)
    found: dict[str, Field] = {}
    prefix = f"{table}Add"
    for name, write in vars(module).items():
        if name.startswith(prefix):
            listener = _Listener()
            write(listener, 0)
            if listener.field is not None:
                found[snake(name.removeprefix(prefix))] = listener.field
    return found


@functools.cache
def slot(table: str, name: str) -> int:
    """The slot of one field."""
    return layout(table)[name].slot


@functools.cache
def names(enumeration: str) -> Mapping[int, str]:
    """The members of an enumeration or a union by number."""
    members = vars(getattr(_module(enumeration), enumeration))
    return {value: name for name, value in members.items() if isinstance(value, int)}


def snake(name: str) -> str:
    """`StrideW` as `stride_w`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
