"""Hosts that several files of claims begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from host.gated import ONE, GatedDevice, squares
from onert.host import DeviceConfig, HostManager


@pytest.fixture
def host() -> Iterator[HostManager]:
    with HostManager([DeviceConfig(threads=1)]) as made:
        yield made


@pytest.fixture
def gated() -> Iterator[tuple[HostManager, GatedDevice]]:
    """One request at a time and one in the queue, on a device that waits for the test."""
    device = GatedDevice()
    with HostManager([device], ONE) as made:
        made.add_network("n", squares())
        yield made, device
        device.gate.set()
