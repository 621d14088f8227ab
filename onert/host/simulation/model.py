"""The input and output of a simulation."""

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
    """A sub-network and the devices that hold it.

    - `devices`: their numbers; a run goes to the least busy one
    - `parents`: the stations whose results it needs, by their index in the workload
    - `seconds`: the time of a run for each compiled batch size: one number, or several measured ones, which runs use in
      turn, so that periods of slow runs stay together
    - `idle`: for each of the `seconds` of batch size 1, how long the device had been idle before, if measured: a run
      uses a time that followed a similar idle period (`times.py`)
    - `factors`: for each device, how many times longer a run takes there
    - `transfers`: for each parent, seconds from its end until its results have arrived; without parents, seconds for
      the request's inputs
    - `stateful`: whether all runs of a sequence go to the same device
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
        """Seconds between the end of a parent, by its index among them, and the arrival of its results."""
        return self.transfers[parent] if self.transfers else 0.0

    @property
    def is_constant(self) -> bool:
        """Whether all runs take the same time."""
        alike = not self.factors or len(set(self.factors)) == 1
        return alike and all(len(each) == 1 for each in self.seconds.values())


@frozen
class Stream(Value):
    """A stream of requests: either `requests` random arrivals with `rate` per second (a Poisson process), or the times
    in a recorded `trace`, in seconds, one per line. Each request has one of the `priorities` and, if there are any,
    belongs to one of `sequences` sequences; both are drawn uniformly."""

    rate: float = 0.0
    requests: int = 0
    trace: Path | None = None
    seed: int = 0
    priorities: tuple[int, ...] = (0,)
    sequences: int = 0

    def arrivals(self) -> Array:
        """The arrival times in seconds, in order. Raises ConfigurationError if there are none, or too many."""
        if self.trace is not None:
            return _recorded(self.trace)
        if not 0 < self.requests <= MOST_REQUESTS or not 0 < self.rate < float("inf"):
            raise ConfigurationError(
                f"a stream has {self.requests} requests, {self.rate:g} per second; expected 1 to {MOST_REQUESTS} and a "
                "rate above 0"
            )
        rng = np.random.default_rng(self.seed)
        found: Array = np.cumsum(rng.exponential(1 / self.rate, self.requests))
        return found

    def drawn_priorities(self, count: int) -> Array | int:
        """The priorities of `count` requests."""
        if len(self.priorities) == 1:
            return self.priorities[0]
        return np.random.default_rng((self.seed, 1)).choice(self.priorities, count)

    def drawn_sequences(self, count: int) -> Array | None:
        """The sequences of `count` requests; None if there are no sequences."""
        if not self.sequences:
            return None
        return np.random.default_rng((self.seed, 2)).integers(0, self.sequences, count)


def _recorded(place: Path) -> Array:
    try:
        found = np.atleast_1d(np.loadtxt(place, np.float64))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place}: the trace cannot be read: {error}") from error
    if found.ndim != 1 or not 0 < found.size <= MOST_REQUESTS or not np.isfinite(found).all():
        raise ConfigurationError(f"{place}: the trace is invalid, expected 1 to {MOST_REQUESTS} times, one per line")
    recorded: Array = np.sort(found) - found.min()
    return recorded


@frozen(eq=False)
class Workload:
    """A network on its devices, and the arrival times of its requests.

    - `priorities`: one for all requests, or one for each; lower values run first
    - `timeout`: seconds after which a request is late
    - `sequences`: the sequence of each request; requests of a sequence run one after another and are not batched
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
        """Whether there are no priorities, timeouts or sequences."""
        return isinstance(self.priorities, int) and self.timeout == float("inf") and self.sequences is None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The compiled batch sizes."""
        return tuple(sorted(self.stations[0].seconds))

    @property
    def instances(self) -> int:
        """How many batches can run at the same time."""
        return sum(len(station.devices) for station in self.stations)


@frozen
class Outcome(Value):
    """The result of a workload: counts, latencies in seconds, and the utilisation of each station.

    `late` and `refused` requests have no latency. `urgent_p99` is the p99 of each priority, if there are several.
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
        """The busiest station."""
        return max(self.utilisation, key=lambda name: self.utilisation[name])


def outcome(
    workload: Workload, latencies: Array, refused: int, end: float, busy: Sequence[float], *, late: int = 0
) -> Outcome:
    """The outcome of a workload that ended at `end`. `latencies` are those of all requests, NaN for unanswered ones;
    `busy` is the total run time of each station in seconds."""
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
