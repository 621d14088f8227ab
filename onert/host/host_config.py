"""`HostConfig`: the limits of a host."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from onert.ir.value import Value

from .errors import ConfigurationError


def _at_least(least: int) -> Any:
    def check(config: object, attribute: Attribute[int], value: int) -> None:
        if value < least:
            raise ConfigurationError(f"{attribute.name} is {value}, expected at least {least}")

    return check


@frozen
class HostConfig(Value):
    """How much a host takes on at a time.

    - `max_active_requests`: requests whose networks are being run
    - `max_queue_size`: requests that wait to be run; one more is refused
    - `executor_threads`: threads that call callbacks
    - `max_sequences`: sequences of requests that keep state. One more is refused, unless another has been idle for
      `sequence_idle` seconds: that one's state is forgotten
    - `retries`: how often a run is begun again whose device was lost, on another device if the network is on several.
      A run on the state of a sequence is not, because the state was lost too

    The defaults of the first three are Glow's.
    """

    max_active_requests: int = field(default=48, validator=_at_least(1))
    max_queue_size: int = field(default=100, validator=_at_least(0))
    executor_threads: int = field(default=3, validator=_at_least(1))
    max_sequences: int = field(default=1000, validator=_at_least(0))
    sequence_idle: float = 300.0
    retries: int = field(default=1, validator=_at_least(0))


@frozen
class BatchConfig(Value):
    """How requests for one network are run together.

    - `max_size`: the most requests of a batch
    - `max_delay`: the most seconds that a request waits for others while its batch is not full and a device is idle;
      0: no longer than devices are busy anyway
    - `stacked`: whether a batch is one run, its inputs joined along their first dimension. None: where the model can,
      which is tried; else a batch is as many runs, one after the other, that a device is given at once
    """

    max_size: int = field(default=8, validator=_at_least(1))
    max_delay: float = 0.0
    stacked: bool | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that networks are compiled for: powers of two, and the largest. Smaller batches are filled up."""
        powers = (1 << bit for bit in range(self.max_size.bit_length()))
        return tuple(dict.fromkeys((*(size for size in powers if size <= self.max_size), self.max_size)))
