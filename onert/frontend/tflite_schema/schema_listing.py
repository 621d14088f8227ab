"""Writes `schema_tables.py`: where the fields of the schema's tables lie, as the package `circle-schema` says it.

    python -m onert.frontend.tflite_schema.schema_listing > onert/frontend/tflite_schema/schema_tables.py

The package's generated modules write a field with a call such as `builder.PrependInt32Slot(1, stride, 0)`; called with
a builder that only listens, they tell the slot, the type and the default of every field. Listening to them takes longer
than reading a model, so that it is done once, and a test holds the listing to it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

NEWEST = "circle_schema.v0_10.circle"
ENUMERATIONS = ("BuiltinOperator", "BuiltinOptions", "BuiltinOptions2")
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

Field = tuple[int, str, float]
"""A field's slot, its type as struct's code (empty: an offset to something), and its default."""


class _Listener:
    """Stands for a flatbuffers Builder and remembers how a field would be written."""

    field: Field | None = None

    def __getattr__(self, name: str) -> Any:
        code = _CODES[name.removeprefix("Prepend").removesuffix("Slot")]

        def listen(slot: int, value: object, default: float) -> None:
            self.field = (slot, code, default)

        return listen


def tables() -> dict[str, dict[str, Field]]:
    """The fields of every table by their names in snake case (`stride_w`)."""
    package = importlib.import_module(NEWEST)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return {name: _fields(name, importlib.import_module(f"{NEWEST}.{name}")) for name in names if name[0].isupper()}


def enumerations() -> dict[str, dict[int, str]]:
    """The members of the enumerations and unions that readers need, by number."""
    found = {}
    for name in ENUMERATIONS:
        members = vars(getattr(importlib.import_module(f"{NEWEST}.{name}"), name))
        found[name] = {value: member for member, value in members.items() if isinstance(value, int)}
    return found


def _fields(table: str, module: ModuleType) -> dict[str, Field]:
    found: dict[str, Field] = {}
    prefix = f"{table}Add"
    for name, write in vars(module).items():
        if name.startswith(prefix):
            listener = _Listener()
            write(listener, 0)
            if listener.field is not None:
                found[_snake(name.removeprefix(prefix))] = listener.field
    return found


def _snake(name: str) -> str:
    """`StrideW` as `stride_w`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def listing() -> str:
    """The text of `schema_tables.py`."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '"""Where the fields of the model schema\'s tables lie: a listing that `schema_listing.py` wrote.'
    yield ""
    yield "By table and field: the slot in the vtable, the type as struct's code (empty: an offset), and the default."
    yield "By enumeration or union: the members by number."
    yield '"""'
    yield ""
    yield "TABLES: dict[str, dict[str, tuple[int, str, float]]] = {"
    for name, fields in tables().items():
        yield from _entry(name, fields)
    yield "}"
    yield ""
    yield "ENUMERATIONS: dict[str, dict[int, str]] = {"
    for name, members in enumerations().items():
        yield from _entry(name, members)
    yield "}"


def _entry(name: str, members: Mapping[Any, Any]) -> Iterator[str]:
    def literal(value: Any) -> str:
        if isinstance(value, tuple):
            return f"({', '.join(map(literal, value))})"
        return f'"{value}"' if isinstance(value, str) else repr(value)

    if members:
        yield f'    "{name}": {{'
        yield from (f"        {literal(key)}: {literal(value)}," for key, value in members.items())
        yield "    },"


if __name__ == "__main__":
    sys.stdout.write(listing())
