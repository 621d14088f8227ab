"""The layout of the tables in the model schema.

circle and TFLite share the root table, the order of fields and the values of enumerations. The layout comes from the
package `circle-schema`, through a generated listing (see `schema_listing.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from attrs import frozen

from onert.ir.value import Value

from .schema_tables import ENUMERATIONS, TABLES


@frozen
class Field(Value):
    """A field's slot in the vtable, its type as a struct format character (empty for an offset), and its default."""

    slot: int
    code: str
    default: float


@functools.cache
def layout(table: str) -> Mapping[str, Field]:
    """The fields of a table by name in snake case (`stride_w`); empty for a table without fields."""
    return dict(_field(at, word) for at, word in _members(TABLES, table))


def _field(at: int, word: str) -> tuple[str, Field]:
    declared, _, default = word.partition("=")
    name, _, code = declared.partition(":")
    return name, Field(at, code, float(default or 0) if code in ("f", "d") else int(default or 0))


@functools.cache
def slot(table: str, name: str) -> int:
    """The slot of a field."""
    return layout(table)[name].slot


@functools.cache
def names(enumeration: str) -> Mapping[int, str]:
    """The members of an enumeration or union by number."""
    return dict(_members(ENUMERATIONS, enumeration))


def _members(listing: str, owner: str) -> Iterator[tuple[int, str]]:
    """Yield the fields or members of one table or enumeration with their slots or numbers."""
    at = 0
    for word in _entries(listing).get(owner, "").split():
        if word.lstrip("-").isdigit():
            at = int(word)
        else:
            yield at, word
            at += 1


@functools.cache
def _entries(listing: str) -> Mapping[str, str]:
    lines = listing.strip().replace("\n ", "").splitlines()
    return {name: members for name, _, members in (line.partition(" ") for line in lines)}
