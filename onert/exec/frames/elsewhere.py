"""Frames with tensors in memory spaces other than the host's, and asynchronous calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from attrs import frozen

from onert.backend import HOST, Enqueues, Event, Queue, Routine, Tensor, queue_of, tensor_bytes
from onert.backend.residents import DeviceConstants
from onert.ir import Array, Context, OnertError
from onert.ir.ops.data_movement.permute import Permute

from .frame import Calls, Frame, Watch


class ElsewhereFrame(Frame):
    """A frame with tensors in other memory spaces: constants that the program's executions share, variables, and copies
    of inputs, which are made only if an input was set since.

    Calls that only enqueue work are ordered across queues. The host waits in `copy_out`, where it reads, and at the end
    of a run for work that no copy has waited for.
    """

    def __init__(
        self,
        routine: Routine,
        context: Context,
        execute: Callable[[Frame], None],
        watch: Watch | None,
        residents: DeviceConstants,
        in_order: bool,
    ) -> None:
        self._residents = residents
        self._in_order = in_order
        self._finishing = False
        self._plan = _Turns()
        self._queues: tuple[Queue, ...] = ()
        super().__init__(routine, context, execute, watch)
        graph = routine.subgraph
        self._given = frozenset(graph.operations[at].used[0] for at in _copies_of_inputs(routine))
        self._state = tuple((u.source, u.variable) for u in graph.state if self._is_elsewhere(u.variable))
        self._is_stateful = self.stateful = True

    # ---- buffers

    def _make_constants(self) -> None:
        super()._make_constants()
        for index, operand in enumerate(self.routine.subgraph.operands):
            if operand.data is not None and self._is_elsewhere(index):
                memory = self.routine.memories[index]
                buffer = self._residents.buffer(memory, operand.type, operand.data)
                self._tensors[index] = Tensor(operand.type, buffer, memory)

    def _make_rest(self) -> None:
        graph = self.routine.subgraph
        kept = [graph.operations[at].outputs[0] for at in _copies_of_inputs(self.routine)]
        kept += [i for i, operand in enumerate(graph.operands) if operand.variable and self._is_elsewhere(i)]
        for operand in kept:
            memory, type_ = self.routine.memories[operand], graph.type(operand)
            buffer = memory.view(self._allocate(memory, tensor_bytes(memory, type_)), 0, type_)
            self._tensors[operand] = Tensor(type_, buffer, memory)
        super()._make_rest()
        self.clear_elsewhere()

    def _is_elsewhere(self, operand: int) -> bool:
        return self.routine.memories.get(operand, HOST).name != HOST.name

    def clear_elsewhere(self) -> None:
        for index, operand in enumerate(self.routine.subgraph.operands):
            if operand.variable and self._is_elsewhere(index):
                tensor = self._tensors[index]
                cleared = HOST.view(HOST.allocate(tensor.type.nbytes), 0, tensor.type)
                cleared[...] = tensor.type.cleared
                tensor.assign(cleared)
        self._moved()

    # ---- inputs

    def place(self, operand: int, array: Array | None) -> None:
        super().place(operand, array)
        self._tensors[operand].stamp = None

    def put(self, operand: int, array: Array | None) -> None:
        super().place(operand, array)
        if operand in self._given:
            self._tensors[operand].stamp = object()

    def redirect(self, operand: int, array: Array) -> bool:
        return False

    def redirects(self, operand: int) -> bool:
        return False

    # ---- runs

    @property
    def calls(self) -> Calls:
        if self.bound is None:
            bound = tuple(self._bind(step) for step in self.routine.steps)
            plan = _in_turn(self.routine, bound, self._in_order)
            memories = [queue_of(memory) for memory in self.routine.memories.values()]
            self._queues = tuple(dict.fromkeys(q for q in (*plan.queues, *memories) if q is not None))
            self._plan = plan
            self._follow(memories)  # constants and variables were written in these
            if self._watch is None:
                self.bound = plan.calls
            else:  # each step is done before its observers are notified
                waiting = tuple(map(_done, plan.calls, plan.lanes, bound))
                self.bound = self._watch(self.routine, self.tensors, waiting)
        return self.bound

    def update_state(self) -> None:
        """Wait for work that no copy to the host has waited for, and update variables in all memory spaces."""
        for queue in self._plan.unread:
            queue.record().wait()
        for check in self._plan.unchecked:
            check()
        self._host_updates()  # may raise
        self._finishing = True
        self._finish()

    def _finish(self) -> None:
        """Update state after a successful run; repeated if it is interrupted."""
        for source, variable in self._state:
            target = self._tensors[variable]
            target.memory.copy(self._tensors[source].buffer, target.buffer, target.type)
        if self._state:
            self._follow([queue_of(self._tensors[variable].memory) for _, variable in self._state])
        super().update_state()
        self._finishing = False

    def _follow(self, leaders: Iterable[Queue | None]) -> None:
        """Make all queues wait for the current work of these."""
        if len(self._queues) == 1:
            return
        for leader in dict.fromkeys(leaders):
            if leader is not None:
                event = leader.record()
                for queue in self._queues:
                    if queue is not leader:
                        queue.follow(event)

    def recover(self) -> None:
        """After an interrupted run: finish it if it had succeeded, and wait for asynchronous work."""
        if self._finishing:
            with suppress(OnertError):
                self._finish()
            self._finishing = False
        for queue in self._queues:
            with suppress(OnertError):  # the run has failed already; the next one reports persistent errors
                queue.record().wait()
        for check in self._plan.checks:
            with suppress(OnertError):
                check()
        self._moved()  # inputs are copied again


def _copies_of_inputs(routine: Routine) -> list[int]:
    """The permutes that copy an input to a buffer that lives as long as the frame."""
    inputs = frozenset(routine.subgraph.inputs)
    return [
        at
        for at, operation in enumerate(routine.subgraph.operations)
        if isinstance(operation.op, Permute)
        and operation.used[0] in inputs
        and not any(operation.outputs[0] in arena.placements for arena in routine.arenas.values())
    ]


# ---- order between queues


@frozen(eq=False)
class _Turns:
    """Calls ordered across queues. `lanes` are the queues in which each leaves work, `unread` those of all `queues`
    whose last work no copy to the host waits for. `checks` are those of all calls that enqueue, `unchecked` those of
    calls that no copy to the host follows."""

    calls: Calls = ()
    lanes: tuple[tuple[Queue, ...], ...] = ()
    queues: tuple[Queue, ...] = ()
    unread: tuple[Queue, ...] = ()
    checks: Calls = ()
    unchecked: Calls = ()


def _in_turn(routine: Routine, calls: Calls, in_order: bool) -> _Turns:
    """Bound calls that make work in one queue wait for the work that it needs from another.

    If steps run `in_order`, a step may reuse memory that no dependency says is free.
    """
    taken = [_lanes(call, "queues") for call in calls]
    left = [() if getattr(call, "waits", False) else lanes for call, lanes in zip(calls, taken, strict=True)]
    needs: list[list[int]] = []
    for step, lanes in enumerate(taken):
        before: list[int] = list(routine.dependencies[step])
        if in_order and lanes:
            before = list({queue: at for at in range(step) for queue in left[at]}.values())
        needs.append([at for at in before if any(queue not in lanes for queue in left[at])])
    signalling = {at for own in needs for at in own}
    events: list[list[Event]] = [[] for _ in calls]
    checks: dict[int, Callable[[], None]] = {
        at: call.check for at, call in enumerate(calls) if isinstance(call, Enqueues)
    }
    found: list[Callable[[], None]] = []
    read: set[int] = set()
    for at, call in enumerate(calls):
        before = sorted(_ancestors(routine, at)) if taken[at] and not left[at] else []
        read.update(before)
        after = tuple(checks[n] for n in before if n in checks)
        if needs[at] or at in signalling or after:
            awaited = tuple(events[n] for n in needs[at])
            call = _Turn(call, taken[at], left[at] if at in signalling else (), events[at], awaited, after)
        found.append(call)
    unread = dict.fromkeys(queue for at, lanes in enumerate(left) if at not in read for queue in lanes)
    unchecked = tuple(check for at, check in checks.items() if at not in read)
    queues = dict.fromkeys(queue for lanes in taken for queue in lanes)
    return _Turns(tuple(found), tuple(left), tuple(queues), tuple(unread), tuple(checks.values()), unchecked)


def _lanes(call: object, several: str) -> tuple[Queue, ...]:
    """The queues in which a call enqueues work."""
    queue = queue_of(call)
    own: tuple[Queue, ...] = getattr(call, several, ())
    return own if queue is None else (queue,)


def _ancestors(routine: Routine, last: int) -> set[int]:
    """The steps that must have run before step `last`."""
    found: set[int] = set()
    waiting = [last]
    while waiting:
        new = set(routine.dependencies[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


@frozen(eq=False)
class _Turn:
    """A call that first waits for events of others, then records its own, and last checks the work that it read."""

    _call: Callable[[], None]
    _lanes: tuple[Queue, ...]
    _left: tuple[Queue, ...]
    _events: list[Event]
    _after: tuple[list[Event], ...]
    _checks: Calls

    def __call__(self) -> None:
        for events in self._after:
            for event in events:
                if not self._lanes:
                    event.wait()
                for queue in self._lanes:
                    queue.follow(event)
        self._call()
        if self._left:
            self._events[:] = [queue.record() for queue in self._left]
        for check in self._checks:
            check()


def _done(call: Callable[[], None], lanes: tuple[Queue, ...], bound: Callable[[], None]) -> Callable[[], None]:
    """The call, which returns when the work that it enqueues is done."""
    if not lanes:
        return call

    def run() -> None:
        call()
        for queue in lanes:
            queue.record().wait()
        if isinstance(bound, Enqueues):
            bound.check()

    return run
