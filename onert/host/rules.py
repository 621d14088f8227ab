"""The rules by which a host chooses: they are the same on real devices and under a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence

from .host_config import BatchConfig


def least_busy(loads: Sequence[int], used: Sequence[int]) -> int:
    """The device that a run goes to: of those with the least before them the one that was chosen longest ago.

    `loads` are runs under way or waiting, `used` numbers that grow with every choice.
    """
    return min(range(len(loads)), key=lambda at: (loads[at], used[at]))


def batch_size(pending: int, oldest: float, now: float, config: BatchConfig, *, hurries: bool = False) -> int:
    """How many of the requests that wait are run together now, when a device can take a batch; 0: they wait for more.

    `oldest` is when the first of them was made. They wait no longer than `max_delay`, and not at all if the batch is
    full or there are none to come (`hurries`).
    """
    if pending >= config.max_size:
        return config.max_size
    if config.max_delay > 0 and not hurries and oldest + config.max_delay > now:
        return 0
    return pending


def compiled_size(count: int, sizes: Sequence[int]) -> int:
    """The size that a batch of so many requests is run as: the next that the network is compiled for."""
    return next(size for size in sizes if size >= count)
