"""Find how many devices meet a latency bound."""

from __future__ import annotations

from collections.abc import Callable

from onert.host.errors import ConfigurationError

from .model import Outcome

MOST_DEVICES = 1 << 16


def fewest(outcome: Callable[[int], Outcome], p99: float) -> tuple[int, Outcome]:
    """The fewest devices with which no request is rejected or late and 99 % are answered within `p99` seconds, and the
    outcome. `outcome` simulates a number of devices; more devices are assumed to be never worse.

    Raises ConfigurationError if no number meets the bound, because even a single run takes longer.
    """
    most = 1
    found = outcome(most)
    while not _holds(found, p99):
        if most >= MOST_DEVICES:
            raise ConfigurationError(
                f"{most} devices do not meet a p99 of {p99:g} seconds: it is {found.latency_p99:g}"
            )
        before = found.latency_p99
        most *= 2
        found = outcome(most)
        if most > 64 and not found.refused and found.latency_p99 > p99 and found.latency_p99 >= before:
            raise ConfigurationError(
                f"no number of devices meets a p99 of {p99:g} seconds: with {most} it is {found.latency_p99:g}, and "
                "more devices do not improve it"
            )
    least = most // 2
    best = found
    while most - least > 1:
        middle = (least + most) // 2
        found = outcome(middle)
        if _holds(found, p99):
            most, best = middle, found
        else:
            least = middle
    return most, best


def _holds(found: Outcome, p99: float) -> bool:
    return not found.refused and not found.late and found.latency_p99 <= p99
