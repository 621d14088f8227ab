"""What is simulated, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import field, frozen

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
    - `idle`: for each of the `seconds` of one request how long the device had had nothing to do before, where that was
      measured: a run takes a time that followed a spell like its own (`times.py`)
    - `factors`: for each device how many times as long a run takes there
    - `transfers`: seconds from the end of each parent, or for a station without one of the request, until its results
      have arrived
    - `stateful`: whether all runs of a sequence go to one device
    """

    name: str
    devices: tuple[int, ...]
    seconds: Mapping[int, tuple[float, ...]]
    parents: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    transfers: tuple[float, ...] = ()
    stateful: bool = False
    idle: tuple[float, ...] = ()

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
    `trace` says, one second of the clock a line. Each has one of the `priorities`, and belongs to one of so many
    `sequences` if there are any: which, is drawn with equal chances.
    """

    rate: float = 0.0
    requests: int = 0
    trace: Path | None = None
    seed: int = 0
    priorities: tuple[int, ...] = (0,)
    sequences: int = 0

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

    def drawn_priorities(self, count: int) -> Array | int:
        """The priorities of so many requests."""
        if len(self.priorities) == 1:
            return self.priorities[0]
        return np.random.default_rng((self.seed, 1)).choice(self.priorities, count)

    def drawn_sequences(self, count: int) -> Array | None:
        """The sequences of so many requests; None where there are none."""
        if not self.sequences:
            return None
        return np.random.default_rng((self.seed, 2)).integers(0, self.sequences, count)


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
    """A network on its devices, and when requests for it come.

    - `priorities`: of all requests, or of each; lower ones are run first
    - `timeout`: seconds after which a request is late
    - `sequences`: the sequence that each request belongs to; those of one are run one after the other, not in batches
    """

    name: str
    stations: tuple[Station, ...]
    arrivals: Array
    batch: BatchConfig | None = None
    priorities: Array | int = 0
    timeout: float = float("inf")
    sequences: Array | None = None

    @property
    def is_plain(self) -> bool:
        """Whether no request goes before another, is late, or waits for its sequence."""
        return isinstance(self.priorities, int) and self.timeout == float("inf") and self.sequences is None

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
    """What came of a workload: counts, seconds of latency, and how busy each station was while there was work.

    Requests that were `late` or refused have no latency. `urgent_p99` has the 99th percentile of each priority, if
    there are several.
    """

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
    late: int = 0
    urgent_p99: Mapping[int, float] = field(factory=dict)

    @property
    def bottleneck(self) -> str:
        """The station that is busiest."""
        return max(self.utilisation, key=lambda name: self.utilisation[name])


def outcome(
    workload: Workload, latencies: Array, refused: int, end: float, busy: Sequence[float], *, late: int = 0
) -> Outcome:
    """The outcome of a workload that ended at `end`. `latencies` are those of all requests, NaN for those that were not
    answered; `busy` are the seconds of all runs of each station."""
    span = max(end - float(workload.arrivals[0]), 1e-12)
    is_answered = ~np.isnan(latencies)
    answered = latencies[is_answered]
    percentiles = np.percentile(answered, [50, 90, 99]) if answered.size else np.zeros(3)
    by_priority: dict[int, float] = {}
    if not isinstance(workload.priorities, int):
        for priority in np.unique(workload.priorities).tolist():
            own = latencies[is_answered & (workload.priorities == priority)]
            by_priority[priority] = float(np.percentile(own, 99)) if own.size else 0.0
    return Outcome(
        name=workload.name,
        answered=int(answered.size),
        refused=refused,
        throughput=answered.size / span,
        latency_mean=float(answered.mean()) if answered.size else 0.0,
        latency_p50=float(percentiles[0]),
        latency_p90=float(percentiles[1]),
        latency_p99=float(percentiles[2]),
        latency_max=float(answered.max()) if answered.size else 0.0,
        utilisation={
            station.name: seconds / (span * len(station.devices))
            for station, seconds in zip(workload.stations, busy, strict=True)
        },
        late=late,
        urgent_p99=by_priority,
    )
