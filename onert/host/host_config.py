"""`HostConfig`: the limits of a host."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from onert.ir.value import Value

from .errors import ConfigurationError


def _at_least(least: int) -> Any:
    def check(config: HostConfig, attribute: Attribute[int], value: int) -> None:
        if value < least:
            raise ConfigurationError(f"{attribute.name} is {value}, expected at least {least}")

    return check


@frozen
class HostConfig(Value):
    """How much a host takes on at a time.

    - `max_active_requests`: requests whose networks are being run
    - `max_queue_size`: requests that wait to be run; one more is refused
    - `executor_threads`: threads that call callbacks

    The defaults are Glow's.
    """

    max_active_requests: int = field(default=48, validator=_at_least(1))
    max_queue_size: int = field(default=100, validator=_at_least(0))
    executor_threads: int = field(default=3, validator=_at_least(1))
