"""Limits on compiling and running a model: steps, memory and arithmetic, in proportion to the model.

A model of a few hundred bytes can demand a tensor of a terabyte, or a year of arithmetic. Genuine models stay far below
these limits, because their constants grow with what they compute. Computed or merely declared tensors add nothing to a
limit, because a single element is easily broadcast to many. So each limit is a floor, plus what the file's constants
and the caller's own shapes add. The limits for a megabyte of constants fit in a gibibyte and five seconds.
Users can raise the limits (`max_memory`, `max_work`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

from attrs import frozen

from onert.backend import ArenaPlan, Backend
from onert.backend.evaluation.evaluating import work_of_evaluating
from onert.ir import CallTypes, CompileError, Op, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.cost import cost
from onert.ir.process.budget import Budget
from onert.ir.symbolic.trace import maximum, where_greater
from onert.ir.value import Value

from .options import Options

MEMORY, MEMORY_PER_BYTE, MEMORY_PER_INPUT_BYTE = 640 << 20, 64, 128
"""The floor, and the factors for bytes of constants and of added inputs: a network on large images has a hundred
features per pixel, and holds a few such tensors at a time."""
WORK, WORK_PER_BYTE, WORK_PER_INPUT_BYTE = 100_000_000_000, 40_000, 10_000
EVALUATED = 10
STEPS, STEPS_PER_BYTE = 2_000_000, 0.25
STEPS_PER_OPERATION = 1000
"""Applies to the largest subgraph only. Each of its operations has results of its own, so a file cannot multiply them
as cheaply as whole subgraphs."""

OPERATION_STEPS = 200
COMMAND_WORK = 2_500
"""The start of an operation in native code, converted to arithmetic of the same duration."""
MOVED_BYTE_WORK = 10
"""Moving a byte, converted to arithmetic of the same duration."""
LANES = 32
"""Lanes of the accumulators. Results with fewer channels leave lanes idle and wait for the latency of additions."""
PRODUCTS = 2
"""How much faster arithmetic is in operations that do a lot of it for each byte."""


@frozen
class Limits(Value):
    """The most bytes that one execution may need beside its constants, and the most work of one run.

    Work is counted in additions and multiplications; moving bytes counts as arithmetic of the same duration.
    """

    memory: int
    work: int


def steps(model: Subgraphs) -> Budget:
    """The budget of steps for compiling a model."""
    largest = max(len(graph.operations) for graph in model.subgraphs)
    scaled = STEPS_PER_OPERATION * largest + STEPS_PER_BYTE * _constants(model)[0]
    return Budget(int(STEPS + scaled), CompileError)


def limits(
    model: Subgraphs, entry: Subgraph, declared: Subgraph, options: Options, backends: Sequence[Backend] = ()
) -> Limits:
    """The limits for a model with the inputs of `entry`. Inputs that the caller made larger than `declared` in the file
    raise them.

    If the preferred backend evaluates operations in NumPy, runs may take `EVALUATED` times as long.
    """
    size, elements = _constants(model)
    pairs = [(entry.type(a), declared.type(b)) for a, b in zip(entry.inputs, declared.inputs, strict=True)]
    added_bytes = sum(maximum(0, _bytes(chosen) - _bytes(before)) for chosen, before in pairs)
    added_elements = sum(maximum(0, _elements(chosen) - _elements(before)) for chosen, before in pairs)
    products = 2 * elements * added_elements // PRODUCTS  # each weight meets each added input element
    memory = MEMORY + MEMORY_PER_BYTE * size + MEMORY_PER_INPUT_BYTE * added_bytes
    work = WORK + WORK_PER_BYTE * size + WORK_PER_INPUT_BYTE * added_bytes + products
    times = EVALUATED if backends and backends[0].evaluates else 1
    return Limits(options.max_memory or memory, options.max_work or times * work)


def _constants(model: Subgraphs) -> tuple[int, int]:
    """The bytes and the elements of all constants. Shared data, and data that one is expanded from, counts once."""
    found = {id(o.data): o for graph in model.subgraphs for o in graph.operands if o.data is not None}
    elements = sum(_elements(o.type) for o in found.values())
    places = [(o.data.place, o.type.nbytes) for o in found.values() if o.data is not None]
    size = sum(nbytes for place, nbytes in places if place is None)
    end = 0
    for start, stop in sorted(place for place, _ in places if place is not None):
        size += max(0, stop - max(start, end))
        end = max(end, stop)
    return size, min(elements, 2 * size)  # an element takes half a byte at least


def spend_operations(budget: Budget, subgraph: Subgraph) -> None:
    """Spend the steps for compiling a graph's operations and allocating its inputs and outputs."""
    count = len(subgraph.operations) + len(subgraph.inputs) + len(subgraph.outputs)
    budget.spend(OPERATION_STEPS * count, f"compiling {len(subgraph.operations)} operations")


