"""Estimate the time of a run from types and this machine's peak rates. For most models, the error is within a third."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from attrs import frozen

from onert.backend import Backend, Group, Routine
from onert.compiler.rewrite.loops.trip_counts import most_trips
from onert.compiler.side_by_side.durations import EVALUATED_BYTES, EVALUATION, traffic
from onert.ir import CallTypes, Op, Subgraph, TensorType
from onert.ir.analysis.cost import cost
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.value import Value

from .rates import LANES, PRODUCTS, QUANTISED, REQUANTISED, rate

STARTING = 0.15e-6
"""Seconds to start a kernel."""
ALONE = 3e-6
"""Seconds that a kernel must take on one thread before it is shared among threads."""
HELD = 0.02e-6
"""Seconds to start a kernel in a loop or branch, whose kernels are called one after another."""
MOST_ROUNDS = 4096
"""Trip counts above this are assumed to be only a bound, not the actual number of rounds."""
CACHE = 1 << 20
"""Bytes of tensors that are assumed to stay in a core's own caches between operations."""
SHARED_CACHE = 2.0
"""How many times faster than from memory larger tensors move, because most are in a cache shared by cores."""
MOVING = 1.8
"""Time to read tensors, compute and write results, relative to a copy of the same bytes within a core's caches."""
DEPTH = 32
"""The least depth of a sum of 8-bit products at which it reaches its peak rate."""
OVER_PEAK, STORED_OVER_PEAK = 1.1, 0.9
"""Time of float and 8-bit products, relative to the time at their measured peaks."""
MOST_NARROW = 6.0
"""The largest slowdown of moving tensors with fewer channels than are moved at once."""


@frozen
class _Work(Value):
    """The cost of operations: `products` in seconds, `others` in equivalent operations at the float peak.

    `narrow` is the slowdown of moving tensors with few channels.
    """

    products: float = 0.0
    others: float = 0.0
    narrow: float = 1.0

    def and_(self, other: _Work) -> _Work:
        return _Work(self.products + other.products, self.others + other.others, max(self.narrow, other.narrow))


def arithmetic(graph: Subgraph, group: Group) -> int:
    """The arithmetic operations of a group."""
    operations = [graph.operations[at] for at in group.operations]
    return sum(cost(operation.op, graph.types(operation)).flops for operation in operations)


def is_stored(graph: Subgraph, group: Group) -> bool:
    """Whether a group computes on 8-bit numbers."""
    return _is_stored(graph.types(graph.operations[group.operations[0]]))


def _is_stored(types: CallTypes) -> bool:
    return any(t is not None and t.quantization is not None and t.dtype.bits <= 8 for t in types.inputs)


def expected(routine: Routine, backends: Sequence[Backend], machine: Mapping[str, Any]) -> list[float]:
    """Estimated seconds of each fusion group of a routine, in order; 0 for groups without work."""
    by_name = {backend.name: backend for backend in backends}
    return [
        _seconds(routine.subgraph, group, by_name.get(step.backend), machine)
        for step in routine.steps
        for group in step.sequence.groups
    ]


def _seconds(graph: Subgraph, group: Group, backend: Backend | None, machine: Mapping[str, Any]) -> float:
    operations = [graph.operations[at] for at in group.operations]
    if all(operation.op.shares for operation in operations):
        return 0.0
    nbytes = traffic(graph, group)
    if backend is not None and backend.evaluates:
        return (EVALUATION * len(operations) + nbytes / EVALUATED_BYTES) / 1e6
    return _group(((operation.op, graph.types(operation)) for operation in operations), nbytes, machine)


def _group(operations: Iterable[tuple[Op, CallTypes]], nbytes: int, machine: Mapping[str, Any]) -> float:
    """Estimated seconds of fused operations that move `nbytes` bytes, including the graphs inside them."""
    work, held = _Work(), 0.0
    for op, types in operations:
        match op:
            case Loop():
                held += _rounds(op, types) * (_held(op.condition, machine) + _held(op.body, machine))
            case Branch():
                held += max(_held(op.then, machine), _held(op.otherwise, machine))
            case _:
                work = work.and_(_work(op, types, machine))
    moved = nbytes / (
        machine["cached_bytes_per_second"] if nbytes <= CACHE else machine["bytes_per_second"] * SHARED_CACHE
    )
    others = work.others / _peak(machine, "float32")
    if held:
        return STARTING + held
    shared = max(work.products, moved) + others if work.products else MOVING * work.narrow * moved + others
    alone = shared * machine["threads"]
    return STARTING + float(alone if alone < ALONE else max(ALONE, shared))


