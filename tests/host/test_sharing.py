"""Claims about runs that any of several devices may make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from patience import PATIENCE

from host.gated import SQUARES, X, output, squares
from onert.host import DeviceConfig, HostConfig, HostManager, RequestRefusedError
from onert.host.devices.cpu import CpuDevice


class Held:
    """A device that is kept from its thread."""

    def __init__(self, device: CpuDevice) -> None:
        self.device = device
        self._turns = [device._thread.turns.get(timeout=PATIENCE)]

    def go(self) -> None:
        if self._turns:
            self.device._thread.give_back(self._turns.pop())


@contextmanager
def held_up(host: HostManager) -> Iterator[list[Held]]:
    """The devices of a host, which go on at the end at the latest: a test that fails must not wait for them."""
    found = []
    try:
        for device in host.devices:
            assert isinstance(device, CpuDevice)
            found.append(Held(device))
        yield found
    except BaseException:  # what waits is refused: the host's end waits for it
        for held in found:
            held.device._thread.end(RequestRefusedError("the test failed"))
        raise
    finally:
        for held in found:
            held.go()


def test_a_device_takes_what_waits_before_one_that_is_held_up() -> None:
    """The first device is kept from its thread: everything is answered all the same, the most urgent first."""
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares(), copies=2)
        with held_up(host) as (first, second):
            order: SimpleQueue[int] = SimpleQueue()
            futures = []
            for at in range(11):  # the last to be run lies before the first device
                future = host.run_network("n", [X * at], priority=at % 3)
                future.add_done_callback(lambda _, at=at: order.put(at))  # type: ignore[misc]
                futures.append(future)
            second.go()
            for at, future in enumerate(futures):
                assert output(future.result(PATIENCE)) == ((X * at) ** 2).tolist()
            assert [order.get_nowait() for _ in futures] == sorted(range(11), key=lambda at: at % 3)
            assert first.device.load == 1
        host.run_network("n", [X]).result(PATIENCE)
    assert first.device.load == 0


def test_what_is_taken_from_a_device_is_run_once() -> None:
    with HostManager([DeviceConfig(threads=1) for _ in range(3)], HostConfig(max_queue_size=1000)) as host:
        host.add_network("two", squares(), copies=2)
        host.add_network("three", squares(), copies=3)
        times: dict[int, int] = {}
        futures = []
        for at in range(600):
            future = host.run_network("two" if at % 2 else "three", [X * (at % 7)], priority=at % 2)
            future.add_done_callback(lambda _, at=at: times.update({at: times.get(at, 0) + 1}))  # type: ignore[misc]
            futures.append(future)
        for at, future in enumerate(futures):
            assert output(future.result(PATIENCE)) == ((X * (at % 7)) ** 2).tolist()
        assert list(times.values()) == [1] * 600
        assert sum(each.requests_succeeded for each in host.statistics().networks.values()) == 600


def test_a_device_that_is_stopped_forgets_what_others_have_taken_from_it() -> None:
    """Those calls lie before it still when it is stopped: it has come across none of them."""
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares(), copies=2)
        with held_up(host) as (first, second):
            futures = [host.run_network("n", [X]) for _ in range(6)]
            second.go()
            for future in futures:
                future.result(PATIENCE)
            first.device._thread.end(RequestRefusedError("stopped"))
    assert first.device.load == 0


def test_a_device_that_is_stopped_takes_nothing_and_refuses_its_own() -> None:
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)], HostConfig(retries=0)) as host:
        host.add_network("n", squares(), copies=2)
        with held_up(host) as (_, second):
            futures = [host.run_network("n", [X]) for _ in range(6)]
            second.device._thread.end(RequestRefusedError("stopped"))
            second.go()
            refused = [
                future for future in futures[1::2] if isinstance(future.exception(PATIENCE), RequestRefusedError)
            ]
        assert len(refused) == 3
        assert [output(future.result(PATIENCE)) for future in futures[::2]] == [SQUARES] * 3
