"""A host under a virtual clock, event by event.

It does what the host's admission, batcher, executor and devices do, by the same rules (`onert.host.rules`): requests
are let in up to `max_active_requests`, wait in order up to `max_queue_size`, and are refused above that. Each device
runs what it is given one at a time, in the order in which it was given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np

from onert.host.host_config import HostConfig
from onert.host.rules import batch_size, compiled_size, least_busy
from onert.ir import Array

from .model import Outcome, Station, Workload, outcome

_FEW = 32
"""Devices above which NumPy looks for the least busy."""
_USED_BITS = 40


class _Device:
    """A device, and the runs that wait for it."""

    __slots__ = ("is_busy", "load", "places", "waiting")

    def __init__(self) -> None:
        self.is_busy = False
        self.load = 0
        self.places: list[tuple[_Place, int]] = []
        """The stations with so many devices that they keep loads in an array, and the device's place in it."""
        self.waiting: deque[tuple[_Place, _Run, int]] = deque()

    def change(self, load: int) -> None:
        """Have one run more or less."""
        self.load += load
        for place, at in self.places:
            place.keys[at] += load << _USED_BITS


class _Run:
    """Requests that are run together, and what they have still to pass: stations, and of each its parents."""

    __slots__ = ("requests", "size", "stations_left", "waiting")

    def __init__(self, requests: list[int], size: int, parents: Sequence[int]) -> None:
        self.requests = requests
        self.size = size
        self.waiting = list(parents)
        self.stations_left = len(parents)


class _Place:
    """A station at work."""

    def __init__(self, work: _Work, at: int, station: Station, devices: Sequence[_Device]) -> None:
        self.work = work
        self.at = at
        self.station = station
        self.devices = [devices[number] for number in station.devices]
        self.keys = np.zeros(len(self.devices), np.int64)
        """Of many devices the load, and in the lower bits when each was chosen last."""
        self.busy = 0.0
        self._ticks = count(1)
        self._used = [0] * len(self.devices)
        self._are_many = len(self.devices) > _FEW
        if self._are_many:
            for number, device in enumerate(self.devices):
                device.places.append((self, number))
        self._samples = station.seconds
        self._next = count()
        self._factors = station.factors or (1.0,) * len(self.devices)

    def choose(self) -> int:
        """The device that the next run goes to, by the host's rule."""
        if len(self.devices) == 1:
            return 0
        if self._are_many:
            at = int(self.keys.argmin())
            self.keys[at] = (self.devices[at].load << _USED_BITS) + next(self._ticks)
            return at
        at = least_busy([device.load for device in self.devices], self._used)
        self._used[at] = next(self._ticks)
        return at

    def seconds(self, size: int, device: int) -> float:
        """What the next run takes."""
        samples = self._samples[size]
        return float(samples[next(self._next) % len(samples)] * self._factors[device])


class _Work:
    """A workload at work."""

    def __init__(self, workload: Workload, devices: Sequence[_Device]) -> None:
        self.workload = workload
        self.places = [_Place(self, at, station, devices) for at, station in enumerate(workload.stations)]
        self.parents = [len(station.parents) for station in workload.stations]
        self.children: list[list[tuple[int, int]]] = [[] for _ in workload.stations]
        for child, station in enumerate(workload.stations):
            for which, parent in enumerate(station.parents):
                self.children[parent].append((child, which))
        self.arrivals: list[float] = workload.arrivals.tolist()
        self.ends: Array = np.full(len(self.arrivals), np.nan)
        self.refused = 0
        self.end = 0.0
        self.pending: deque[int] = deque()
        self.running = 0


