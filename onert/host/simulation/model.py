"""What is simulated, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from onert.host.errors import ConfigurationError
from onert.host.host_config import BatchConfig
from onert.ir import Array
from onert.ir.value import Value

MOST_REQUESTS = 50_000_000


@frozen(eq=False)
class Station:
    """A sub-network and the devices that it is on.

    - `devices`: their numbers; a run goes to the one that is least busy
    - `parents`: the stations whose results it waits for, by their place in the workload
    - `seconds`: what a run takes, for each number of requests that it is compiled for: one number, or several that
      were measured, which runs take in turn, so that a spell of slow ones stays together
    - `factors`: for each device how many times as long a run takes there
    - `transfers`: seconds from the end of each parent, or for a station without one of the request, until its results
      have arrived
    """

    name: str
    devices: tuple[int, ...]
    seconds: Mapping[int, tuple[float, ...]]
    parents: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    transfers: tuple[float, ...] = ()

    def transfer(self, parent: int) -> float:
        """Seconds between the end of a parent, by its place among them, and its results' arrival."""
        return self.transfers[parent] if self.transfers else 0.0

    @property
    def is_constant(self) -> bool:
        """Whether every run takes the same time."""
        alike = not self.factors or len(set(self.factors)) == 1
        return alike and all(len(each) == 1 for each in self.seconds.values())


@frozen
class Stream(Value):
    """Requests as they come: `requests` of them, at random with `rate` a second (a Poisson process), or when a recorded
    `trace` says, one second of the clock a line."""

    rate: float = 0.0
    requests: int = 0
    trace: Path | None = None
    seed: int = 0

    def arrivals(self) -> Array:
        """The seconds at which requests come, in order. ConfigurationError where there are none, or too many."""
        if self.trace is not None:
            return _recorded(self.trace)
        if not 0 < self.requests <= MOST_REQUESTS or not 0 < self.rate < float("inf"):
            raise ConfigurationError(
                f"a stream has {self.requests} requests, {self.rate:g} a second; expected 1 to {MOST_REQUESTS} and a "
                "rate above 0"
            )
        rng = np.random.default_rng(self.seed)
        found: Array = np.cumsum(rng.exponential(1 / self.rate, self.requests))
        return found


def _recorded(place: Path) -> Array:
    try:
        found = np.atleast_1d(np.loadtxt(place, np.float64))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place}: the trace cannot be read: {error}") from error
    if found.ndim != 1 or not 0 < found.size <= MOST_REQUESTS or not np.isfinite(found).all():
        raise ConfigurationError(f"{place}: the trace is not 1 to {MOST_REQUESTS} seconds, one a line")
    recorded: Array = np.sort(found) - found.min()
    return recorded


@frozen(eq=False)
class Workload:
    """A network on its devices, and when requests for it come."""

    name: str
    stations: tuple[Station, ...]
    arrivals: Array
    batch: BatchConfig | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of requests that the network is compiled for."""
        return tuple(sorted(self.stations[0].seconds))

    @property
    def instances(self) -> int:
        """How many batches devices can work on at a time."""
        return sum(len(station.devices) for station in self.stations)


@frozen
class Outcome(Value):
    """What came of a workload: counts, seconds of latency, and how busy each station was while there was work."""

    name: str
    answered: int
    refused: int
    throughput: float
    latency_mean: float
    latency_p50: float
    latency_p90: float
    latency_p99: float
    latency_max: float
    utilisation: Mapping[str, float]

    @property
    def bottleneck(self) -> str:
        """The station that is busiest."""
        return max(self.utilisation, key=lambda name: self.utilisation[name])


def outcome(workload: Workload, latencies: Array, refused: int, end: float, busy: Sequence[float]) -> Outcome:
    """The outcome of a workload that ended at `end`; `busy` are the seconds of all runs of each station."""
    span = max(end - float(workload.arrivals[0]), 1e-12)
    percentiles = np.percentile(latencies, [50, 90, 99]) if latencies.size else np.zeros(3)
    return Outcome(
        name=workload.name,
        answered=int(latencies.size),
        refused=refused,
        throughput=latencies.size / span,
        latency_mean=float(latencies.mean()) if latencies.size else 0.0,
        latency_p50=float(percentiles[0]),
        latency_p90=float(percentiles[1]),
        latency_p99=float(percentiles[2]),
        latency_max=float(latencies.max()) if latencies.size else 0.0,
        utilisation={
            station.name: seconds / (span * len(station.devices))
            for station, seconds in zip(workload.stations, busy, strict=True)
        },
    )
