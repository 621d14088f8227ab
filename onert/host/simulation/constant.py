"""Runs that all take the same time, worked out without a clock.

If every run of a station takes `s` on each of its `n` devices, runs end in the order in which they begin. So the device
with the least to do, and of several the one that was chosen longest ago, is always the next in turn: run k goes to
device k mod n. There it begins when it is ready and the run before it is over,

    start[k] = max(ready[k], start[k - n] + s),

which for one device and j = k // n is a running maximum: start[j] - j·s = max over i <= j of (ready[i] - i·s)
(Lindley 1952). Runs that are ready in order end in order, so the stations behind are worked out in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.host.host_config import HostConfig
from onert.ir import Array

from .model import Outcome, Station, Workload, outcome


def applies(workloads: Sequence[Workload]) -> bool:
    """Whether a simulation can be worked out so: one workload, no batches, no order among requests but that of their
    arrival, and devices that have one station each."""
    if len(workloads) != 1 or workloads[0].batch is not None or not workloads[0].is_plain:
        return False
    stations = workloads[0].stations
    devices = [device for station in stations for device in station.devices]
    return len(devices) == len(set(devices)) and all(station.is_constant for station in stations)


def worked_out(workload: Workload, config: HostConfig) -> Outcome | None:
    """The outcome; None where so many requests are under way at a time that the host's bounds count."""
    ends: list[Array] = []
    for station in workload.stations:
        first = station.transfer(0)
        ready = workload.arrivals + first if not station.parents else ends[station.parents[0]] + first
        for at, parent in enumerate(station.parents[1:], 1):
            ready = np.maximum(ready, ends[parent] + station.transfer(at))
        ends.append(_ends(ready, _seconds(station), len(station.devices)))
    end = ends[0]
    for other in ends[1:]:
        end = np.maximum(end, other)
    most = config.max_active_requests
    if end.size > most and (end[:-most] > workload.arrivals[most:]).any():
        return None
    busy = [_seconds(station) * end.size for station in workload.stations]
    return outcome(workload, end - workload.arrivals, 0, float(end[-1]), busy)


def _seconds(station: Station) -> float:
    return station.seconds[1][0] * (station.factors[0] if station.factors else 1.0)


def _ends(ready: Array, seconds: float, devices: int) -> Array:
    """When each run ends, of runs that are ready in order."""
    rows = -(-ready.size // devices)
    padded = np.full(rows * devices, np.inf)
    padded[: ready.size] = ready
    table = padded.reshape(rows, devices)
    waits = seconds * np.arange(rows)[:, None]
    table -= waits
    np.maximum.accumulate(table, axis=0, out=table)
    table += waits + seconds
    return padded[: ready.size]
