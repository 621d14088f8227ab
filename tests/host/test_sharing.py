"""Work stealing between devices that can run the same function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from patience import PATIENCE

from host.gated import SQUARES, X, output, squares
from onert.host import DeviceConfig, HostConfig, HostManager, RequestRefusedError
from onert.host.devices.cpu import CpuDevice


class Blocked:
    """A device whose worker is blocked until `go` is called."""

    def __init__(self, device: CpuDevice) -> None:
        self.device = device
        self._turns = [device._thread.turns.get(timeout=PATIENCE)]

    def go(self) -> None:
        if self._turns:
            self.device._thread.give_back(self._turns.pop())


@contextmanager
def blocked_devices(host: HostManager) -> Iterator[list[Blocked]]:
    """Block all devices of a host until the end of the context, so that a failed test does not hang."""
    found = []
    try:
        for device in host.devices:
            assert isinstance(device, CpuDevice)
            found.append(Blocked(device))
        yield found
    except BaseException:  # refuse the waiting runs, or closing the host would wait for them
        for blocked in found:
            blocked.device._thread.end(RequestRefusedError("the test failed"))
        raise
    finally:
        for blocked in found:
            blocked.go()


def test_an_idle_device_takes_runs_waiting_for_a_blocked_one() -> None:
    """The first device is blocked: everything is answered all the same, the most urgent requests first."""
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares(), copies=2)
        with blocked_devices(host) as (first, second):
            order: SimpleQueue[int] = SimpleQueue()
            futures = []
            for at in range(11):  # the last one to run waits for the first device
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


def test_a_run_taken_from_another_device_is_run_once() -> None:
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


def test_a_stopped_device_forgets_the_runs_others_have_taken() -> None:
    """The stolen calls are still in its queue when it is stopped, because its worker has not reached them."""
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares(), copies=2)
        with blocked_devices(host) as (first, second):
            futures = [host.run_network("n", [X]) for _ in range(6)]
            second.go()
            for future in futures:
                future.result(PATIENCE)
            first.device._thread.end(RequestRefusedError("stopped"))
    assert first.device.load == 0


def test_a_stopped_device_takes_nothing_and_refuses_its_own_runs() -> None:
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)], HostConfig(retries=0)) as host:
        host.add_network("n", squares(), copies=2)
        with blocked_devices(host) as (_, second):
            futures = [host.run_network("n", [X]) for _ in range(6)]
            second.device._thread.end(RequestRefusedError("stopped"))
            second.go()
            refused = [
                future for future in futures[1::2] if isinstance(future.exception(PATIENCE), RequestRefusedError)
            ]
        assert len(refused) == 3
        assert [output(future.result(PATIENCE)) for future in futures[::2]] == [SQUARES] * 3
