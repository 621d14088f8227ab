"""Claims about a host with more requests than it can take."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
from patience import PATIENCE

from host.dividing import layers
from host.gated import GatedDevice, squares
from onert.host import BatchConfig, DeviceConfig, HostConfig, HostManager, RequestRefusedError
from onert.ir import Array

CLIENTS = 16
WIDTH = 4


class Tally:
    """Answers to requests, each of which is known by a number."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.told: Counter[int] = Counter()
        self.answered = 0
        self.refused = 0
        self.wrong: list[object] = []

    def add(self, number: int, future: Future[dict[str, Array]]) -> None:
        error = future.exception()
        with self._lock:
            self.told[number] += 1
            if isinstance(error, RequestRefusedError):
                self.refused += 1
            elif error is not None:
                self.wrong.append(error)
            else:
                self.answered += 1
                (found,) = future.result().values()
                if not (found == number).all():
                    self.wrong.append((number, found.tolist()))


def echoing(name: str) -> GatedDevice:
    return GatedDevice(name, lambda _, inputs: [inputs[0].copy()], is_open=True)


@pytest.mark.parametrize(
    "count", [pytest.param(4_000, id="4,000"), pytest.param(100_000, id="100,000", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("batch", [None, BatchConfig(max_size=4), BatchConfig(max_size=4, stacked=False)])
def test_every_request_is_answered_or_refused_once(count: int, batch: BatchConfig | None) -> None:
    """From 16 clients that do not wait for answers, on two devices, against a queue of 50."""
    tally = Tally()
    config = HostConfig(max_active_requests=8, max_queue_size=50)
    with HostManager([echoing("a"), echoing("b")], config) as host:
        host.add_network("n", layers(WIDTH, WIDTH), copies=2, batch=batch)

        def client(which: int) -> bool:
            for number in range(which, count, CLIENTS):
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
    assert tally.told == Counter(range(count))
    assert tally.answered + tally.refused == count
    assert tally.answered > 0
    assert counted.requests_refused == tally.refused


def test_memory_is_flat_whatever_number_of_requests_there_was() -> None:
    with HostManager([DeviceConfig(threads=1, backend="reference")]) as host:
        host.add_network("n", squares())
        x = np.float32([1, 2, 3])

        def ask(count: int) -> int:
            for _ in range(count):
                host.run_network_blocking("n", [x])
                host.run_network("n", [x]).result(PATIENCE)
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            ask(300)
            before = ask(300)
            assert ask(2000) - before < 20_000
        finally:
            tracemalloc.stop()
