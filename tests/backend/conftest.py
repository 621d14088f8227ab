"""A device in a separate process, for tests of memory that the host cannot access."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from .remote import Device, RemoteBackend, device


@pytest.fixture(scope="module")
def machine() -> Iterator[Device]:
    with device() as found:
        yield found


@pytest.fixture
def remote(machine: Device) -> Iterator[RemoteBackend]:
    """The device's backend, with its counters reset; checks that nothing is left on the device afterwards."""
    backend = RemoteBackend(machine)
    machine.sent.clear()
    machine.asked.clear()
    yield backend
    gc.collect()
    assert machine.ask("arenas")[1:] == (0, 0)
