"""`simulate`: which of the two ways is taken."""

from __future__ import annotations

from collections.abc import Sequence

from onert.host.errors import ConfigurationError
from onert.host.host_config import HostConfig

from .constant import applies, worked_out
from .events import Events
from .model import Outcome, Workload


def simulate(workloads: Sequence[Workload], config: HostConfig) -> list[Outcome]:
    """What comes of the workloads on a host of this configuration, each by itself.

    One whose runs all take the same time is worked out in NumPy, 10 million requests in seconds; others are followed
    event by event, at some 50,000 requests a second. Both give the same where both apply.
    """
    if not workloads:
        raise ConfigurationError("there is nothing to simulate: no network has requests")
    if applies(workloads):
        found = worked_out(workloads[0], config)
        if found is not None:
            return [found]
    return Events(workloads, config).run()
