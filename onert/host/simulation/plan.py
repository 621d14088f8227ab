"""Plans: simulations described in a TOML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from onert.host.device_config import DeviceConfig, parse_devices, require_known, toml_document
from onert.host.errors import ConfigurationError
from onert.host.host_config import BatchConfig, HostConfig
from onert.ir.value import Value

from .calibration import Measurements, read
from .model import Stream
from .networks import Link, Timing

MOST_DEVICES = 1 << 16


@frozen
class PlannedNetwork(Value):
    """A network of a plan: the model's file, its placement, and its requests."""

    model: Path
    name: str
    stream: Stream
    parts: int | None = None
    copies: int | None = 1
    batch: BatchConfig | None = None
    timing: Timing = field(factory=Timing)
    timeout: float = float("inf")


@frozen
class Plan(Value):
    """Described devices, the link between them, the host's limits, and networks."""

    devices: tuple[DeviceConfig, ...]
    networks: tuple[PlannedNetwork, ...]
    host: HostConfig = field(factory=lambda: HostConfig(1 << 40, 0, max_sequences=1 << 40))
    link: Link = field(factory=Link)

    def with_devices(self, count: int) -> Plan:
        """The plan with `count` devices like its first, and every network copied to all of them."""
        devices = tuple(evolve(self.devices[0], name=f"device{at}") for at in range(count))
        return evolve(self, devices=devices, networks=tuple(evolve(n, copies=None) for n in self.networks))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a TOML file. Paths in it are relative to the file.

    `[[device]]`: as in a file of devices, and `count` for several equal ones. `[[network]]`: `model`, `name`, `parts`,
    `copies` (0: as many as there are devices for), `batch`, `batch_delay`, `times` ("roofline" or "measured"), `kept`
    (a file written by `onert_host measure`), `seconds`, `overhead`, and for its requests `rate` and `requests`, or
    `trace`, and `seed`, `priorities`, `timeout`, `sequences`. `[link]`: `latency`, `bandwidth`. `[host]`:
    `max_active_requests`, `max_queue_size`, `max_sequences`, `sequence_idle`. Times are in seconds. Raises
    ConfigurationError with the file, the table and the field if something is invalid.
    """
    place = Path(path)
    document = toml_document(place, "plan")
    require_known(document, {"device", "network", "link", "host"}, str(place), "table")
    networks = _tables(document, "network", str(place))
    return Plan(
        devices=_devices(document, str(place)),
        networks=tuple(_network(table, place, f"{place}: network {at}") for at, table in enumerate(networks)),
        host=_host(_table(document, "host", str(place)), f"{place}: host"),
        link=_link(_table(document, "link", str(place)), f"{place}: link"),
    )


def _tables(document: Mapping[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise ConfigurationError(f"{place}: there is no table [[{name}]]")
    return found


def _table(document: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"{place}: {name!r} is not a table")
    return found


def _devices(document: Mapping[str, Any], place: str) -> tuple[DeviceConfig, ...]:
    described: list[dict[str, Any]] = []
    for at, given in enumerate(_tables(document, "device", place)):
        table = dict(given)
        count = _number(table.pop("count", 1), f"{place}: device {at}: count", 1, MOST_DEVICES, whole=True)
        name = table.pop("name", f"device{at}")
        described += [{**table, "name": name if count == 1 else f"{name}.{each}"} for each in range(int(count))]
    if len(described) > MOST_DEVICES:
        raise ConfigurationError(f"{place}: there are {len(described)} devices, expected at most {MOST_DEVICES}")
    return parse_devices({"device": described}, place)


def _number(value: Any, place: str, least: float, most: float, *, whole: bool = False) -> float:
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not fits or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise ConfigurationError(f"{place} is {value!r:.100}, expected {kind} from {least:g} to {most:g}")
    return float(value)


_SECONDS = (0.0, 1e6)
_COUNT = (0, 10**9)


def _network(table: Mapping[str, Any], place: Path, where: str) -> PlannedNetwork:
    require_known(table, {"model", "name", "times", "kept", "trace", "priorities", *_NUMBERS}, where)
    given = {
        name: _number(table[name], f"{where}: {name}", *bounds, whole=whole)
        for name, (bounds, whole) in _NUMBERS.items()
        if name in table
    }
    texts = {name: table[name] for name in ("model", "name", "times", "kept", "trace") if name in table}
    for name, value in texts.items():
        if not isinstance(value, str) or not value:
            raise ConfigurationError(f"{where}: {name} is {value!r:.100}, expected a string")
    if "model" not in texts:
        raise ConfigurationError(f"{where}: there is no model")
    if texts.get("times", "roofline") not in ("roofline", "measured"):
        raise ConfigurationError(f"{where}: times is {texts['times']!r:.100}, expected 'roofline' or 'measured'")
    model = place.parent / texts["model"]
    name = texts.get("name", model.stem)
    batch = int(given.get("batch", 1))
    timing = Timing()
    return PlannedNetwork(
        model=model,
        name=name,
        stream=Stream(
            rate=given.get("rate", 0.0),
            requests=int(given.get("requests", 0)),
            trace=place.parent / texts["trace"] if "trace" in texts else None,
            seed=int(given.get("seed", 0)),
            priorities=_priorities(table.get("priorities", [0]), where),
            sequences=int(given.get("sequences", 0)),
        ),
        parts=int(given["parts"]) if "parts" in given else None,
        copies=int(given.get("copies", 1)) or None,
        batch=BatchConfig(batch, given.get("batch_delay", 0.0)) if batch > 1 else None,
        timing=Timing(
            measured=texts.get("times") == "measured",
            kept=_kept(place.parent / texts["kept"], name, where) if "kept" in texts else None,
            overhead=given.get("overhead", timing.overhead),
            seconds=given.get("seconds"),
        ),
        timeout=given.get("timeout", float("inf")),
    )


def _kept(path: Path, name: str, where: str) -> Measurements:
    """The measurements of a network in a file."""
    found = read(path)
    if name not in found:
        raise ConfigurationError(f"{where}: {path} has times of {', '.join(map(repr, found))}, expected also {name!r}")
    return found[name]


def _priorities(given: Any, where: str) -> tuple[int, ...]:
    if not isinstance(given, list) or not given:
        raise ConfigurationError(f"{where}: priorities are {given!r:.100}, expected a list of whole numbers")
    bound = 1 << 31
    return tuple(int(_number(each, f"{where}: a priority", -bound, bound, whole=True)) for each in given)


_NUMBERS: dict[str, tuple[tuple[float, float], bool]] = {
    "parts": ((1, 1000), True),
    "copies": ((0, MOST_DEVICES), True),
    "batch": ((1, 1 << 16), True),
    "batch_delay": (_SECONDS, False),
    "seconds": (_SECONDS, False),
    "overhead": (_SECONDS, False),
    "rate": ((0.0, 1e9), False),
    "requests": (_COUNT, True),
    "seed": (_COUNT, True),
    "sequences": (_COUNT, True),
    "timeout": ((1e-9, 1e6), False),
}


def _host(table: Mapping[str, Any], place: str) -> HostConfig:
    """The host's limits. By default there are none, so that requests wait only for devices."""
    defaults = {"max_active_requests": 1 << 40, "max_queue_size": 0, "max_sequences": 1 << 40}
    require_known(table, {*defaults, "sequence_idle"}, place)
    counts = {
        name: int(_number(table.get(name, default), f"{place}: {name}", name == "max_active_requests", 1 << 40))
        for name, default in defaults.items()
    }
    idle = _number(table.get("sequence_idle", HostConfig().sequence_idle), f"{place}: sequence_idle", *_SECONDS)
    return HostConfig(**counts, sequence_idle=idle)


def _link(table: Mapping[str, Any], place: str) -> Link:
    require_known(table, {"latency", "bandwidth"}, place)
    link = Link()
    return Link(
        _number(table.get("latency", link.latency), f"{place}: latency", 0.0, 1e6),
        _number(table["bandwidth"], f"{place}: bandwidth", 1.0, 1e15) if "bandwidth" in table else link.bandwidth,
    )
