"""Stretching: what an execution needs to run a program for other lengths without specialising it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onert.backend import HOST, Backend, FollowingKernel, Program, Stretch, StretchedKernel
from onert.ir import DType, TensorType
from onert.ir.symbolic.instructions import NoInstructionError, instructions
from onert.ir.symbolic.trace import Symbolic, Trace, largest


def stretch(
    trace: Trace,
    template: Program,
    used: Callable[[], None],
    backends: Mapping[str, Backend],
    lengths: Sequence[tuple[int, int]],
) -> Stretch | None:
    """The stretch of a program with symbolic numbers, whose lengths are the (input position, axis) pairs in `lengths`.
    `used` is called whenever the stretch is used.

    None if lengths change more than numbers: if there is state, another memory space or a call of a subgraph, if a
    kernel reads a constant that depends on lengths, or if a backend declines. Decisions become conditions of the trace.
    """
    routine = template.main
    graph = routine.subgraph
    called = any(operation.op.subgraphs for operation in graph.operations)
    persistent = graph.state or any(operand.variable for operand in graph.operands)
    if called or persistent or not routine.is_on_host or not routine.steps:
        return None
    if any(_is_open(trace, p.offset) for plan in routine.arenas.values() for p in plan.placements.values()):
        return None
    if any(_is_open(trace, plan.size) for plan in routine.arenas.values()):
        return None
    computed = {i for i, operand in enumerate(graph.operands) if operand.data is not None and operand.data.is_symbolic}
    kernels: list[StretchedKernel] = []
    for step in routine.steps:
        found = backends[step.backend].stretched(step.kernel, trace)
        if found is None or not computed.isdisjoint(found.operands):
            return None
        kernels.append(found)
    following = next((kernel for kernel in kernels if isinstance(kernel, FollowingKernel)), None)
    if following is None:
        return None
    ports = dict.fromkeys((*graph.inputs, *graph.outputs))
    visible = dict.fromkeys((*ports, *(i for i, root in routine.roots.items() if root in ports)))
    handles = {graph.type(i).dtype for i in graph.inputs if graph.type(i).dtype.is_handle}
    if any(graph.operands[i].is_constant for i in visible) or handles - {DType.STRING}:
        return None
    visible |= dict.fromkeys(i for kernel in kernels for i in kernel.shaped if not graph.operands[i].is_constant)
    lasting = [i for i in graph.lasting if any(_is_open(trace, d) for d in _dims(graph.operands[i].known.shape))]
    visible |= dict.fromkeys(lasting)
    types = {i: graph.operands[i].known for i in visible}
    capacities = {i: largest(HOST.alignment + types[i].nbytes) for i in (*ports, *lasting) if _has_room(types[i])}
    required = [number for kernel in kernels for number in kernel.wanted]
    required += [d.index for type_ in types.values() for d in _dims(type_.shape) if _is_open(trace, d)]
    try:
        numbers = instructions(trace, required)
    except NoInstructionError:
        return None
    shapes = {
        i: tuple(
            (numbers.registers[d.index], 0) if _is_open(trace, d) else (-1, _plain(d)) for d in _dims(types[i].shape)
        )
        for i in visible
    }
    return Stretch(tuple(lengths), numbers, tuple(kernels), following, shapes, capacities, used)


def _has_room(type_: TensorType) -> bool:
    """Whether memory for a tensor is allocated before the run."""
    return type_.is_static and not type_.dtype.is_handle


def _dims(shape: Any) -> tuple[Any, ...]:
    """The dimensions of a shape, which may be symbolic."""
    return tuple(shape)


def _is_open(trace: Trace, number: Any) -> bool:
    """Whether a number depends on the lengths."""
    return isinstance(number, Symbolic) and not trace.is_fixed(number.index)


def _plain(number: Any) -> int:
    found: int = number.value if isinstance(number, Symbolic) else number
    return found
