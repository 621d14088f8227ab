"""`DeviceConfig`: the devices of a host, from Python or from a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from attrs import Attribute, evolve, field, fields, frozen

from onert.ir.value import Value

from .errors import ConfigurationError

SPEEDS = ("sram_capacity", "peak_compute", "peak_dram_bw", "peak_sram_bw", "peak_link_bw")
"""The fields of `DeviceInfo` that `DeviceConfig.speeds` may set."""
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def _positive(device: DeviceConfig, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and value <= 0:
        raise ConfigurationError(f"device {device.name!r}: {attribute.name} is {value}, expected more than 0")


@frozen
class DeviceConfig(Value):
    """One device of a host.

    - `name`: its name in statistics and messages; empty: its kind and position in the list
    - `kind`: "cpu" runs in this process on a thread of its own, "process" in a process of its own, "ray" on a node of a
      Ray cluster
    - `backend`: the backend that compiles for it, by name or import path
    - `memory`: bytes that networks may use; None: all of the machine's memory
    - `threads`: threads that a run may use; None: an equal share of the processors for each device
    - `cores`: the processors that its threads are bound to; empty: any
    - `supported`, `unsupported`: kinds of operations ("Conv2D", "ADD") that it may only, or must not, be assigned
    - `speeds`: values for the fields of `DeviceInfo` in `SPEEDS` that differ from the defaults
    - `parameters`: settings specific to its backend or its kind of device
    """

    name: str = ""
    kind: str = "cpu"
    backend: str = "llvm"
    memory: int | None = field(default=None, validator=_positive)
    threads: int | None = field(default=None, validator=_positive)
    cores: tuple[int, ...] = ()
    supported: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()
    speeds: Mapping[str, float] = field(factory=dict)
    parameters: Mapping[str, str] = field(factory=dict)


def named(devices: Sequence[DeviceConfig]) -> tuple[DeviceConfig, ...]:
    """The devices, each with a name. Raises ConfigurationError if two names are equal or there are no devices."""
    if not devices:
        raise ConfigurationError("the host has no devices, expected at least one")
    found = tuple(evolve(d, name=d.name or f"{d.kind}{at}") for at, d in enumerate(devices))
    for at, device in enumerate(found):
        if device.name in (other.name for other in found[:at]):
            raise ConfigurationError(f"two devices are called {device.name!r}, expected distinct names")
    return found


def load_devices(path: str | os.PathLike[str]) -> tuple[DeviceConfig, ...]:
    """The devices in a TOML file, in order of preference: a table `[[device]]` each, with the fields of `DeviceConfig`.

    `memory` may be a string with a unit ("2 GiB", "512 MB"). Raises ConfigurationError, naming the file, the device and
    the field, if something is invalid.
    """
    return parse_devices(toml_document(path, "devices"), str(path))


def toml_document(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Parse a TOML file. Raises ConfigurationError, naming the file and `what` it should contain, if that fails."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: the {what} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: the file is not TOML: {error}") from error


def require_known(table: Mapping[str, Any], known: Set[str], place: str, what: str = "field") -> None:
    """Raises ConfigurationError for keys of a table that are not in `known`. `what` names them in the message."""
    unknown = table.keys() - known
    if unknown:
        raise ConfigurationError(
            f"{place}: unknown {what} {', '.join(sorted(unknown))}, expected {', '.join(sorted(known))}"
        )


def parse_devices(document: Mapping[str, Any], place: str) -> tuple[DeviceConfig, ...]:
    """The devices in a TOML document that was read from `place`."""
    unknown = document.keys() - {"device"}
    if unknown:
        raise ConfigurationError(f"{place}: unknown table {', '.join(sorted(unknown))}, expected [[device]]")
    tables = document.get("device", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(f"{place}: 'device' is not a list of tables, expected [[device]]")
    return named([_device(table, f"{place}: device {at}") for at, table in enumerate(tables)])


def _device(table: Mapping[str, Any], place: str) -> DeviceConfig:
    require_known(table, {f.name for f in fields(DeviceConfig)}, place)
    return DeviceConfig(**{name: _READ[name](value, f"{place}: {name}") for name, value in table.items()})


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{place} is {value!r}, expected a string")
    return value


def _whole(value: Any, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise ConfigurationError(f"{place} is {value!r}, expected a whole number of at least 0")
    return value


def _bytes(value: Any, place: str) -> int:
    if not isinstance(value, str):
        return _whole(value, place)
    number, _, unit = value.partition(" ")
    if unit not in _UNITS or not number.isascii() or not number.isdecimal() or len(number) > 12:
        raise ConfigurationError(f"{place} is {value!r}, expected bytes, or a number and one of {', '.join(_UNITS)}")
    return int(number) * _UNITS[unit]


def _list(value: Any, place: str, each: Callable[[Any, str], Any]) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigurationError(f"{place} is {value!r}, expected a list")
    return [each(one, place) for one in value]


def _table(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{place} is {value!r}, expected a table")
    return value


def _speeds(value: Any, place: str) -> dict[str, float]:
    found = {}
    for name, speed in _table(value, place).items():
        if name not in SPEEDS:
            raise ConfigurationError(f"{place} has {name!r}, expected {', '.join(SPEEDS)}")
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed < float("inf"):
            raise ConfigurationError(f"{place}.{name} is {speed!r}, expected a number above 0")
        found[name] = speed
    return found


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "name": _text,
    "kind": _text,
    "backend": _text,
    "memory": _bytes,
    "threads": _whole,
    "cores": lambda value, place: tuple(_list(value, place, _whole)),
    "supported": lambda value, place: frozenset(_list(value, place, _text)),
    "unsupported": lambda value, place: frozenset(_list(value, place, _text)),
    "speeds": _speeds,
    "parameters": lambda value, place: {
        _text(key, place): _text(one, f"{place}.{key}") for key, one in _table(value, place).items()
    },
}