class Events:
    """The simulation of some workloads on the same devices."""

    def __init__(self, workloads: Sequence[Workload], config: HostConfig) -> None:
        numbers = [device for w in workloads for station in w.stations for device in station.devices]
        devices = [_Device() for _ in range(max(numbers) + 1)]
        self._config = config
        self._works = [_Work(each, devices) for each in workloads]
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._numbers = count()
        self._active = 0
        self._queue: deque[tuple[_Work, int]] = deque()

    def run(self) -> list[Outcome]:
        """The outcome of each workload."""
        order = np.argsort(np.concatenate([w.workload.arrivals for w in self._works]), kind="stable")
        sizes = np.cumsum([0, *(len(w.arrivals) for w in self._works)])
        owners = (np.searchsorted(sizes, order, "right") - 1).tolist()
        for owner, index in zip(owners, order.tolist(), strict=True):
            work = self._works[owner]
            number = index - int(sizes[owner])
            now = work.arrivals[number]
            while self._heap and self._heap[0][0] <= now:
                self._step()
            self._enter(work, number, now)
        while self._heap:
            self._step()
        return [self._outcome(work) for work in self._works]

    def _outcome(self, work: _Work) -> Outcome:
        latencies = work.ends - work.workload.arrivals
        answered = latencies[~np.isnan(latencies)]
        return outcome(work.workload, answered, work.refused, work.end, [place.busy for place in work.places])

    def _at(self, when: float, call: Callable[..., None], *what: object) -> None:
        heappush(self._heap, (when, next(self._numbers), call, what))

    def _step(self) -> None:
        now, _, call, what = heappop(self._heap)
        call(*what, now)

    # ---- what the admission does

    def _enter(self, work: _Work, number: int, now: float) -> None:
        if self._active < self._config.max_active_requests:
            self._active += 1
            self._begin(work, number, now)
        elif len(self._queue) < self._config.max_queue_size:
            self._queue.append((work, number))
        else:
            work.refused += 1

    def _leave(self, work: _Work, run: _Run, now: float) -> None:
        for number in run.requests:
            work.ends[number] = now
            self._active -= 1
            if self._queue:
                following, other = self._queue.popleft()
                self._active += 1
                self._begin(following, other, now)
        work.end = now

    # ---- what the batcher does

    def _begin(self, work: _Work, number: int, now: float) -> None:
        if work.workload.batch is None:
            self._run(work, [number], 1, now)
            return
        work.pending.append(number)
        self._take(work, now)

    def _take(self, work: _Work, now: float) -> None:
        config = work.workload.batch
        assert config is not None
        while work.pending and work.running < work.workload.instances:
            oldest = work.arrivals[work.pending[0]]
            wanted = batch_size(len(work.pending), oldest, now, config)
            if not wanted:
                self._at(oldest + config.max_delay, self._take, work)
                return
            work.running += 1
            requests = [work.pending.popleft() for _ in range(wanted)]
            self._run(work, requests, compiled_size(wanted, work.workload.sizes), now)

    # ---- what the executor and the devices do

    def _run(self, work: _Work, requests: list[int], size: int, now: float) -> None:
        run = _Run(requests, size, work.parents)
        for place in work.places:
            if not place.station.parents:
                self._send(place, run, place.station.transfer(0), now)

    def _send(self, place: _Place, run: _Run, seconds: float, now: float) -> None:
        if seconds:
            self._at(now + seconds, self._arrive, place, run)
        else:
            self._arrive(place, run, now)

    def _arrive(self, place: _Place, run: _Run, now: float) -> None:
        """Results of a parent have arrived, or the request's inputs; the run begins when all have."""
        if run.waiting[place.at]:
            run.waiting[place.at] -= 1
            if run.waiting[place.at]:
                return
        at = place.choose()
        device = place.devices[at]
        device.change(1)
        if device.is_busy:
            device.waiting.append((place, run, at))
        else:
            self._start(place, run, at, now)

    def _start(self, place: _Place, run: _Run, at: int, now: float) -> None:
        device = place.devices[at]
        device.is_busy = True
        seconds = place.seconds(run.size, at)
        place.busy += seconds
        self._at(now + seconds, self._over, place, run, device)

    def _over(self, place: _Place, run: _Run, device: _Device, now: float) -> None:
        device.change(-1)
        if device.waiting:
            self._start(*device.waiting.popleft(), now)
        else:
            device.is_busy = False
        work = place.work
        run.stations_left -= 1
        if not run.stations_left:
            if work.workload.batch is not None:
                work.running -= 1
                self._take(work, now)
            self._leave(work, run, now)
            return
        for child, which in work.children[place.at]:
            target = work.places[child]
            self._send(target, run, target.station.transfer(which), now)
