"""A host's scheduling rules, shared by real devices and the simulation."""

from __future__ import annotations

from collections.abc import Sequence

from .host_config import BatchConfig


def least_busy(loads: Sequence[int], used: Sequence[int]) -> int:
    """The device for a run: among those with the lowest load, the one chosen least recently.

    `loads` are the numbers of active and waiting runs; `used` are numbers that increase with every choice.
    """
    return min(range(len(loads)), key=lambda at: (loads[at], used[at]))


def batch_size(pending: int, oldest: float, now: float, config: BatchConfig, *, hurries: bool = False) -> int:
    """How many waiting requests to run together now that a device can take a batch; 0: wait for more requests.

    `oldest` is the time of the oldest request. Requests wait at most `max_delay`, and not at all if the batch is full
    or no more requests will come (`hurries`).
    """
    if pending >= config.max_size:
        return config.max_size
    if config.max_delay > 0 and not hurries and oldest + config.max_delay > now:
        return 0
    return pending


def compiled_size(count: int, sizes: Sequence[int]) -> int:
    """The compiled batch size for `count` requests: the smallest one that is large enough."""
    return next(size for size in sizes if size >= count)
