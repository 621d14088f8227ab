"""Run a stream of requests on a real host, and record latencies and how long runs occupy devices."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapreplace
from statistics import median
from time import perf_counter, sleep

import numpy as np
from attrs import frozen

from onert.host.dag import DAG
from onert.host.host_manager import HostManager, Inputs
from onert.host.provisioner import function_names
from onert.host.trace import HostTrace
from onert.ir import Array

_NANOSECONDS = 1e9


@frozen(eq=False)
class Observed:
    """A stream answered by a host. Times are in seconds.

    - `came`: the time of each request, relative to the first; `latencies`: its latency
    - `kept`: for each sub-network, how long its runs occupied a device, in order of their start; `idle`: how long the
      device had been idle before
    - `after`: the time from the last run to the answer; `around`: the time that a device was occupied beyond its run;
      medians
    """

    came: Array
    latencies: Array
    kept: Mapping[str, Array]
    idle: Mapping[str, Array]
    after: float
    around: float


def observe(host: HostManager, name: str, inputs: Inputs, arrivals: Array) -> Observed:
    """Send requests for a network at these times, without waiting for answers, and return the observations.

    The network must not be batched, and the host must have no other requests meanwhile. Errors of requests are raised.
    """
    host.start_trace()
    try:
        _stream(host, name, inputs, arrivals)
    finally:
        trace = host.stop_trace()
    return observed(trace, host.get_network_dag(name))


def _stream(host: HostManager, name: str, inputs: Inputs, arrivals: Array) -> None:
    begun = perf_counter()
    futures = []
    for when in arrivals.tolist():
        left = begun + when - perf_counter()
        if left > 0:
            sleep(left)
        futures.append(host.run_network(name, inputs))
    for future in futures:
        future.result()


def observed(trace: HostTrace, dag: DAG) -> Observed:
    """The observations in a trace of requests for one network."""
    spans = sorted(trace.spans, key=lambda each: each.number)
    start, end = (np.array([getattr(each, side) for each in spans]) / _NANOSECONDS for side in ("start", "end"))
    found = _kept(trace, dag, np.sort(start))
    around = [run.kept - run.taken for runs in found.values() for run in runs]
    kept = {name: np.array([run.kept for run in runs]) for name, runs in found.items()}
    idle = {name: np.array([run.idle for run in runs]) for name, runs in found.items()}
    ends = {name: np.sort([run.end for run in runs]) for name, runs in found.items()}
    last = np.maximum.reduce([ends[dag.nodes[at].name] for at in _last(dag)])
    return Observed(start - start[0], end - start, kept, idle, float(median(np.sort(end) - last)), median(around))


def _last(dag: DAG) -> list[int]:
    """The sub-networks without children."""
    return [at for at, children in enumerate(dag.children) if not children]


@frozen
class _Run:
    """A run of a sub-network: its end, its duration, how long it occupied a device, and the idle time before."""

    end: float
    taken: float
    kept: float
    idle: float


def _kept(trace: HostTrace, dag: DAG, came: Array) -> dict[str, list[_Run]]:
    """The runs of each sub-network, in order of their start.

    A run occupies a device from the time when it could start (it is ready, and one of the sub-network's devices is
    free) until its end. This includes the wake-up of a sleeping thread, which on a busy machine takes as long as a run.
    Runs are matched in order of readiness to the device that becomes free first, not to the device that really ran
    them; otherwise time in which a device was free but not yet noticed would count for several runs.
    """
    names = {node.name: function_names(dag, node) for node in dag.nodes}
    runs = {node: [each for each in trace.slices if each.name in own] for node, own in names.items()}
    ends = {name: np.sort([each.end for each in own]) / _NANOSECONDS for name, own in runs.items()}
    found: dict[str, list[_Run]] = {}
    for node, parents in zip(dag.nodes, dag.parents, strict=True):
        ready = np.maximum.reduce([ends[dag.nodes[at].name] for at in parents]) if parents else came
        own = sorted(runs[node.name], key=lambda each: each.start)
        free = [float(came[0])] * len({each.device for each in own})
        found[node.name] = []
        for each, when in zip(own, ready.tolist(), strict=True):
            end = each.end / _NANOSECONDS
            over = heapreplace(free, end)
            could = max(when, over)
            found[node.name].append(_Run(end, (each.end - each.start) / _NANOSECONDS, end - could, could - over))
    return found
