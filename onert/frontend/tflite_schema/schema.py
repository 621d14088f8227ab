"""Where the fields of the model schema's tables lie.

circle and TFLite share the root table, the order of fields and the values of enumerations. What is known of them comes
from the package `circle-schema`, through a listing (`schema_listing.py` says how it is made).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from attrs import frozen

from onert.ir.value import Value

from .schema_tables import ENUMERATIONS, TABLES


@frozen
class Field(Value):
    """A field's slot in the vtable, its type as struct's code (empty: an offset to something), and its default."""

    slot: int
    code: str
    default: float


@functools.cache
def layout(table: str) -> Mapping[str, Field]:
    """The fields of a table by their names in snake case (`stride_w`); none for a table without fields."""
    return {name: Field(*field) for name, field in TABLES.get(table, {}).items()}


def slot(table: str, name: str) -> int:
    """The slot of one field."""
    return TABLES[table][name][0]


def names(enumeration: str) -> Mapping[int, str]:
    """The members of an enumeration or a union by number."""
    return ENUMERATIONS[enumeration]
