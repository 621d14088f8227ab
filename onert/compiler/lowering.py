"""Lowering: assign operations to backends and operands to memory spaces, with permutes between spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import HOST, Backend, Memory
from onert.ir import CompileError, Operand, Operation, StateUpdate, Subgraph
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.value import Value


@frozen
class Lowered(Value):
    """A subgraph with a backend for every operation and a memory space for every operand.

    Inputs and outputs are in host memory; an operation's operands and results are in its backend's space.
    `resident_copies` holds copies of inputs that outlive a run.
    """

    subgraph: Subgraph
    backends: tuple[Backend, ...]
    memories: Mapping[int, Memory]
    resident_copies: frozenset[int] = frozenset()

    def updates_in_place(self, at: int) -> bool:
        """Whether the backend of an operation can update its operand in place."""
        return self.backends[at].updates_in_place

    def shares(self, a: int, b: int) -> bool:
        """Whether two operands may share memory: both are in host memory."""
        return self.memories[a].name == self.memories[b].name == HOST.name


def lower(subgraph: Subgraph, backends: Sequence[Backend], permuter: Backend | None, resident: bool = False) -> Lowered:
    """The subgraph with a permute, run by `permuter`, wherever an operand is read in a space other than its own.

    Backends with the same space exchange tensors directly. A constant is not permuted but duplicated once for every
    space that reads it. Variables are in host memory; with `resident`, a variable is in another space if all its
    readers and the operation that produces its new value are there.
    Raises CompileError if a permute is needed and there is no `permuter`.
    """
    return _Lowering(subgraph, permuter, resident).run(backends)


class _Lowering:
    def __init__(self, subgraph: Subgraph, permuter: Backend | None, resident: bool) -> None:
        self.subgraph = subgraph
        self.permuter = permuter
        self.resident = resident
        self.resident_copies: set[int] = set()
        self.operands = list(subgraph.operands)
        self.memories: dict[int, Memory] = dict.fromkeys(range(len(subgraph.operands)), HOST)
        self.operations: list[Operation] = []
        self.backends: list[Backend] = []
        self.copies: dict[tuple[int, str], int] = {}

    def run(self, backends: Sequence[Backend]) -> Lowered:
        graph_outputs = frozenset(self.subgraph.outputs)
        if self.resident and any(backend.memory.name != HOST.name for backend in backends):
            self.memories |= self.variable_spaces([backend.memory for backend in backends])
        for operation, backend in zip(self.subgraph.operations, backends, strict=True):
            memory = backend.memory
            inputs = tuple(None if i is None else self.readable(i, memory) for i in operation.inputs)
            outputs = tuple(self.writable(o, memory, is_output=o in graph_outputs) for o in operation.outputs)
            self.append(evolve(operation, inputs=inputs, outputs=outputs), backend)
            for written, result in zip(outputs, operation.outputs, strict=True):
                if written != result:
                    self.permute(written, result)
        state = tuple(
            StateUpdate(u.variable, self.readable(u.source, self.memories[u.variable])) for u in self.subgraph.state
        )
        lowered = evolve(self.subgraph, operands=tuple(self.operands), operations=tuple(self.operations), state=state)
        return Lowered(lowered, tuple(self.backends), self.memories, frozenset(self.resident_copies))

    def variable_spaces(self, memories: Sequence[Memory]) -> dict[int, Memory]:
        """The space of each variable whose readers and whose new value's producer are all in that one space other than
        the host's. `memories` has the space of each operation."""
        graph = self.subgraph
        found: dict[int, Memory] = {}
        for update in graph.state:
            producer = graph.definitions.get(update.source)
            is_resource = graph.operands[update.variable].resource is not None  # stored in the execution's state
            if producer is None or is_resource or update.variable in (*graph.outputs, *graph.inputs):
                continue
            spaces = [memories[at] for at in (producer, *graph.uses.get(update.variable, ()))]
            is_plain = graph.type(update.variable).is_static and graph.type(update.variable) == graph.type(
                update.source
            )
            if is_plain and {memory.name for memory in spaces} == {spaces[0].name}:
                found[update.variable] = spaces[0]
        update_counts = Counter(update.variable for update in graph.state)
        return {variable: memory for variable, memory in found.items() if update_counts[variable] == 1}

    def append(self, operation: Operation, backend: Backend) -> None:
        self.operations.append(operation)
        self.backends.append(backend)

    def readable(self, operand: int, memory: Memory) -> int:
        """The operand itself if it is in the space `memory`, otherwise its copy there."""
        if self.memories[operand].name == memory.name:
            return operand
        key = (operand, memory.name)
        if key not in self.copies:
            self.copies[key] = self.add_copy(operand, memory)
            if not self.operands[operand].is_constant:
                self.permute(operand, self.copies[key])
            if self.resident and memory.name != HOST.name and operand in self.subgraph.inputs:
                self.resident_copies.add(self.copies[key])
        return self.copies[key]

    def writable(self, operand: int, memory: Memory, *, is_output: bool) -> int:
        """The operand that an operation in the space `memory` writes for a result; a copy for outputs
        (`resident_copies`)."""
        if memory.name == HOST.name:
            return operand
        if not is_output:
            self.memories[operand] = memory
            return operand
        copy = self.add_copy(operand, memory)
        self.copies[operand, memory.name] = copy
        return copy

    def add_copy(self, operand: int, memory: Memory) -> int:
        old = self.operands[operand]
        self.operands.append(Operand(old.type, old.name, old.data))
        self.memories[len(self.operands) - 1] = memory
        return len(self.operands) - 1

    def permute(self, source: int, target: int) -> None:
        op = Permute(self.memories[source].name, self.memories[target].name)
        location = f"permute of {self.subgraph.label(source if source < len(self.subgraph.operands) else target)}"
        if self.permuter is None:
            raise CompileError(
                f"{location} from {op.source} to {op.target} needs the backend 'builtin', which is not available"
            )
        self.append(Operation(op, (source,), (target,), location), self.permuter)
