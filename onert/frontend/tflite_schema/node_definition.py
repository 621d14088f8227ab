"""The attributes of TensorFlow operators in TFLite files.

The custom options of a `Flex` operator are a FlexBuffers vector: the operator's name, and a NodeDef of TensorFlow.
Source: tensorflow/lite/delegates/flex/kernel.cc; node_def.proto and attr_value.proto of TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping

from flatbuffers import flexbuffers

from onert.frontend.flatbuffer import LETTERS
from onert.frontend.wire import Message
from onert.ir import ModelError
from onert.ir.process.budget import Budget

Attribute = int | str | tuple[int, ...]
"""An integer or a boolean, a string, or a list of integers."""

_ATTRIBUTES = 5
_KEY, _VALUE = 1, 2
_LIST, _TEXT, _INTEGER, _BOOLEAN = 1, 2, 3, 5


def node_attributes(options: bytes, budget: Budget) -> Mapping[str, Attribute]:
    """The integers, booleans, strings and lists of integers among an operator's attributes, by name.

    Raises ModelError if the options contain no NodeDef, or one that is not a well-formed protocol buffer.
    """
    found: dict[str, Attribute] = {}
    for entry in Message(memoryview(_definition(options, budget)), budget).messages(_ATTRIBUTES):
        value = entry.message(_VALUE)
        if value is None:
            continue
        name, items = entry.text(_KEY), value.message(_LIST)
        if items is not None:
            found[name] = tuple(items.integers(_INTEGER).tolist())
        elif value.has(_TEXT):
            found[name] = value.text(_TEXT)
        elif value.has(_INTEGER) or value.has(_BOOLEAN):
            found[name] = value.integer(_INTEGER) if value.has(_INTEGER) else value.integer(_BOOLEAN)
    return found


def _definition(options: bytes, budget: Budget) -> bytes:
    """The serialised NodeDef."""
    budget.spend(1 + len(options) // LETTERS, "reading its custom options")
    try:
        definition: bytes = flexbuffers.GetRoot(bytearray(options)).AsVector[1].AsStringBytes
    except Exception as error:  # the flatbuffers package does not validate its input
        raise ModelError(f"the custom options contain no NodeDef: {type(error).__name__}: {error}") from error
    return definition


def flag(attributes: Mapping[str, Attribute], name: str) -> bool:
    """A boolean; false if it is missing. Raises ModelError for an attribute of another kind."""
    found = attributes.get(name, 0)
    if not isinstance(found, int):
        raise ModelError(f"attribute '{name}' is {found!r}, expected true or false")
    return bool(found)


def choice(attributes: Mapping[str, Attribute], name: str, expected: tuple[str, ...]) -> str:
    """A string that is one of those expected, the first if it is missing. Raises ModelError for another one."""
    found = attributes.get(name, expected[0])
    if not isinstance(found, str) or found not in expected:
        raise ModelError(f"attribute '{name}' is {found!r}, expected {' or '.join(expected)}")
    return found


def numbers(attributes: Mapping[str, Attribute], name: str, count: int) -> tuple[int, ...]:
    """A list of `count` integers. Raises ModelError for anything else."""
    found = attributes.get(name)
    if not isinstance(found, tuple) or len(found) != count:
        raise ModelError(f"attribute '{name}' is {found!r}, expected {count} integers")
    return found
