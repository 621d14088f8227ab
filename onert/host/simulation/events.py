"""An event simulation of a host under a virtual clock.

It mirrors the host's admission, batcher, sessions, executor and devices, with the same rules (`onert.host.rules`): up
to `max_active_requests` requests are active, up to `max_queue_size` wait in order of priority, and more are rejected. A
late request is removed from the queue, but remains active if it is running. Each device runs one thing at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np

from onert.host.host_config import HostConfig
from onert.host.rules import batch_size, compiled_size
from onert.ir import Array

from .model import Outcome, Workload, outcome
from .stations import Device, Run, Session, StationState

_NEVER = float("inf")


class _WorkloadState:
    """The state of a workload."""

    def __init__(self, workload: Workload, devices: Sequence[Device]) -> None:
        self.workload = workload
        self.places = [StationState(at, station, devices) for at, station in enumerate(workload.stations)]
        self.parents = [len(station.parents) for station in workload.stations]
        self.children: list[list[tuple[int, int]]] = [[] for _ in workload.stations]
        for child, station in enumerate(workload.stations):
            for which, parent in enumerate(station.parents):
                self.children[parent].append((child, which))
        self.arrivals: list[float] = workload.arrivals.tolist()
        self.priorities: list[int] = np.broadcast_to(workload.priorities, len(self.arrivals)).tolist()
        self.sequences: list[int] | None = None if workload.sequences is None else workload.sequences.tolist()
        self.ends: Array = np.full(len(self.arrivals), np.nan)
        self.refused = 0
        self.late = 0
        self.end = 0.0
        self.pending: list[tuple[int, int]] = []
        """A heap of the priorities and numbers of requests that wait for a batch."""
        self.running = 0
        self.sessions: dict[int, Session] = {}

    def deadline(self, number: int) -> float:
        """The time from which a request is late."""
        return self.arrivals[number] + self.workload.timeout

    def session(self, number: int) -> Session | None:
        """The session of a request, if it has one."""
        return None if self.sequences is None else self.sessions.get(self.sequences[number])


class Events:
    """The simulation of several workloads on the same devices."""

    def __init__(self, workloads: Sequence[Workload], config: HostConfig) -> None:
        numbers = [device for w in workloads for station in w.stations for device in station.devices]
        devices = [Device() for _ in range(max(numbers) + 1)]
        self._config = config
        self._works = [_WorkloadState(each, devices) for each in workloads]
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._numbers = count()
        self._active = 0
        self._queue: list[tuple[int, int, _WorkloadState, int]] = []
        """A heap of waiting requests by priority and arrival."""
        self._soonest = _NEVER
        """A lower bound of the deadlines of requests in the queue."""

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

    def _outcome(self, work: _WorkloadState) -> Outcome:
        latencies = work.ends - work.workload.arrivals
        busy = [place.busy for place in work.places]
        return outcome(work.workload, latencies, work.refused, work.end, busy, late=work.late)

    def _at(self, when: float, call: Callable[..., None], *what: object) -> None:
        heappush(self._heap, (when, next(self._numbers), call, what))

    def _step(self) -> None:
        now, _, call, what = heappop(self._heap)
        call(*what, now)

    # ---- admission

    def _enter(self, work: _WorkloadState, number: int, now: float) -> None:
        if work.sequences is not None and not self._has_session(work, work.sequences[number], now):
            work.refused += 1
        elif self._active < self._config.max_active_requests:
            self._active += 1
            self._begin(work, number, now)
        elif self._has_room(now):
            heappush(self._queue, (work.priorities[number], next(self._numbers), work, number))
            self._soonest = min(self._soonest, work.deadline(number))
        else:
            work.refused += 1

    def _has_room(self, now: float) -> bool:
        """Whether one more request may wait, after removing late ones if necessary."""
        if len(self._queue) >= self._config.max_queue_size and now >= self._soonest:
            stays = []
            for entry in self._queue:
                if entry[2].deadline(entry[3]) > now:
                    stays.append(entry)
                else:
                    entry[2].late += 1
            self._queue = stays
            heapify(stays)
            self._soonest = min((work.deadline(number) for _, _, work, number in stays), default=_NEVER)
        return len(self._queue) < self._config.max_queue_size

    def _leave(self, work: _WorkloadState, number: int, now: float) -> None:
        """Finish a request and admit the next one."""
        if now < work.deadline(number):
            work.ends[number] = now
        else:
            work.late += 1
        work.end = now
        self._active -= 1
        while self._queue:
            _, _, following, other = heappop(self._queue)
            if now < following.deadline(other):
                self._active += 1
                self._begin(following, other, now)
                return
            following.late += 1

    # ---- sessions

    def _has_session(self, work: _WorkloadState, sequence: int, now: float) -> bool:
        """Whether a sequence has a session, which is created if the limit allows."""
        if sequence in work.sessions:
            return True
        if sum(len(each.sessions) for each in self._works) >= self._config.max_sequences:
            for each in self._works:
                idle = now - self._config.sequence_idle
                each.sessions = {s: x for s, x in each.sessions.items() if x.is_busy or x.used > idle}
        if sum(len(each.sessions) for each in self._works) >= self._config.max_sequences:
            return False
        work.sessions[sequence] = session = Session()
        session.used = now
        return True

    def _follow(self, work: _WorkloadState, session: Session, now: float) -> None:
        """Start the next request of a sequence."""
        session.used = now
        while session.waiting:
            number = session.waiting.popleft()
            if now < work.deadline(number):
                self._run(work, self._single(work, number, session), now)
                return
            self._at(now, self._leave, work, number)
        session.is_busy = False

    # ---- batcher

    def _begin(self, work: _WorkloadState, number: int, now: float) -> None:
        session = work.session(number)
        if session is not None and session.is_busy:
            session.waiting.append(number)
        elif session is not None or work.workload.batch is None:
            if session is not None:
                session.is_busy = True
            self._run(work, self._single(work, number, session), now)
        else:
            heappush(work.pending, (work.priorities[number], number))
            self._take(work, now)

    def _single(self, work: _WorkloadState, number: int, session: Session | None) -> Run:
        """The run of a single request."""
        parents, priority, deadline = list(work.parents), work.priorities[number], work.deadline(number)
        return Run([number], 1, parents, priority=priority, deadline=deadline, session=session)

    def _take(self, work: _WorkloadState, now: float) -> None:
        config = work.workload.batch
        assert config is not None
        while work.pending and work.running < work.workload.instances:
            oldest = work.arrivals[min(number for _, number in work.pending)] if config.max_delay > 0 else now
            wanted = batch_size(len(work.pending), oldest, now, config)
            if not wanted:
                self._at(oldest + config.max_delay, self._take, work)
                return
            taken = [heappop(work.pending)[1] for _ in range(wanted)]
            timely = [number for number in taken if now < work.deadline(number)]
            if timely:
                work.running += 1
                size = compiled_size(len(timely), work.workload.sizes)
                self._run(work, Run(timely, size, list(work.parents), priority=work.priorities[timely[0]]), now)
            for number in taken:
                if now >= work.deadline(number):
                    self._at(now, self._leave, work, number)

    # ---- executor and devices

    def _run(self, work: _WorkloadState, run: Run, now: float) -> None:
        for place in work.places:
            if not place.station.parents:
                self._send(work, place, run, place.station.transfer(0), now)

    def _send(self, work: _WorkloadState, place: StationState, run: Run, seconds: float, now: float) -> None:
        run.inflight += 1
        if seconds:
            self._at(now + seconds, self._arrive, work, place, run)
        else:
            self._arrive(work, place, run, now)

    def _arrive(self, work: _WorkloadState, place: StationState, run: Run, now: float) -> None:
        """Handle the arrival of a parent's results or the request's inputs. The run starts when all are there."""
        if run.waiting[place.at]:
            run.waiting[place.at] -= 1
            if run.waiting[place.at]:
                self._settle(work, run, now)
                return
        at = place.device_for(run)
        device = place.devices[at]
        device.change(1)
        if device.is_busy:
            device.push(work, place, run, at)
        else:
            self._start(work, place, run, at, now)

    def _start(self, work: _WorkloadState, place: StationState, run: Run, at: int, now: float) -> None:
        device = place.devices[at]
        device.is_busy = True
        seconds = place.seconds(run.size, at, now)
        place.busy += seconds
        self._at(now + seconds, self._over, work, place, run, device)

    def _over(self, work: _WorkloadState, place: StationState, run: Run, device: Device, now: float) -> None:
        device.change(-1)
        device.over = now
        following = device.pop()
        if following is not None:
            self._start(*following, now)
        else:
            device.is_busy = False
        if now < run.deadline:
            for child, which in work.children[place.at]:
                target = work.places[child]
                self._send(work, target, run, target.station.transfer(which), now)
        self._settle(work, run, now)

    def _settle(self, work: _WorkloadState, run: Run, now: float) -> None:
        """Count a finished station or transfer. The run is over when none is active."""
        run.inflight -= 1
        if run.inflight:
            return
        if run.session is not None:
            self._follow(work, run.session, now)
        elif work.workload.batch is not None:
            work.running -= 1
            self._take(work, now)
        for number in run.requests:
            self._leave(work, number, now)
