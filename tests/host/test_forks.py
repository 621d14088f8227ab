"""Forking a process while a host is running."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from threading import Event, Thread

import numpy as np
import pytest
from patience import PATIENCE

from host.gated import squares
from onert.host import DeviceConfig, HostError, HostManager

X = np.float32([1, 2, 3])


def in_child(check: Callable[[], object]) -> int:
    """The exit status of a forked child that runs `check`: 1 if the check raises, minus SIGALRM if it does not end."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(int(PATIENCE))
        try:
            check()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refuses(host: HostManager) -> None:
    """In a child, every call of the parent's host fails without hanging, and a new host works."""
    for call in (
        lambda: host.run_network_blocking("n", [X]),
        lambda: host.add_network("m", squares()),
        lambda: host.remove_network("n"),
        host.statistics,
    ):
        with pytest.raises(HostError, match="belongs to the process that this one was forked from"):
            call()
    if not isinstance(host.run_network("n", [X]).exception(0), HostError):
        raise AssertionError
    host.close()
    with HostManager([DeviceConfig(threads=1, backend="reference")]) as own:
        own.add_network("n", squares())
        (found,) = own.run_network("n", [X]).result(PATIENCE).values()
        if found.tolist() != [1, 4, 9]:
            raise AssertionError(found)


def test_a_forked_child_gets_an_error_from_its_parent_s_host() -> None:
    stop = Event()

    def ask() -> None:
        while not stop.is_set():
            host.run_network("n", [X]).result(PATIENCE)

    with HostManager([DeviceConfig(threads=1, backend="reference")]) as host:
        host.add_network("n", squares())
        threads = [Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        statuses = [in_child(lambda: refuses(host)) for _ in range(10)]
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert statuses == [0] * 10
        (found,) = host.run_network_blocking("n", [X]).values()
        assert found.tolist() == [1, 4, 9]
