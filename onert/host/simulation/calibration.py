"""Measuring what a plan's networks take on the devices of this machine, and the file of what was found."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from attrs import asdict, frozen

from onert.backend import TensorInfo
from onert.host.errors import ConfigurationError
from onert.host.host_config import HostConfig
from onert.host.host_manager import HostManager
from onert.ir import Array
from onert.ir.process.replacing import replace
from onert.ir.value import Value

from .observed import observe

FREE = HostConfig(max_active_requests=1 << 20, max_queue_size=1 << 20)
"""Bounds that no request meets."""
_SHARES = (0.25, 0.65)
"""Of what devices can do, the parts that they are given in turn: they sleep for long at times, which makes the next run
longer, and have several runs waiting at others."""
_SPELL = 0.5
"""Seconds of each in turn, or all of their time if that is less: so both see the machine as it is."""
_FLOOD = 50
"""Requests at once, which tell what devices can do."""
_MOST = 1_000_000
"""Times of a file."""


@frozen
class Kept(Value):
    """What was measured of one network.

    - `seconds`: for each sub-network how long its runs kept a device, one after the other; `idle`: how long the device
      had had nothing to do before
    - `around`: how much longer than the run itself that was; `after`: what an answer takes after the last run
    """

    seconds: Mapping[str, tuple[float, ...]]
    idle: Mapping[str, tuple[float, ...]]
    around: float
    after: float


def numbers(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements for an input: random ones, and zeros where they may be indices; 1 for a size that is open."""
    shape, dtype = tuple(d or 1 for d in info.shape), info.dtype.numpy
    return rng.uniform(-1, 1, shape).astype(dtype) if dtype.kind == "f" else np.zeros(shape, dtype)


def calibrate(host: HostManager, name: str, seconds: float, seed: int = 0) -> Kept:
    """How long the runs of a host's network keep its devices: measured for so many seconds, with requests that come at
    random, in turn a quarter and two thirds of as many as devices can answer. Nothing else is asked of the host
    meanwhile; its queue is long (`FREE`).
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
    return Kept(kept, idle, found.around, found.after)


def capacity(host: HostManager, name: str, inputs: list[Array]) -> float:
    """How many requests for a network a host answers in a second: the better of two floods of them."""
    best = 0.0
    for _ in range(2):
        start = perf_counter()
        for future in [host.run_network(name, inputs) for _ in range(_FLOOD)]:
            future.result()
        best = max(best, _FLOOD / (perf_counter() - start))
    return best


def write(path: str | os.PathLike[str], found: Mapping[str, Kept]) -> None:
    """Write what was measured, by the names of networks; ConfigurationError where that is not possible."""
    try:
        replace(Path(path), (json.dumps({name: asdict(kept) for name, kept in found.items()}).encode(),))
    except OSError as error:
        raise ConfigurationError(f"{path}: the times cannot be written: {error.strerror or error}") from error


def read(path: str | os.PathLike[str]) -> dict[str, Kept]:
    """What `write` wrote; ConfigurationError for anything else."""
    try:
        document = json.loads(Path(path).read_bytes())
        return {name: _kept(table) for name, table in document.items()}
    except OSError as error:
        raise ConfigurationError(f"{path}: the times cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: no times that `onert_host measure` wrote: {error}") from error


def _kept(table: Mapping[str, Any]) -> Kept:
    seconds, idle = (
        {name: tuple(map(_second, times)) for name, times in table[side].items()} for side in ("seconds", "idle")
    )
    if not 0 < min(map(len, seconds.values())) <= sum(map(len, seconds.values())) <= _MOST:
        raise ValueError(f"there are none, or more than {_MOST}")
    if {name: len(times) for name, times in seconds.items()} != {name: len(times) for name, times in idle.items()}:
        raise ValueError("not every run has a time before it")
    return Kept(seconds, idle, _second(table["around"]), _second(table["after"]))


def _second(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e6:
        raise ValueError(f"{value!r:.100} is no number of seconds")
    return float(value)