def _rounds(op: Loop, types: CallTypes) -> int:
    """The trip count of a loop if its counter determines it, otherwise (or if it is probably only a bound) 1."""
    found = most_trips(op.condition, op.body, [t for t in types.inputs if t is not None])
    return found if found is not None and found <= MOST_ROUNDS else 1


def _held(graph: Subgraph, machine: Mapping[str, Any]) -> float:
    """Estimated seconds of a graph inside an operation, whose operations run one after another."""
    total = 0.0
    for operation in graph.operations:
        types = graph.types(operation)
        if isinstance(operation.op, Loop | Branch):
            total += _group([(operation.op, types)], 0, machine)
        elif not operation.op.shares:
            nbytes = sum(t.nbytes for t in (*types.inputs, *types.outputs) if t is not None and t.is_static)
            work = _work(operation.op, types, machine)
            moved = nbytes / machine["cached_bytes_per_second"]
            total += HELD + max(work.products, moved) + work.others / _peak(machine, "float32")
    return total


def _peak(machine: Mapping[str, Any], name: str) -> float:
    """A measured peak, or the highest other one if it was not measured."""
    peaks = machine["flops_per_second"]
    return float(peaks.get(name, 0) or max(peaks.values(), default=1e9))


def _work(op: Op, types: CallTypes, machine: Mapping[str, Any]) -> _Work:
    """The cost of one operation, not counting memory traffic."""
    flops = cost(op, types).flops
    results = sum(prod(d or 1 for d in t.shape) for t in types.outputs)
    if not isinstance(op, PRODUCTS):
        return _Work(0.0, rate(op) * flops, _narrow(types))
    stored = _is_stored(types)
    padded, depth = _windows(op, types)
    if not stored:
        return _Work(OVER_PEAK * flops * padded / _peak(machine, "float32"))
    entered = types.inputs[0]
    quantised = entered is not None and entered.quantization is None  # so the operation quantises it when it runs
    elements = prod(d or 1 for d in entered.shape) if entered is not None else 0
    others = QUANTISED * elements if quantised else REQUANTISED * results
    return _Work(STORED_OVER_PEAK * flops * padded / min(1.0, depth / DEPTH) / _peak(machine, "int8"), others)


def _windows(op: Op, types: CallTypes) -> tuple[float, int]:
    """How many times more channels a convolution computes than its result has, and the depth of its sums."""
    x, weight = types.inputs[0], types.inputs[1] if len(types.inputs) > 1 else None
    if not isinstance(op, Conv2D) or x is None or weight is None or not (x.rank == weight.rank == 4):
        return 1.0, DEPTH
    given, channels = x.shape[-1] or 1, types.outputs[0].shape[-1] or 1
    several = prod(d or 1 for d in types.outputs[0].shape[:-1]) > 1
    lanes = LANES if channels > LANES // 2 else LANES // 2
    padded = max(1.0, min(-(-channels // lanes) * lanes / channels, given)) if several else 1.0
    return padded, given * (weight.shape[2] or 1) if given <= 4 else given


def _narrow(types: CallTypes) -> float:
    """The slowdown if tensors differ in shape and have few channels, so that elements are moved one by one."""
    result = types.outputs[0] if types.outputs else None
    tensors = [t for t in (*types.inputs, *types.outputs) if t is not None and result is not None and _alike(t, result)]
    if len({t.shape for t in tensors}) < 2:
        return 1.0
    last = min(t.shape[-1] or 1 for t in tensors)
    return min(MOST_NARROW, LANES / last) if last < LANES // 2 else 1.0


def _alike(one: TensorType, result: TensorType) -> bool:
    """Whether a tensor has the result's dtype and rank and several elements, unlike parameters of the operation."""
    return one.dtype is result.dtype and one.rank == result.rank > 0 and prod(d or 1 for d in one.shape) > 1
