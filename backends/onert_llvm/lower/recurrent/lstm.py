"""Long short-term memory layers: what depends on the inputs for all steps at once, then step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from attrs import evolve, frozen

from onert.ir import Array, Operation, TensorType
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_parts import Parts, needed, parts
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.recurrent.lstm import CELL, FORGET, INPUT, OUTPUT, Lstm
from onert_llvm.kernels.recurrent.matvec import Matrix
from onert_llvm.lower.command_builder import Lowering

from .weights import whole

GATES = (INPUT, FORGET, CELL, OUTPUT)
"""In the order of `Parts`."""

STATES = (0, 18, 19)
"""The operands that change from run to run: input, output state and cell state."""


@frozen
class Sequences(Value):
    """How a sequence lies in memory: its steps, the batch, and how far rows are apart, in rows."""

    steps: int
    batch: int
    step: int
    item: int


def sequences(shape: Sequence[int], time_major: bool) -> Sequences:
    """The layout of a tensor `[batch, time, size]`, with `time_major` `[time, batch, size]`, or of one step."""
    if len(shape) == 2:
        return Sequences(1, shape[0], shape[0], 1)
    if time_major:
        return Sequences(shape[0], shape[1], shape[1], 1)
    return Sequences(shape[1], shape[0], 1, shape[1])


def elements(lowering: Lowering, operands: Sequence[int | None]) -> list[Array | None]:
    """The elements of constants, None for those that are absent."""
    return [None if i is None else lowering.elements(i) for i in operands]


class Layer(ABC):
    """A layer's constants, as its kernels read them."""

    bytes_beside = False
    """Whether the kernel of the steps puts vectors down as bytes."""

    def __init__(self, lowering: Lowering, operation: Operation, op: LSTM) -> None:
        self.lowering, self.op, self.types = lowering, op, lowering.subgraph.types(operation)
        operands = (*operation.inputs, *(None,) * (24 - len(operation.inputs)))
        kinds = (*self.types.inputs, *(None,) * (24 - len(operation.inputs)))
        self.found: Parts[Array] = parts(elements(lowering, operands[1:18]), elements(lowering, operands[20:24]))
        self.kinds: Parts[TensorType] = parts(kinds[1:18])
        self.gates = [i for i in range(4) if self.found.weights[i] is not None]
        self.cells = len(needed(self.found.weights[3]))

    @property
    def by_steps(self) -> bool:
        """Whether inputs are multiplied step by step."""
        return self.lowering.isa.small

    @property
    def rests(self) -> tuple[int, int, int]:
        """The number of inputs, outputs and cells modulo the target's group."""
        depth, outputs = needed(self.found.weights[3]).shape[-1], needed(self.found.recurrent[3]).shape[-1]
        group = self.lowering.isa.group
        return depth % group, outputs % group, self.cells % group

    def together(self, batch: int) -> int:
        """How many items of a batch meet the weights of the state together."""
        return 1

    @abstractmethod
    def kernel(self) -> tuple[Lstm, dict[str, Slot]]:
        """The kernel that the layer's parts ask for, and the slots that hold them."""

    @abstractmethod
    def given(self, at: int, x: int, sizes: tuple[int, int]) -> tuple[Access, Access]:
        """The command for what depends on the inputs, in scratch memory; and memory of another size beside it."""

    @abstractmethod
    def inputs(self, x: int) -> tuple[Matrix, dict[str, Slot]]:
        """All gates' weights from the inputs, which the kernel of the steps multiplies itself."""


def lower(lowering: Lowering, operations: Sequence[int], kind: type[Layer]) -> None:
    """A layer over a sequence."""
    at, operation, op = lowering.single(operations, LSTM)
    layer = kind(lowering, operation, op)
    x, h, c = (needed(operation.inputs[i]) for i in STATES)
    layout = sequences(lowering.shape(x), op.time_major)
    cells, isa = layer.cells, lowering.isa
    padded = whole(cells, isa)
    width = len(layer.gates) * padded
    outputs = lowering.shape(operation.outputs[0])[-1]
    own = width + 2 * padded + (whole(-(-max(outputs, cells) // 4), isa) if layer.bytes_beside else 0)
    algorithm, slots = layer.kernel()
    items = layer.together(layout.batch)
    others = items > 1 and (is_symbolic(layout.batch) or layout.batch % items != 0)
    algorithm = evolve(algorithm, together=items, others=others)
    if layer.by_steps:
        (room,) = touched = lowering.scratch(4 * layout.batch * own)
        matrix, more = layer.inputs(x)
        algorithm = evolve(algorithm, inputs=matrix)
        depth = lowering.shape(x)[-1]
        slots |= more | {"depth": depth, "x_item": layout.item * depth, "x_step": layout.step * depth}
    else:
        given, room = layer.given(at, x, (4 * layout.batch * layout.steps * width, 4 * layout.batch * own))
        slots |= {
            "given": given.pointer,
            "given_item": layout.item * width,
            "given_step": layout.step * width,
        }
        touched = (evolve(given, write=False), room)
    y, h_out, c_out = operation.outputs
    slots |= {
        "y_item": layout.item * outputs,
        "y_step": layout.step * outputs,
        "items": layout.batch,
        "steps": layout.steps,
        "cells": cells,
        "padded": padded,
        "outputs": outputs,
        "scratch": room.pointer,
        "room": own,
    }
    reads = {"h": h, "c": c, **({"x": x} if layer.by_steps else {})}
    writes = {"y": y, "h_out": h_out, "c_out": c_out}
    used = {name: slots[name] for name in algorithm.slots if name not in reads and name not in writes}
    flops = 2 * layout.steps * layout.batch * width * outputs
    lowering.run(at, algorithm, -(-layout.batch // items), reads, writes, used, flops, touched)
