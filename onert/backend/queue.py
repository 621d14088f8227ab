"""Queues of work that runs asynchronously to the host."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Event(Protocol):
    """A moment in a queue."""

    def wait(self) -> None:
        """Wait until all earlier work in the queue is done or has failed. ExecutionError if that never happens."""


@runtime_checkable
class Queue(Protocol):
    """Work that is done in the order in which it was enqueued, while the host continues.

    Several threads, of several executions, may enqueue at the same time. If work fails, the queue continues with the
    next item.
    """

    def record(self) -> Event:
        """The moment at which all work enqueued so far is done."""

    def follow(self, event: Event) -> None:
        """Make all work enqueued from now on wait for an event of any queue. The caller does not wait."""


@runtime_checkable
class Enqueues(Protocol):
    """What `bind` returns if a call only enqueues the kernel's work, after all work already in its queue."""

    @property
    def queue(self) -> Queue: ...

    def __call__(self) -> None: ...

    def check(self) -> None:
        """Called when all work is done. ExecutionError if work of this call failed since the last `check`."""


def queue_of(owner: object) -> Queue | None:
    """The queue of a bound call or of a memory space; None if its work is done when a call returns."""
    found: Queue | None = getattr(owner, "queue", None)  # isinstance of a protocol costs 25 us
    return found
