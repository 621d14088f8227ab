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
import textwrap
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

_HEAD = '''"""Where the fields of the model schema's tables lie: a listing that `schema_listing.py` wrote.

A table's fields stand in the order of their slots, each with its type as struct's code (an offset has none) and its
default unless that is 0; an enumeration's or union's members in the order of their numbers. Both are counted from 0,
and from a number that stands between them.
"""'''

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
    yield _HEAD
    fields = {name: {of[key][0]: _field(key, *of[key][1:]) for key in of} for name, of in tables().items() if of}
    for title, entries in (("TABLES", fields), ("ENUMERATIONS", enumerations())):
        yield ""
        yield f'{title} = """'
        for name, members in entries.items():
            words = " ".join((name, *_counted(members)))
            yield from textwrap.wrap(words, 120, subsequent_indent="  ", break_on_hyphens=False)
        yield '"""'


def _field(name: str, code: str, default: float) -> str:
    return name + (f":{code}" if code else "") + (f"={default}" if default else "")


def _counted(members: Mapping[int, str]) -> Iterator[str]:
    for (number, word), following in zip(members.items(), (0, *(n + 1 for n in members)), strict=False):
        if number != following:
            yield str(number)
        yield word


if __name__ == "__main__":
    sys.stdout.write(listing())
