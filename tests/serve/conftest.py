"""A server shared by the tests of serving."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_material import REPOSITORY

from onert.host import DeviceConfig, HostManager
from onert.serve import ServeConfig, Server

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
FREE = ServeConfig(http_port=0, grpc_port=0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {"digits": Path(DIGITS)}, FREE) as running:
        yield running
