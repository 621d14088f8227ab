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

    Inputs and outputs are in host memory; an operation's operands and results are in its backend's space. `apart` holds
    copies of inputs that outlive a run.
    """

    subgraph: Subgraph
    backends: tuple[Backend, ...]
    memories: Mapping[int, Memory]
    apart: frozenset[int] = frozenset()

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
        self.apart: set[int] = set()
        self.operands = list(subgraph.operands)
        self.memories: dict[int, Memory] = dict.fromkeys(range(len(subgraph.operands)), HOST)
        self.operations: list[Operation] = []
        self.backends: list[Backend] = []
        self.twins: dict[tuple[int, str], int] = {}

    def run(self, backends: Sequence[Backend]) -> Lowered:
        ends = frozenset(self.subgraph.outputs)
        if self.resident and any(backend.memory.name != HOST.name for backend in backends):
            self.memories |= self.homes([backend.memory for backend in backends])
        for operation, backend in zip(self.subgraph.operations, backends, strict=True):
            memory = backend.memory
            inputs = tuple(None if i is None else self.readable(i, memory) for i in operation.inputs)
            outputs = tuple(self.writable(o, memory, apart=o in ends) for o in operation.outputs)
            self.append(evolve(operation, inputs=inputs, outputs=outputs), backend)
            for made, wanted in zip(outputs, operation.outputs, strict=True):
                if made != wanted:
                    self.permute(made, wanted)
        state = tuple(
            StateUpdate(u.variable, self.readable(u.source, self.memories[u.variable])) for u in self.subgraph.state
        )
        lowered = evolve(self.subgraph, operands=tuple(self.operands), operations=tuple(self.operations), state=state)
        return Lowered(lowered, tuple(self.backends), self.memories, frozenset(self.apart))

    def homes(self, memories: Sequence[Memory]) -> dict[int, Memory]:
        """The space of each variable whose readers and whose new value's producer are all in that one space other than
        the host's. `memories` has the space of each operation."""
        graph = self.subgraph
        found: dict[int, Memory] = {}
        for update in graph.state:
            made = graph.definitions.get(update.source)
            held = graph.operands[update.variable].resource is not None  # stored in the execution's state
            if made is None or held or update.variable in (*graph.outputs, *graph.inputs):
                continue
            touching = [memories[at] for at in (made, *graph.uses.get(update.variable, ()))]
            plain = graph.type(update.variable).is_static and graph.type(update.variable) == graph.type(update.source)
            if plain and {memory.name for memory in touching} == {touching[0].name}:
                found[update.variable] = touching[0]
        several = Counter(update.variable for update in graph.state)
        return {variable: memory for variable, memory in found.items() if several[variable] == 1}

    def append(self, operation: Operation, backend: Backend) -> None:
        self.operations.append(operation)
        self.backends.append(backend)

    def readable(self, operand: int, memory: Memory) -> int:
        """The operand itself if it is in the space `memory`, otherwise its copy there."""
        if self.memories[operand].name == memory.name:
            return operand
        key = (operand, memory.name)
        if key not in self.twins:
            self.twins[key] = self.twin(operand, memory)
            if not self.operands[operand].is_constant:
                self.permute(operand, self.twins[key])
            if self.resident and memory.name != HOST.name and operand in self.subgraph.inputs:
                self.apart.add(self.twins[key])
        return self.twins[key]

    def writable(self, operand: int, memory: Memory, *, apart: bool) -> int:
        """The operand that an operation in the space `memory` writes for a result; a copy for outputs (`apart`)."""
        if memory.name == HOST.name:
            return operand
        if not apart:
            self.memories[operand] = memory
            return operand
        made = self.twin(operand, memory)
        self.twins[operand, memory.name] = made
        return made

    def twin(self, operand: int, memory: Memory) -> int:
        old = self.operands[operand]
        self.operands.append(Operand(old.type, old.name, old.data))
        self.memories[len(self.operands) - 1] = memory
        return len(self.operands) - 1

    def permute(self, source: int, target: int) -> None:
        op = Permute(self.memories[source].name, self.memories[target].name)
        where = f"permute of {self.subgraph.label(source if source < len(self.subgraph.operands) else target)}"
        if self.permuter is None:
            raise CompileError(
                f"{where} from {op.source} to {op.target} needs the backend 'builtin', which is not available"
            )
        self.append(Operation(op, (source,), (target,), where), self.permuter)
