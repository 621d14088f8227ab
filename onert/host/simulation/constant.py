"""A closed-form simulation for runs that all take the same time.

If every run of a station takes `s` on each of its `n` devices, runs end in the order in which they start. The least
busy device (of several, the one chosen least recently) is then always the next one in turn: run k goes to device k mod
n. It starts there when it is ready and the previous run is over,

    start[k] = max(ready[k], start[k - n] + s),

which for one device and j = k // n is a running maximum: start[j] - j·s = max over i <= j of (ready[i] - i·s) (Lindley
1952). Runs that become ready in order end in order, so the following stations are computed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.host.host_config import HostConfig
from onert.ir import Array

from .model import Outcome, Station, Workload, outcome


def applies(workloads: Sequence[Workload]) -> bool:
    """Whether the closed form applies: one workload without batches, priorities, timeouts and sequences, constant run
    times, and at most one station per device."""
    if len(workloads) != 1 or workloads[0].batch is not None or not workloads[0].is_plain:
        return False
    stations = workloads[0].stations
    devices = [device for station in stations for device in station.devices]
    return len(devices) == len(set(devices)) and all(station.is_constant for station in stations)


def worked_out(workload: Workload, config: HostConfig) -> Outcome | None:
    """The outcome; None if so many requests are in progress at the same time that the host's limits matter."""
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
    """The end of each run, for runs that become ready in order."""
    rows = -(-ready.size // devices)
    padded = np.full(rows * devices, np.inf)
    padded[: ready.size] = ready
    table = padded.reshape(rows, devices)
    waits = seconds * np.arange(rows)[:, None]
    table -= waits
    np.maximum.accumulate(table, axis=0, out=table)
    table += waits + seconds
    return padded[: ready.size]
