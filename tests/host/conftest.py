"""Hosts shared by several test files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from host.gated import ONE, GatedDevice, squares
from onert.host import DeviceConfig, HostManager


@pytest.fixture
def host() -> Iterator[HostManager]:
    with HostManager([DeviceConfig(threads=1)]) as manager:
        yield manager


@pytest.fixture
def gated() -> Iterator[tuple[HostManager, GatedDevice]]:
    """A host with network `n` on a gated device: at most one active request and one queued."""
    device = GatedDevice()
    with HostManager([device], ONE) as manager:
        manager.add_network("n", squares())
        yield manager, device
        device.gate.set()
