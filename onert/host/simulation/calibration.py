"""Measure run times of networks on this machine's devices, and read and write them as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict, frozen

from onert.host.errors import ConfigurationError
from onert.host.host_config import HostConfig
from onert.host.host_manager import HostManager
from onert.host.partitioner.costs import numbers
from onert.ir import Array
from onert.ir.process.replacing import replace
from onert.ir.value import Value

from .observed import observe

FREE = HostConfig(max_active_requests=1 << 20, max_queue_size=1 << 20)
"""Limits that no request reaches."""
_SHARES = (0.25, 0.65)
"""Fractions of the devices' capacity that are used in turn: with a low load devices sleep longer, which makes the next
run slower; with a higher load several runs are waiting."""
_SPELL = 0.5
"""The longest period of each load in seconds; alternating exposes both to the same changes of the machine's speed."""
_FLOOD = 50
"""Concurrent requests for measuring the devices' capacity."""
_MOST = 1_000_000
"""The most times in a file."""


@frozen
class Measurements(Value):
    """The measurements of a network.

    - `seconds`: for each sub-network, how long each of its runs occupied a device; `idle`: how long the device had been
      idle before each run
    - `around`: how much longer than the run a device was occupied; `after`: the time from the last run to the answer
    """

    seconds: Mapping[str, tuple[float, ...]]
    idle: Mapping[str, tuple[float, ...]]
    around: float
    after: float


def calibrate(host: HostManager, name: str, seconds: float, seed: int = 0) -> Measurements:
    """Measure for `seconds` seconds how long a network's runs occupy devices.

    Requests arrive at random; their rate alternates between a quarter and 65 % of the devices' capacity. The host must
    have no other requests meanwhile, and a long queue (`FREE`).
    """
    rng = np.random.default_rng(seed)
    inputs = [numbers(info, rng) for info, _ in host.get_network_dag(name).inputs]
    most = capacity(host, name, inputs)
    turns = max(1, round(seconds / (_SPELL * len(_SHARES))))
    spell = seconds / (turns * len(_SHARES))
    rates = [most * share for _ in range(turns) for share in _SHARES]
    gaps = [rng.exponential(1 / rate, max(2, round(rate * spell))) for rate in rates]
    found = observe(host, name, inputs, np.cumsum(np.concatenate(gaps)))
    kept, idle = ({name: tuple(each.tolist()) for name, each in side.items()} for side in (found.kept, found.idle))
    return Measurements(kept, idle, found.around, found.after)


def capacity(host: HostManager, name: str, inputs: list[Array]) -> float:
    """The requests per second that a host can answer, as the better of two bursts."""
    best = 0.0
    for _ in range(2):
        start = perf_counter()
        for future in [host.run_network(name, inputs) for _ in range(_FLOOD)]:
            future.result()
        best = max(best, _FLOOD / (perf_counter() - start))
    return best


def write(path: str | os.PathLike[str], found: Mapping[str, Measurements]) -> None:
    """Write measurements by network name. Raises ConfigurationError if that fails."""
    try:
        replace(Path(path), (json.dumps({name: asdict(kept) for name, kept in found.items()}).encode(),))
    except OSError as error:
        raise ConfigurationError(f"{path}: the times cannot be written: {error.strerror or error}") from error


def read(path: str | os.PathLike[str]) -> dict[str, Measurements]:
    """Read a file written by `write`. Raises ConfigurationError for anything else."""
    try:
        document = json.loads(Path(path).read_bytes())
        return {name: _kept(table) for name, table in document.items()}
    except OSError as error:
        raise ConfigurationError(f"{path}: the times cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{path} was not written by `onert_host measure`: {error}") from error


def _kept(table: Mapping[str, Any]) -> Measurements:
    seconds, idle = (
        {name: tuple(map(_second, times)) for name, times in table[side].items()} for side in ("seconds", "idle")
    )
    if not 0 < min(map(len, seconds.values())) <= sum(map(len, seconds.values())) <= _MOST:
        raise ValueError(f"it has no times, or more than {_MOST}")
    if {name: len(times) for name, times in seconds.items()} != {name: len(times) for name, times in idle.items()}:
        raise ValueError("the numbers of run times and idle times differ")
    return Measurements(seconds, idle, _second(table["around"]), _second(table["after"]))


def _second(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e6:
        raise ValueError(f"{value!r:.100} is not a number of seconds")
    return float(value)
