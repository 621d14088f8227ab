"""Streams of requests on a real host: what they took, and how long runs kept devices, for simulations of it."""

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
    """A stream that a host answered. Times are seconds.

    - `came`: when each request was made, from the first one on; `latencies`: what it took
    - `kept`: of each sub-network how long its runs kept a device, in the order in which they began; `idle`: how long
      that device had had nothing to do before
    - `after`: what an answer took after its last run; `around`: how much longer a device was kept than its run took.
      Both are those of the middle request
    """

    came: Array
    latencies: Array
    kept: Mapping[str, Array]
    idle: Mapping[str, Array]
    after: float
    around: float


def observe(host: HostManager, name: str, inputs: Inputs, arrivals: Array) -> Observed:
    """Make requests for a network at these seconds, whatever the answers take, and say what came of them.

    The network is run without batches. Nothing else is asked of the host meanwhile. Errors of requests are raised.
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
    """What a trace tells of requests for one network."""
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
    """The sub-networks that no other one waits for."""
    return [at for at, children in enumerate(dag.children) if not children]


@frozen
class _Run:
    """A run of a sub-network: when it ended, what it took, how long it kept a device, and how long that was idle."""

    end: float
    taken: float
    kept: float
    idle: float


def _kept(trace: HostTrace, dag: DAG, came: Array) -> dict[str, list[_Run]]:
    """The runs of each sub-network, in the order in which they began.

    A run keeps a device from when it could begin, and the first of the sub-network's devices was free, until it is
    over: a thread that sleeps takes its time to begin, as long as a run on a busy machine. Runs begin in the order in
    which what they wait for is there, each on the device that is free first; which one it was does not count, or time
    in which a device was free and nobody saw it would be counted for several runs.
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
