"""The manifest of a package: which models, and how they are connected.

Source: ONE's nnpackage specification, version 1.3 of the manifest (`pkg-inputs`, `pkg-outputs` and `model-connect` as
ONE's examples and loader have them).
"""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import Connection, ModelError, Port
from onert.ir.value import Value

MAX_BYTES = 1 << 20
NEWEST = (1, 3)
MODEL_TYPES = ("tflite", "circle")


@frozen
class Manifest(Value):
    """What a manifest says; paths are relative to the package's root, a configuration's to `metadata/`."""

    models: tuple[str, ...]
    model_types: tuple[str, ...]
    configs: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    connections: tuple[Connection, ...]


def parse_manifest(raw: Data) -> Manifest:
    """The manifest in JSON; ModelError naming the key and the value that break a rule."""
    if len(raw) > MAX_BYTES:
        raise ModelError(f"MANIFEST has {len(raw)} bytes, more than {MAX_BYTES}")
    try:
        found = json.loads(bytes(raw).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"MANIFEST is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"MANIFEST holds a {type(found).__name__}, expected an object")
    _check_version(found)
    models = _texts(found, "models")
    if not models:
        raise ModelError("MANIFEST names no models")
    types = _texts(found, "model-types")
    if types and len(types) != len(models):
        raise ModelError(f"MANIFEST has {len(types)} model-types for {len(models)} models")
    for kind in types:
        if kind not in MODEL_TYPES:
            raise ModelError(f"MANIFEST has model-type {kind!r}, expected one of {', '.join(MODEL_TYPES)}")
    return Manifest(
        models,
        types,
        _texts(found, "configs"),
        tuple(_port(text) for text in _texts(found, "pkg-inputs")),
        tuple(_port(text) for text in _texts(found, "pkg-outputs")),
        tuple(_connection(item) for item in _list(found, "model-connect")),
    )


def _check_version(found: dict[str, Any]) -> None:
    """Versions are numbers, as text or not; a newer major version has other rules."""
    try:
        major, minor = (int(found.get(key, default)) for key, default in (("major-version", 1), ("minor-version", 0)))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"MANIFEST has version {found.get('major-version')!r}.{found.get('minor-version')!r}, expected numbers"
        ) from error
    if (major, minor) > NEWEST or major < 1:
        raise ModelError(f"MANIFEST has version {major}.{minor}, the newest understood is {NEWEST[0]}.{NEWEST[1]}")


def _list(found: dict[str, Any], key: str) -> list[Any]:
    value = found.get(key, [])
    if not isinstance(value, list):
        raise ModelError(f"MANIFEST has {key} {value!r}, expected a list")
    return value


def _texts(found: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _list(found, key)
    for value in values:
        if not isinstance(value, str):
            raise ModelError(f"MANIFEST has {value!r} in {key}, expected text")
    return tuple(values)


def _port(text: Any) -> Port:
    """`M:S:I`: model, subgraph, position."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) != 3 or not all(p.isascii() and p.isdecimal() and len(p) < 9 for p in parts):
        raise ModelError(f"MANIFEST has {text!r}, expected MODEL:SUBGRAPH:POSITION")
    return Port(*map(int, parts))


def _connection(item: Any) -> Connection:
    if not isinstance(item, dict) or not isinstance(item.get("to"), list):
        raise ModelError(f"MANIFEST has {item!r} in model-connect, expected an object with 'from' and a list 'to'")
    return Connection(_port(item.get("from")), tuple(_port(text) for text in item["to"]))


def parse_config(raw: Data) -> dict[str, str]:
    """A configuration file: lines `key=value`, `#` begins a comment; ModelError for another line."""
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
                raise ModelError(f"line {number} of the configuration file is {text!r}, expected key=value")
            found[key.strip()] = value.strip()
    return found
