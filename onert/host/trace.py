"""A timeline of a host's work, as a trace for Perfetto or Chrome.

Source: the Trace Event Format of Chrome's tracing, JSON object form.
"""

from __future__ import annotations

import os
from collections import deque
from threading import get_native_id
from typing import Any

from attrs import frozen

from onert.backend.tasks import thread_name
from onert.exec.observers.trace import write_events
from onert.ir.value import Value

from .errors import HostError

MOST_EVENTS = 1_000_000
"""The most slices, and spans, of a trace; the oldest are dropped."""


@frozen
class Slice(Value):
    """A run of a function on a device: process, thread, start and end."""

    process: int
    thread: int
    thread_name: str
    start: int
    end: int
    name: str
    device: str


@frozen
class Span(Value):
    """A request from call to answer. `error` is empty if it succeeded."""

    number: int
    network: str
    start: int
    end: int
    error: str


class HostTrace:
    """Records requests, and runs of functions on all devices. Times are nanoseconds of `perf_counter_ns`.

    Any thread may add to it.
    """

    def __init__(self) -> None:
        self.slices: deque[Slice] = deque(maxlen=MOST_EVENTS)
        self.spans: deque[Span] = deque(maxlen=MOST_EVENTS)
        self.processes: dict[int, str] = {os.getpid(): "onert host"}
        """Names of processes by process ID."""

    def ran(self, name: str, device: str, start: int, end: int) -> None:
        """Record a run of a function by the calling thread."""
        self.slices.append(Slice(os.getpid(), get_native_id(), thread_name(), start, end, name, device))

    def ran_elsewhere(self, name: str, device: str, process: int, start: int, end: int) -> None:
        """Record a run of a function in a device's own process, in its main thread."""
        self.processes.setdefault(process, f"onert device {device}")
        self.slices.append(Slice(process, process, device, start, end, name, device))

    def answered(self, number: int, network: str, start: int, end: int, error: str) -> None:
        """Record an answered request."""
        self.spans.append(Span(number, network, start, end, error))

    def events(self) -> list[dict[str, Any]]:
        """The trace's events: names of processes and threads, slices on their threads, and asynchronous requests."""
        slices, spans = tuple(self.slices), tuple(self.spans)
        zero = min([*(each.start for each in slices), *(each.start for each in spans)], default=0)
        threads = {(each.process, each.thread): each.thread_name for each in slices}
        found = [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": name}}
            for pid, name in self.processes.items()
        ]
        found += [
            {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
            for (pid, tid), name in threads.items()
        ]
        found += [
            {
                "ph": "X",
                "name": each.name,
                "cat": "function",
                "pid": each.process,
                "tid": each.thread,
                "ts": (each.start - zero) / 1e3,
                "dur": (each.end - each.start) / 1e3,
                "args": {"device": each.device},
            }
            for each in slices
        ]
        own = os.getpid()
        for span in spans:
            both = {"name": span.network, "cat": "request", "id": span.number, "pid": own, "tid": own}
            arguments = {"error": span.error} if span.error else {}
            found.append({**both, "ph": "b", "ts": (span.start - zero) / 1e3, "args": arguments})
            found.append({**both, "ph": "e", "ts": (span.end - zero) / 1e3})
        return found

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as one JSON object. Raises HostError if that fails."""
        write_events(path, self.events(), HostError)