def work_of(subgraph: Subgraph, backends: Sequence[Backend]) -> int:
    """The work of one run of a lowered graph, ignoring what is unknown before the run."""
    total = 0
    for operation, backend in zip(subgraph.operations, backends, strict=True):
        types = subgraph.types(operation)
        if backend.evaluates:
            total += work_of_evaluating(operation.op, types)
        else:
            total += native_work(operation.op, types)
    return total


def native_work(op: Op, types: CallTypes) -> int:
    """The work of one run of an operation in native code."""
    found = cost(op, types)
    lanes = [2 * LANES // (t.shape[-1] or 1) - 1 for t in types.outputs if t.rank]
    idle = reduce(maximum, lanes) if lanes else 1
    quick = where_greater(idle, 1, 1, where_greater(found.flops, LANES * found.nbytes, PRODUCTS, 1))
    products: int = maximum(1, idle) * found.flops // quick
    return COMMAND_WORK + products + MOVED_BYTE_WORK * found.nbytes


def is_metered(subgraph: Subgraph) -> bool:
    """Whether the cost of a run is known only at run time: there are tensors of unknown size or calls of subgraphs."""
    return any(operation.op.subgraphs for operation in subgraph.operations) or any(
        not operand.type.is_static or operand.type.dtype.is_handle for operand in subgraph.operands
    )


def memory_of(subgraph: Subgraph, backends: Sequence[Backend], arenas: Iterable[ArenaPlan]) -> int:
    """The bytes that one execution of a lowered graph needs: arenas, inputs and outputs with the callers' copies,
    variables, tensors that last until the end of a run, and NumPy's temporaries."""
    variables = sum(_bytes(operand.type) for operand in subgraph.operands if operand.variable)
    variables += sum(_bytes(subgraph.type(operand)) for operand in subgraph.lasting)
    evaluated = 0
    for operation, backend in zip(subgraph.operations, backends, strict=True):
        if backend.evaluates:
            found = subgraph.types(operation)
            temporaries = sum(_widened(t) for t in (*found.inputs, *found.outputs) if t is not None)
            evaluated = max(evaluated, 2 * temporaries)
    return io_bytes(subgraph) + variables + evaluated + sum(plan.size for plan in arenas)


def io_bytes(subgraph: Subgraph) -> int:
    """The bytes of a graph's inputs and outputs, and of their copies."""
    return 2 * sum(_bytes(subgraph.type(i)) for i in {*subgraph.inputs, *subgraph.outputs})


def _bytes(type_: TensorType) -> int:
    return type_.dtype.itemsize * _elements(type_)


def _widened(type_: TensorType) -> int:
    """The bytes of a tensor while NumPy computes with it: narrower elements are first widened to 32 bits."""
    return max(type_.dtype.itemsize, 4) * _elements(type_)


def _elements(type_: TensorType) -> int:
    """The number of elements, with unknown and empty dimensions as 1: NumPy may work as long on an empty array."""
    return prod(dimension or 1 for dimension in type_.shape)
