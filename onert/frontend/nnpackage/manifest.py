"""The manifest of a package: its models, and their connections.

Source: ONE's nnpackage specification, version 1.3 of the manifest (`pkg-inputs`, `pkg-outputs` and `model-connect` as
in ONE's examples and loader).
"""

from __future__ import annotations

import codecs
import json
import reprlib
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import Connection, ModelError, Port
from onert.ir.value import Value

MAX_BYTES = 1 << 20
MAX_CONFIG_BYTES = 1 << 16
MAX_CONFIGS = 16
_MAX_DIGITS = 9
NEWEST = (1, 3)
MODEL_TYPES = ("tflite", "circle")


@frozen
class Manifest(Value):
    """The content of a manifest; paths are relative to the package's root, those of configurations to `metadata/`."""

    models: tuple[str, ...]
    model_types: tuple[str, ...]
    configs: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    connections: tuple[Connection, ...]


_TEXT = codecs.lookup("utf-8-sig")
"""Looked up at import: the first lookup imports the codec, and a fork during that would leave the import lock held."""


def parse_manifest(raw: Data) -> Manifest:
    """Parse a manifest in JSON. Raises ModelError that names the key and value that break a rule."""
    if len(raw) > MAX_BYTES:
        raise ModelError(f"MANIFEST has {len(raw)} bytes, more than {MAX_BYTES}")
    try:
        text, _ = _TEXT.decode(bytes(raw))
        found = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"MANIFEST is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"MANIFEST holds a {type(found).__name__}, expected an object")
    _check_version(found)
    models, configs = _texts(found, "models"), _texts(found, "configs")
    if not models:
        raise ModelError("MANIFEST names no models")
    if len(configs) > MAX_CONFIGS:
        raise ModelError(f"MANIFEST names {len(configs)} configs, more than {MAX_CONFIGS}")
    types = _texts(found, "model-types")
    if types and len(types) != len(models):
        raise ModelError(f"MANIFEST has {len(types)} model-types for {len(models)} models")
    for kind in types:
        if kind not in MODEL_TYPES:
            raise ModelError(f"MANIFEST has model-type {_shown(kind)}, expected one of {', '.join(MODEL_TYPES)}")
    return Manifest(
        models,
        types,
        configs,
        tuple(_port(text) for text in _texts(found, "pkg-inputs")),
        tuple(_port(text) for text in _texts(found, "pkg-outputs")),
        tuple(_connection(item) for item in _list(found, "model-connect")),
    )


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Duplicate keys are rejected because readers disagree about which one counts."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ModelError(f"MANIFEST has the key {_shown(key)} twice")
        found[key] = value
    return found


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ModelError(f"MANIFEST has a number of {len(text)} characters, more than {_MAX_DIGITS}")
    return int(text)


def _no_number(text: str) -> Any:
    raise ModelError(f"MANIFEST has {text}, which is not a number in JSON")


def _shown(value: object) -> str:
    """The value shortened to a few dozen characters; in a manifest it may have a megabyte."""
    return reprlib.repr(value)


def _check_version(found: dict[str, Any]) -> None:
    """Raise ModelError for an unsupported version. Versions may be numbers or text."""
    major, minor = _version(found.get("major-version", 1)), _version(found.get("minor-version", 0))
    if major is None or minor is None:
        given = ".".join(_shown(found.get(key)) for key in ("major-version", "minor-version"))
        raise ModelError(f"MANIFEST has version {given}, expected numbers")
    if (major, minor) > NEWEST or major < 1:
        raise ModelError(f"MANIFEST has version {major}.{minor}, the newest supported is {NEWEST[0]}.{NEWEST[1]}")


def _version(value: object) -> int | None:
    """A nonnegative number or its decimal digits as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def _list(found: dict[str, Any], key: str) -> list[Any]:
    value = found.get(key, [])
    if not isinstance(value, list):
        raise ModelError(f"MANIFEST has {key} {_shown(value)}, expected a list")
    return value


def _texts(found: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _list(found, key)
    for value in values:
        if not isinstance(value, str):
            raise ModelError(f"MANIFEST has {_shown(value)} in {key}, expected text")
    return tuple(values)


def _port(text: Any) -> Port:
    """Parse `M:S:I`: model, subgraph, position."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) != 3 or not all(p.isascii() and p.isdecimal() and len(p) < 9 for p in parts):
        raise ModelError(f"MANIFEST has {_shown(text)}, expected MODEL:SUBGRAPH:POSITION")
    return Port(*map(int, parts))


def _connection(item: Any) -> Connection:
    if not isinstance(item, dict) or not isinstance(item.get("to"), list):
        raise ModelError(
            f"MANIFEST has {_shown(item)} in model-connect, expected an object with 'from' and a list 'to'"
        )
    return Connection(_port(item.get("from")), tuple(_port(text) for text in item["to"]))


def parse_config(raw: Data) -> dict[str, str]:
    """Parse a configuration file: lines `key=value`; `#` begins a comment. Raises ModelError for any other line."""
    if len(raw) > MAX_CONFIG_BYTES:
        raise ModelError(f"the configuration file has {len(raw)} bytes, more than {MAX_CONFIG_BYTES}")
    try:
        lines = bytes(raw).decode().splitlines()
    except UnicodeDecodeError as error:
        raise ModelError("the configuration file is not UTF-8") from error
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.split("#", 1)[0].strip()
        if text:
            key, equals, value = text.partition("=")
            if not equals or not key.strip():
                raise ModelError(f"line {number} of the configuration file is {_shown(text)}, expected key=value")
            found[key.strip()] = value.strip()
    return found
