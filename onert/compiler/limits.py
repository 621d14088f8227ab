"""What compiling and running a model may take: work, memory and arithmetic, in proportion to the model.

A model of a few hundred bytes can ask for a tensor of a terabyte, or for arithmetic that takes a year. Models that
people made stay far below these limits, for their constants grow with what they compute. Users who know better raise
them (`max_memory`, `max_work`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from onert.backend import ArenaPlan, Backend
from onert.backend.program import WORK_OF_AN_EVALUATED_BYTE, WORK_OF_AN_EVALUATION
from onert.ir import CompileError, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.cost import cost
from onert.ir.process.budget import Budget
from onert.ir.value import Value

from .options import Options

MEMORY, MEMORY_PER_BYTE = 512 << 20, 1024
WORK, WORK_PER_BYTE = 100_000_000_000, 4_000_000
STEPS, STEPS_PER_BYTE = 2_000_000, 0.25
STEPS_PER_OPERATION = 1000
"""Of the largest subgraph: each of its operations has results of its own, so that a file cannot repeat them for nothing
as it can repeat whole subgraphs."""

STEPS_OF_AN_OPERATION = 200
WORK_OF_A_COMMAND = 2_500
"""Arithmetic that takes as long as beginning an operation of native code."""
WORK_OF_A_BYTE = 10
"""Arithmetic that takes as long as moving a byte."""
EVALUATED_ARITHMETIC = 20
"""How much longer arithmetic takes there."""


@frozen
class Limits(Value):
    """The most bytes that one execution may need beside its constants, and the most work of one run.

    Work is counted in additions and multiplications; what moves bytes counts as the arithmetic that takes as long.
    """

    memory: int
    work: int


def steps(model: Subgraphs) -> Budget:
    """The steps in which a model may be compiled."""
    largest = max(len(graph.operations) for graph in model.subgraphs)
    own = STEPS_PER_OPERATION * largest + STEPS_PER_BYTE * constant_bytes(model.subgraphs)
    return Budget(int(STEPS + own), CompileError)


def limits(model: Subgraphs, options: Options, growth: float) -> Limits:
    """The limits for a model whose inputs the user made so many times larger than the file has them."""
    size = constant_bytes(model.subgraphs)
    scale = max(1.0, growth) ** 2  # attention grows with the square of its input
    memory = options.max_memory or int(scale * (MEMORY + MEMORY_PER_BYTE * size))
    return Limits(memory, options.max_work or int(scale * (WORK + WORK_PER_BYTE * size)))


def constant_bytes(subgraphs: Iterable[Subgraph]) -> int:
    """The bytes of all constants, each counted once however many operands it is."""
    found = {id(o.data): o.type.nbytes for graph in subgraphs for o in graph.operands if o.data is not None}
    return sum(found.values())


def input_bytes(subgraph: Subgraph) -> int:
    """The bytes of a graph's inputs, unknown dimensions taken for 1."""
    return sum(_bytes(subgraph.type(i)) for i in subgraph.inputs)


def spend_operations(budget: Budget, subgraph: Subgraph) -> None:
    """Take off what compiling the operations of a graph, and giving its inputs and outputs places, takes."""
    many = len(subgraph.operations) + len(subgraph.inputs) + len(subgraph.outputs)
    budget.spend(STEPS_OF_AN_OPERATION * many, f"compiling {len(subgraph.operations)} operations")


def work_of(subgraph: Subgraph, backends: Sequence[Backend]) -> int:
    """The work of one run of a lowered graph; what is not known before the run counts nothing."""
    total = 0
    for operation, backend in zip(subgraph.operations, backends, strict=True):
        found = cost(operation.op, subgraph.types(operation))
        if backend.evaluates:
            total += EVALUATED_ARITHMETIC * found.flops + WORK_OF_AN_EVALUATED_BYTE * found.nbytes
            total += WORK_OF_AN_EVALUATION
        else:
            total += WORK_OF_A_COMMAND + found.flops + WORK_OF_A_BYTE * found.nbytes
    return total


def is_metered(subgraph: Subgraph) -> bool:
    """Whether only a run tells what it takes: tensors of unknown size, and calls of subgraphs."""
    return any(operation.op.subgraphs for operation in subgraph.operations) or any(
        not operand.type.is_static or operand.type.dtype.is_handle for operand in subgraph.operands
    )


def memory_of(subgraph: Subgraph, backends: Sequence[Backend], arenas: Iterable[ArenaPlan]) -> int:
    """The bytes that one execution of a lowered graph needs: arenas, inputs and outputs, which callers have copies of,
    and what NumPy needs beside its results."""
    ends = 2 * sum(_bytes(subgraph.type(i)) for i in {*subgraph.inputs, *subgraph.outputs})
    variables = sum(_bytes(operand.type) for operand in subgraph.operands if operand.variable)
    evaluated = 0
    for operation, backend in zip(subgraph.operations, backends, strict=True):
        if backend.evaluates:
            found = subgraph.types(operation)
            evaluated = max(evaluated, 2 * sum(_bytes(t) for t in (*found.inputs, *found.outputs) if t is not None))
    return ends + variables + evaluated + sum(plan.size for plan in arenas)


def _bytes(type_: TensorType) -> int:
    total = type_.dtype.itemsize
    for dimension in type_.shape:
        total *= dimension or 1  # NumPy takes as much for an array that is empty in one dimension
    return total
