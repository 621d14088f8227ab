"""A trace for Perfetto and Chrome.

Source: the Trace Event Format of Chrome's tracing, JSON object form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import get_native_id
from typing import Any

from attrs import frozen

from onert.backend import Program, Tensors
from onert.backend.tasks import thread_name
from onert.ir import ExecutionError, OnertError
from onert.ir.process.replacing import replace
from onert.ir.value import Value

from .observer import Observer, Work
from .timeline import MemoryTimeline


def write_events(path: str | os.PathLike[str], events: Sequence[Mapping[str, Any]], error: type[OnertError]) -> None:
    """Write events as a trace, one JSON object. Raises an error of the given class if that fails."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(target, (json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode(),))
    except OSError as reason:
        raise error(f"the trace cannot be written to {target}: {reason.strerror or reason}") from reason


@frozen
class _Slice(Value):
    thread: int
    start: int
    end: int
    name: str
    category: str
    arguments: dict[str, Any]


class Trace(Observer):
    """A slice for every run and every piece of it, on the thread that ran it, and counters of the memory in use.

    If `path` is given, the trace is written there when the execution is closed.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._memory = MemoryTimeline()
        self._slices: list[_Slice] = []
        self._threads: dict[int, str] = {}
        self._runs = 0

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        self._memory.run_begins(program, tensors)

    def begins(self, work: Work, tensors: Tensors) -> None:
        self._memory.begins(work, tensors)

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        self._memory.ends(work, tensors, start, end)
        arguments = {
            "backend": work.backend,
            "step": work.step,
            "operations": list(work.operations),
            "flops": work.flops,
            "bytes": work.nbytes,
        }
        self._add(start, end, work.label, work.backend, arguments)

    def run_ends(self, program: Program, start: int, end: int, error: BaseException | None) -> None:
        arguments: dict[str, Any] = {"model": program.name, "executor": program.executor}
        if error is not None:
            arguments["error"] = str(error)
        self._add(start, end, f"run {self._runs}", "run", arguments)
        self._runs += 1

    def _add(self, start: int, end: int, name: str, category: str, arguments: dict[str, Any]) -> None:
        thread = get_native_id()
        self._threads.setdefault(thread, thread_name())
        self._slices.append(_Slice(thread, start, end, name, category, arguments))

    def events(self) -> list[dict[str, Any]]:
        """The trace's events: names, then each thread's begin and end events in order, then counters."""
        pid = os.getpid()
        zero = min((s.start for s in self._slices), default=0)
        found = [_meta("process_name", "onert", pid, pid)]
        found += [_meta("thread_name", name, pid, thread) for thread, name in self._threads.items()]
        for thread in self._threads:
            found += _nested((s for s in self._slices if s.thread == thread), zero, pid)
        found += [
            {"ph": "C", "name": f"{s.space} bytes", "pid": pid, "ts": (s.time - zero) / 1e3, "args": {"live": s.nbytes}}
            for s in self._memory.samples
        ]
        return found

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as one JSON object. Raises ExecutionError if the file cannot be written."""
        write_events(path, self.events(), ExecutionError)

    def close(self) -> None:
        if self._path is not None:
            self.write(self._path)


def _meta(kind: str, name: str, pid: int, thread: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": thread, "args": {"name": name}}


def _nested(slices: Iterable[_Slice], zero: int, pid: int) -> list[dict[str, Any]]:
    """A begin and an end event for every slice of one thread, in order of time; slices are disjoint or nested."""
    found: list[dict[str, Any]] = []
    open_slices: list[_Slice] = []

    def event(phase: str, slice_: _Slice, time: int) -> dict[str, Any]:
        return {
            "ph": phase,
            "name": slice_.name,
            "cat": slice_.category,
            "pid": pid,
            "tid": slice_.thread,
            "ts": (time - zero) / 1e3,
        }

    for each in sorted(slices, key=lambda s: (s.start, -s.end)):
        while open_slices and open_slices[-1].end <= each.start:
            done = open_slices.pop()
            found.append(event("E", done, done.end))
        found.append({**event("B", each, each.start), "args": each.arguments})
        open_slices.append(each)
    found += [event("E", done, done.end) for done in reversed(open_slices)]
    return found
