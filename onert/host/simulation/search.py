"""How many devices hold a bound on latency."""

from __future__ import annotations

from collections.abc import Callable

from onert.host.errors import ConfigurationError

from .model import Outcome

MOST_DEVICES = 1 << 16


def fewest(outcome: Callable[[int], Outcome], p99: float) -> tuple[int, Outcome]:
    """The fewest devices with which no request is refused or late and 99 % are answered within `p99` seconds, and what
    comes of it. `outcome` tells it for a number of devices; more are taken never to be worse.

    ConfigurationError where no number holds the bound, because a single run takes longer.
    """
    most = 1
    found = outcome(most)
    while not _holds(found, p99):
        if most >= MOST_DEVICES:
            raise ConfigurationError(
                f"{most} devices do not hold a p99 of {p99:g} seconds: it is {found.latency_p99:g} with them"
            )
        before = found.latency_p99
        most *= 2
        found = outcome(most)
        if most > 64 and not found.refused and found.latency_p99 > p99 and found.latency_p99 >= before:
            raise ConfigurationError(
                f"no number of devices holds a p99 of {p99:g} seconds: with {most} it is {found.latency_p99:g}, and "
                "more do not shorten it"
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
