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
    """The limits of a host.

    - `max_active_requests`: requests that run at the same time
    - `max_queue_size`: requests that wait to be run; more are rejected
    - `executor_threads`: threads that run callbacks
    - `max_sequences`: sequences of requests that keep state. More are rejected, unless another one has been idle for
      `sequence_idle` seconds, whose state is then dropped
    - `retries`: how often a run is retried after its device was lost, on another device if the network is on several.
      Runs on the state of a sequence are not retried, because the state was lost with the device

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
    """How requests for a network are batched.

    - `max_size`: the most requests in a batch
    - `max_delay`: the most seconds that a request waits for others while its batch is not full and a device is idle; 0:
      requests wait only while all devices are busy
    - `stacked`: whether a batch is one run, with inputs concatenated along the first dimension. False: a batch is a
      series of runs that a device gets at once. None: stacked if a trial shows that the model supports it and gains
    """

    max_size: int = field(default=8, validator=_at_least(1))
    max_delay: float = 0.0
    stacked: bool | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes to compile for: powers of two, and `max_size`. Other batches are padded to the next size."""
        powers = (1 << bit for bit in range(self.max_size.bit_length()))
        return tuple(dict.fromkeys((*(size for size in powers if size <= self.max_size), self.max_size)))
