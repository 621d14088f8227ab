"""A host under more load than it can accept."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from threading import Lock

import numpy as np
import pytest
from patience import PATIENCE
from resident import current

from host.dividing import layers
from host.gated import GatedDevice, output, squares
from onert.host import BatchConfig, DeviceConfig, HostConfig, HostManager, RequestRefusedError
from onert.ir import Array

CLIENTS = 16
BURST = 10
"""Requests that a client sends before it waits; those of all clients together exceed the active and queued ones."""
WIDTH = 4


class Tally:
    """Counts the answers to requests, which are identified by numbers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.callbacks: Counter[int] = Counter()
        self.answered = 0
        self.refused = 0
        self.wrong: list[object] = []

    def add(self, number: int, future: Future[dict[str, Array]]) -> None:
        error = future.exception()
        with self._lock:
            self.callbacks[number] += 1
            if isinstance(error, RequestRefusedError):
                self.refused += 1
            elif error is not None:
                self.wrong.append(error)
            else:
                self.answered += 1
                (found,) = future.result().values()
                if not (found == number).all():
                    self.wrong.append((number, found.tolist()))


def echo_device(name: str) -> GatedDevice:
    return GatedDevice(name, lambda _, inputs: [inputs[0].copy()], is_open=True)


@pytest.mark.parametrize(
    "requests", [pytest.param(4_000, id="4,000"), pytest.param(100_000, id="100,000", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("batch", [None, BatchConfig(max_size=4), BatchConfig(max_size=4, stacked=False)])
def test_every_request_is_answered_or_refused_exactly_once(requests: int, batch: BatchConfig | None) -> None:
    """16 clients that rarely wait for answers, two devices, and a queue of 50."""
    tally = Tally()
    config = HostConfig(max_active_requests=8, max_queue_size=50)
    with HostManager([echo_device("a"), echo_device("b")], config) as host:
        host.add_network("n", layers(WIDTH, WIDTH), copies=2, batch=batch)

        def client(which: int) -> bool:
            for number in range(which, requests, CLIENTS):
                x = np.full((1, WIDTH), number, np.float32)
                future = host.run_network("n", [x], priority=which % 3)
                future.add_done_callback(lambda f, number=number: tally.add(number, f))
                if number % 7 == 0:
                    future.exception(PATIENCE)
            return True

        with ThreadPoolExecutor(CLIENTS) as threads:
            assert all(threads.map(client, range(CLIENTS), timeout=PATIENCE))
        counted = host.statistics().networks["n"]
    assert tally.wrong == []
    assert tally.callbacks == Counter(range(requests))
    assert tally.answered + tally.refused == requests
    assert tally.answered > 0
    assert counted.requests_refused == tally.refused


class Order:
    """Logical times, by a counter, at which requests were accepted at the latest and runs on one device began and
    ended."""

    def __init__(self) -> None:
        self._clock = count()
        self.began: dict[int, int] = {}
        self.ended: list[int] = []
        self.entered: dict[int, int] = {}

    def run(self, _: str, inputs: Sequence[Array]) -> list[Array]:
        self.began[int(inputs[0].flat[0])] = next(self._clock)
        found = [inputs[0].copy()]
        self.ended.append(next(self._clock))
        return found

    def enter(self, number: int) -> None:
        self.entered[number] = next(self._clock)


@pytest.mark.parametrize(
    "requests", [pytest.param(4_000, id="4,000"), pytest.param(100_000, id="100,000", marks=pytest.mark.long)]
)
def test_priorities_are_respected_under_load(requests: int) -> None:
    """The next request is chosen when a run ends: no more urgent request that was waiting then runs after it."""
    order = Order()
    config = HostConfig(max_active_requests=1, max_queue_size=50)
    with HostManager([GatedDevice("one", order.run, is_open=True)], config) as host:
        host.add_network("n", layers(WIDTH, WIDTH))

        def client(which: int) -> bool:
            for number in range(which, requests, CLIENTS):
                future = host.run_network("n", [np.full((1, WIDTH), number, np.float32)], priority=number % 3)
                if not isinstance(future.exception(0) if future.done() else None, RequestRefusedError):
                    order.enter(number)
                if number % 7 == 0:
                    future.exception(PATIENCE)
            return True

        with ThreadPoolExecutor(CLIENTS) as threads:
            assert all(threads.map(client, range(CLIENTS), timeout=PATIENCE))
    chosen = sorted(order.began, key=order.began.__getitem__)
    assert len(chosen) == len(order.ended) >= requests // 50
    entered = sorted((order.entered[number], number) for number in chosen)
    assert overtaken(chosen, entered, order.ended) == []


def overtaken(chosen: Sequence[int], entered: Sequence[tuple[int, int]], ended: Sequence[int]) -> list[tuple[int, int]]:
    """Requests that ran while a more urgent one waited, each with that one. The first request is exempt."""
    found = []
    waiting: list[tuple[int, int]] = []
    over: set[int] = set()
    at = 0
    for number, end in zip(chosen[1:], ended, strict=False):
        over.add(chosen[len(over)])
        while at < len(entered) and entered[at][0] < end:
            heappush(waiting, (entered[at][1] % 3, entered[at][1]))
            at += 1
        while waiting and waiting[0][1] in over:
            heappop(waiting)
        if waiting and waiting[0][0] < number % 3:
            found.append((number, waiting[0][1]))
    return found


@pytest.mark.long
def test_a_hundred_thousand_requests_do_not_grow_memory() -> None:
    """16 clients, two devices and a queue of 50: nothing remains of answered and refused requests."""
    config = HostConfig(max_active_requests=8, max_queue_size=50)
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)], config) as host:
        host.add_network("n", squares(), copies=2)

        def client(requests: int) -> int:
            refused = 0
            for first in range(0, requests, BURST):
                numbers = [number % 1000 for number in range(first, first + BURST)]
                futures = [host.run_network("n", [np.full(3, number, np.float32)]) for number in numbers]
                for number, future in zip(numbers, futures, strict=True):
                    if isinstance(future.exception(PATIENCE), RequestRefusedError):
                        refused += 1
                    else:
                        assert output(future.result()) == [float(number**2)] * 3
            return refused

        def ask(requests: int) -> int:
            with ThreadPoolExecutor(CLIENTS) as threads:
                return sum(threads.map(client, [requests // CLIENTS] * CLIENTS, timeout=10 * PATIENCE))

        ask(16_000)
        gc.collect()
        before = current()
        refused = ask(102_400)
        gc.collect()
        assert current() - before < 8 << 20
        counted = host.statistics().networks["n"]
        assert counted.requests_succeeded + counted.requests_refused == 118_400
        assert counted.requests_refused >= refused > 0


def test_python_memory_does_not_grow_with_the_number_of_requests() -> None:
    with HostManager([DeviceConfig(threads=1, backend="reference")]) as host:
        host.add_network("n", squares())
        x = np.float32([1, 2, 3])

        def ask(count: int) -> int:
            for _ in range(count):
                host.run_network_blocking("n", [x])
                host.run_network("n", [x]).result(PATIENCE)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            ask(300)
            before = ask(300)
            assert ask(2000) - before < 20_000
        finally:
            tracemalloc.stop()
