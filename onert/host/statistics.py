"""Statistics of a host: requests, times, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from threading import Lock

import numpy as np
from attrs import frozen

from onert.ir.value import Value

_PER_OCTAVE = 64
_OCTAVES = 40
_SHORTEST = 1e-7
"""The upper bound of the first bucket, in seconds."""
_FEW = 8
"""With fewer times than this, counting them one by one is faster than NumPy."""


class Latencies:
    """A histogram of times with buckets that grow by 1.1 %, for percentiles in constant memory."""

    __slots__ = ("_counts", "_sum", "count", "longest")

    def __init__(self) -> None:
        self._counts = [0] * (_PER_OCTAVE * _OCTAVES)
        self._sum = 0.0
        self.count = 0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Add one time."""
        at = int(_PER_OCTAVE * log2(seconds / _SHORTEST)) if seconds > _SHORTEST else 0
        self._counts[min(at, len(self._counts) - 1)] += 1
        self._sum += seconds
        self.count += 1
        if seconds > self.longest:
            self.longest = seconds

    def add_all(self, times: Sequence[float]) -> None:
        """Add several times."""
        if len(times) < _FEW:
            for seconds in times:
                self.add(seconds)
            return
        octaves = np.log2(np.maximum(times, _SHORTEST) / _SHORTEST)
        for at in np.minimum(_PER_OCTAVE * octaves, len(self._counts) - 1).astype(int).tolist():
            self._counts[at] += 1
        self._sum += sum(times)
        self.count += len(times)
        self.longest = max(self.longest, *times)

    @property
    def mean(self) -> float:
        """The mean in seconds; 0 if there are no times."""
        return self._sum / self.count if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """A percentile in seconds, accurate to 1.1 %; 0 if there are no times."""
        wanted = self.count * percent / 100
        seen = 0
        for at, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted and at < len(self._counts) - 1:
                return min(float(_SHORTEST * 2 ** ((at + 1) / _PER_OCTAVE)), self.longest)
        return self.longest  # in the last bucket, which has no upper bound; or 0


class Counters:
    """Counts and latencies of the requests for a network."""

    __slots__ = ("_lock", "failed", "latencies", "refused", "retried", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.refused = 0
        self.retried = 0
        self._lock = Lock()
        self.latencies = Latencies()

    def retry(self) -> None:
        """Count a retried run. May be called by any thread."""
        with self._lock:
            self.retried += 1

    def snapshot(self, active: int, waiting: int) -> NetworkStatistics:
        """The current counts."""
        times = self.latencies
        return NetworkStatistics(
            requests_succeeded=self.succeeded,
            requests_failed=self.failed,
            requests_refused=self.refused,
            runs_retried=self.retried,
            requests_active=active,
            requests_waiting=waiting,
            latency_mean=times.mean,
            latency_p50=times.percentile(50),
            latency_p90=times.percentile(90),
            latency_p99=times.percentile(99),
            latency_max=times.longest,
        )


@frozen
class NetworkStatistics(Value):
    """Requests for a network. Refused ones were never run, because the queue was full or an input was invalid.

    `runs_retried` counts runs that were retried because their device was lost. Latencies are seconds from call to
    answer of successful requests; percentiles are accurate to 1.1 %.
    """

    requests_succeeded: int
    requests_failed: int
    requests_refused: int
    runs_retried: int
    requests_active: int
    requests_waiting: int
    latency_mean: float
    latency_p50: float
    latency_p90: float
    latency_p99: float
    latency_max: float

    @property
    def requests_processed(self) -> int:
        """The requests that were run, successfully or not."""
        return self.requests_succeeded + self.requests_failed


@frozen
class DeviceStatistics(Value):
    """A device: bytes of memory, active and waiting runs, and the functions that it holds."""

    kind: str
    maximum_memory: int
    available_memory: int
    load: int
    functions: tuple[str, ...]

    @property
    def used_memory(self) -> int:
        return self.maximum_memory - self.available_memory


@frozen
class HostStatistics(Value):
    """All statistics of a host, by the names of networks and devices."""

    networks: Mapping[str, NetworkStatistics]
    devices: Mapping[str, DeviceStatistics]
    queue_size: int
    max_queue_size: int
    active: int
    max_active: int
