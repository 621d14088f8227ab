"""The state of devices and stations during a simulation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
from attrs import define, field

from onert.host.rules import least_busy

from .model import Station
from .times import Times

_FEW = 32
"""With more devices than this, NumPy finds the least busy one."""
_USED_BITS = 40


class Device:
    """A device and its waiting runs, ordered by priority (lowest first) and then by arrival."""

    __slots__ = ("_numbers", "_waiting", "is_busy", "load", "over", "places", "serves")

    def __init__(self) -> None:
        self.is_busy = False
        self.over = 0.0
        """The end of the last run."""
        self.load = 0
        self.places: list[tuple[StationState, int]] = []
        """Stations with so many devices that loads are kept in an array, and the device's index in it."""
        self.serves: list[tuple[StationState, int]] = []
        """Stations that it shares with other devices, and its index among their devices."""
        self._waiting: list[tuple[int, int, Waiting]] = []
        self._numbers = count()

    def change(self, load: int) -> None:
        """Change the number of active and waiting runs by `load`."""
        self.load += load
        for place, at in self.places:
            place.keys[at] += load << _USED_BITS

    def push(self, work: Any, place: StationState, run: Run, at: int) -> None:
        """Queue a run of `work`. Other devices of the station may take it, unless it uses the state of a sequence."""
        is_offered = len(place.devices) > 1 and (run.session is None or not place.station.stateful)
        waiting = Waiting(work, place, run, at, is_offered)
        heappush(self._waiting, (run.priority, next(self._numbers), waiting))
        if is_offered:
            place.offer(waiting)

    def pop(self) -> tuple[Any, StationState, Run, int] | None:
        """The next run: one that waits here, otherwise one that waits at another device; None if there is none."""
        while self._waiting:
            entry = heappop(self._waiting)
            waiting = entry[2]
            if waiting.is_open:
                if not waiting.is_offered:
                    return waiting.take()
                if waiting.place.first() is not waiting:
                    heappush(self._waiting, entry)
                return self._taken(waiting.place, waiting.at)
        return self._taken_from_others()

    def _taken(self, place: StationState, at: int) -> tuple[Any, StationState, Run, int]:
        """Take the first run that a station's devices offer, as its device `at`."""
        waiting = place.first()
        assert waiting is not None
        owner = place.devices[waiting.at]
        if owner is not self:
            owner.change(-1)
            self.change(1)
        work, _, run, _ = waiting.take()
        return work, place, run, at

    def _taken_from_others(self) -> tuple[Any, StationState, Run, int] | None:
        offering = []
        for number, (place, _) in enumerate(self.serves):
            first = place.first()
            if first is not None:
                offering.append((first.run.priority, number))
        return self._taken(*self.serves[min(offering)[1]]) if offering else None


@define(eq=False)
class Waiting:
    """A run that waits at device `at` of a station. If it is offered, another device may take it."""

    work: Any
    place: StationState
    run: Run
    at: int
    is_offered: bool
    is_open: bool = field(init=False, default=True)
    """Whether no device has taken it yet."""

    def take(self) -> tuple[Any, StationState, Run, int]:
        """Take the run, so that no other device can."""
        self.is_open = False
        return self.work, self.place, self.run, self.at


class Session:
    """A sequence of requests, which run one at a time, and the devices with its state."""

    __slots__ = ("devices", "is_busy", "used", "waiting")

    def __init__(self) -> None:
        self.is_busy = False
        self.used = 0.0
        self.devices: dict[int, int] = {}
        """For each stateful station, the index of the device that holds the state."""
        self.waiting: deque[int] = deque()


@define(eq=False)
class Run:
    """Requests that run together, and for each station the number of unfinished parents (`waiting`).

    After the `deadline`, no further station is started. `inflight` counts active stations and transfers.
    """

    requests: list[int]
    size: int
    waiting: list[int]
    inflight: int = field(init=False, default=0)
    priority: int = field(default=0, kw_only=True)
    deadline: float = field(default=float("inf"), kw_only=True)
    session: Session | None = field(default=None, kw_only=True)


class StationState:
    """The state of a station."""

    def __init__(self, at: int, station: Station, devices: Sequence[Device]) -> None:
        self.at = at
        self.station = station
        self.devices = [devices[number] for number in station.devices]
        self.keys = np.zeros(len(self.devices), np.int64)
        """For many devices: the load of each, and in the lower bits the time of its last choice."""
        self.busy = 0.0
        self._ticks = count(1)
        self._used = [0] * len(self.devices)
        self._offers: list[tuple[int, int, Waiting]] = []
        self._numbers = count()
        if len(self.devices) > 1:
            for number, device in enumerate(self.devices):
                device.serves.append((self, number))
        self._are_many = len(self.devices) > _FEW
        if self._are_many:
            for number, device in enumerate(self.devices):
                device.places.append((self, number))
        self._times = {
            size: Times(seconds, station.idle if size == 1 else ()) for size, seconds in station.seconds.items()
        }
        self._factors = station.factors or (1.0,) * len(self.devices)

    def offer(self, waiting: Waiting) -> None:
        """Offer a waiting run to all devices."""
        heappush(self._offers, (waiting.run.priority, next(self._numbers), waiting))

    def first(self) -> Waiting | None:
        """The first offered run; None if there is none."""
        while self._offers and not self._offers[0][2].is_open:
            heappop(self._offers)
        return self._offers[0][2] if self._offers else None

    def device_for(self, run: Run) -> int:
        """The device for a run: the one with its sequence's state, otherwise the least busy."""
        if run.session is None or not self.station.stateful:
            return self._choose()
        found = run.session.devices.get(self.at)
        if found is None:
            found = run.session.devices[self.at] = self._choose()
        return found

    def _choose(self) -> int:
        if len(self.devices) == 1:
            return 0
        if self._are_many:
            at = int(self.keys.argmin())
            self.keys[at] = (self.devices[at].load << _USED_BITS) + next(self._ticks)
            return at
        at = least_busy([device.load for device in self.devices], self._used)
        self._used[at] = next(self._ticks)
        return at

    def seconds(self, size: int, device: int, now: float) -> float:
        """The time of the run that starts now."""
        return self._times[size].take(now - self.devices[device].over) * self._factors[device]
