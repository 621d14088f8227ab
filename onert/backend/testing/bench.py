"""A test bench for a sequence: tensors in the backend's own memory, surrounded by guard bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from attrs import evolve

from onert.backend.alone import Alone
from onert.backend.backend import Backend, Settings
from onert.backend.kernel import Sequence as OperationSequence
from onert.backend.memory import HOST, Memory
from onert.backend.queue import queue_of
from onert.backend.tensor import Tensor, Tensors
from onert.ir import Array, Context, Subgraph

GUARD = 256
"""The number of bytes before, between and after the tensors; a run must not change their pattern."""
_PATTERN = 0xA5


def in_turn(memory: Memory, call: Callable[[], None]) -> Callable[[], None]:
    """The call, ordered after all earlier work of the memory space and before its later copies."""
    own, copies = queue_of(call), queue_of(memory)
    if own is None or copies is None or own is copies:
        return call

    def run() -> None:
        own.follow(copies.record())
        call()
        copies.follow(own.record())

    return run


class Bench:
    """All operations of a subgraph as one sequence of a backend, generated and bound; a context manager."""

    def __init__(self, backend: Backend, subgraph: Subgraph, settings: Settings) -> None:
        self.backend = backend
        self.subgraph = subgraph
        self.memory = backend.memory
        whole = _sequence(subgraph)
        self.sequence = evolve(whole, groups=backend.fuse(whole, settings))
        self.unstored = {operand for group in self.sequence.groups for operand in group.unstored}
        self._offsets, self._size = self._layout()
        self._arena = self.memory.allocate(self._size)
        self.tensors = self._tensors()
        self.context: Context = Alone()
        self.kernel = backend.generate(self.sequence, settings)
        self.call: Callable[[], None] = self.kernel.bind(self.tensors, self.context)

    def _layout(self) -> tuple[Mapping[int, int], int]:
        offsets, at = {}, GUARD
        for operand in range(len(self.subgraph.operands)):
            if operand not in self.unstored:
                at += -at % self.memory.alignment
                offsets[operand] = at
                at += self.subgraph.type(operand).nbytes + GUARD
        return offsets, at

    def _tensors(self) -> Tensors:
        if self.memory.name == HOST.name:
            self._arena[:] = _PATTERN
        found = {}
        for operand, offset in self._offsets.items():
            type_ = self.subgraph.type(operand)
            data = self.subgraph.operands[operand].data
            if data is not None and self.memory.name == HOST.name:
                found[operand] = Tensor(type_, data.array)
                continue
            tensor = found[operand] = Tensor(type_, self.memory.view(self._arena, offset, type_), self.memory)
            if data is not None:
                tensor.assign(data.array)
        return Tensors(found)

    def run(self, inputs: Sequence[Array], call: Callable[[], None] | None = None) -> tuple[Array, ...]:
        """The outputs for these inputs."""
        for operand, array in zip(self.subgraph.inputs, inputs, strict=True):
            self.tensors[operand].assign(array)
        in_turn(self.memory, call or self.call)()
        return tuple(self.tensors[operand].array.copy() for operand in self.subgraph.outputs)

    def guards_hold(self) -> bool:
        """Whether nothing outside the tensors was written; always true if the memory is not the host's."""
        if self.memory.name != HOST.name:
            return True
        free = np.ones(self._size, np.bool_)
        for operand, offset in self._offsets.items():
            free[offset : offset + self.subgraph.type(operand).nbytes] = False
        return bool((np.asarray(self._arena)[: self._size][free] == _PATTERN).all())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.free(self._arena)


def _sequence(subgraph: Subgraph) -> OperationSequence:
    made = {o for operation in subgraph.operations for o in operation.outputs}
    read = dict.fromkeys(i for operation in subgraph.operations for i in operation.used if i not in made)
    return OperationSequence(
        subgraph, tuple(range(len(subgraph.operations))), tuple(read), tuple(dict.fromkeys(subgraph.outputs)), "kit"
    )
