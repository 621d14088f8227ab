"""Queues: work that goes on beside the host."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Event(Protocol):
    """A moment in a queue."""

    def wait(self) -> None:
        """Until all that was enqueued before the moment is done, or has failed. ExecutionError if that never comes."""


@runtime_checkable
class Queue(Protocol):
    """Work that is done in the order in which it was enqueued, while the host goes on.

    A queue may serve many executions, whose threads enqueue at a time. It goes on after work that failed.
    """

    def record(self) -> Event:
        """The moment at which all that was enqueued until now is done."""

    def follow(self, event: Event) -> None:
        """Do what is enqueued from now on only after an event of any queue; the caller does not wait."""


@runtime_checkable
class Enqueues(Protocol):
    """What `bind` returns where a call only enqueues: the kernel's work is done after all that its queue has then."""

    @property
    def queue(self) -> Queue: ...

    def __call__(self) -> None: ...

    def check(self) -> None:
        """ExecutionError if work of this call has failed since the last time, asked when all of it is done."""


def queue_of(owner: object) -> Queue | None:
    """The queue of a bound call or of a memory space; None where all is done when a call returns."""
    found: Queue | None = getattr(owner, "queue", None)  # isinstance of a protocol takes 25 us
    return found
