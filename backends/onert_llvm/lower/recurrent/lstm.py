"""Long short-term memory layers: the input products of all steps at once, then the recurrence step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, Operation, TensorType
from onert.ir.op import with_absent
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_parts import Parts, needed, parts
from onert.ir.symbolic.trace import is_symbolic, minimum
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.recurrent.division import progress_bytes
from onert_llvm.kernels.recurrent.lstm import CELL, FORGET, INPUT, OUTPUT, Lstm
from onert_llvm.kernels.recurrent.matvec import Matrix
from onert_llvm.kernels.recurrent.recurrence import Recurrence
from onert_llvm.lower.command_builder import Lowering

from .division import Division, after, clear, copy_rows, divided, undivided

GATES = (INPUT, FORGET, CELL, OUTPUT)
"""The gates, in the order of `Parts`."""

STATES = (0, 18, 19)
"""The operands that change from run to run: input, output state and cell state."""


@frozen
class Sequences(Value):
    """The layout of a sequence: steps, batch, and the distances of steps and of batch items, in rows."""

    steps: int
    batch: int
    step: int
    item: int


def sequences(shape: Sequence[int], time_major: bool) -> Sequences:
    """The layout of a tensor `[batch, time, size]`, `[time, batch, size]` with `time_major`, or of a single step."""
    if len(shape) == 2:
        return Sequences(1, shape[0], shape[0], 1)
    if time_major:
        return Sequences(shape[0], shape[1], shape[1], 1)
    return Sequences(shape[1], shape[0], 1, shape[1])


def elements(lowering: Lowering, operands: Sequence[int | None]) -> list[Array | None]:
    """The elements of constants, None for those that are absent."""
    return [None if i is None else lowering.elements(i) for i in operands]


class Layer(ABC):
    """A layer's constants, in the form that its kernels read."""

    bytes_beside = False
    """Whether the kernel of the steps also stores vectors as bytes."""

    def __init__(self, lowering: Lowering, operation: Operation, op: LSTM) -> None:
        self.lowering, self.op, self.types = lowering, op, lowering.subgraph.types(operation)
        operands, kinds = with_absent(operation.inputs, 24), with_absent(self.types.inputs, 24)
        self.found: Parts[Array] = parts(elements(lowering, operands[1:18]), elements(lowering, operands[20:24]))
        self.kinds: Parts[TensorType] = parts(kinds[1:18])
        self.gates = [i for i in range(4) if self.found.weights[i] is not None]
        self.cells = len(needed(self.found.weights[3]))
        self.division = undivided(self.cells, lowering)

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

    @property
    def in_floats(self) -> bool:
        """Whether weights and sums are floats, and the input products of all steps are computed first."""
        return False

    @property
    def divisible(self) -> bool:
        """Whether the units may be divided among threads."""
        return False

    @abstractmethod
    def kernel(self) -> tuple[Lstm, dict[str, Slot]]:
        """The kernel for the layer's parts, and the slots that hold them."""

    @abstractmethod
    def given(self, at: int, x: int, sizes: Sequence[int]) -> Sequence[Access]:
        """Emit the input products into scratch memory of the first size; returns it, and memory of the other sizes."""

    @abstractmethod
    def inputs(self, x: int) -> tuple[Matrix, dict[str, Slot]]:
        """The input weights of all gates, if the kernel of the steps multiplies them itself."""


def is_zero(lowering: Lowering, operand: int) -> bool:
    """Whether all elements are known to be 0."""
    graph = lowering.subgraph
    maker = graph.definitions.get(operand)
    if maker is not None and isinstance(graph.operations[maker].op, Fill):
        operand = graph.operations[maker].used[1]
    return graph.operands[operand].is_constant and not lowering.elements(operand).any()


def shared(
    lowering: Lowering,
    at: int,
    algorithm: Recurrence,
    batch: int,
    division: Division,
    reads: dict[str, int],
    writes: dict[str, int],
    slots: dict[str, Slot],
    flops: int,
    accesses: Sequence[Access],
) -> None:
    """Emit the command of the steps. Items that advance together are divided among threads once."""
    tiles, parts = batch, minimum(batch, lowering.threads) if algorithm.together else None
    if division.divides:
        tiles = parts = division.parts
    found = slots | {name: lowering.operand(i) for name, i in (reads | writes).items()}
    ends = [*reads.values()], [*writes.values()]
    lowering.emit(at, algorithm, found, tiles, *ends, flops, accesses, parts)


def lower(lowering: Lowering, operations: Sequence[int], kind: type[Layer]) -> None:
    """Lower a layer over a sequence."""
    at, operation, op = lowering.single(operations, LSTM)
    layer = kind(lowering, operation, op)
    x, h, c = (needed(operation.inputs[i]) for i in STATES)
    layout = sequences(lowering.shape(x), op.time_major)
    cells, isa = layer.cells, lowering.isa
    outputs = lowering.shape(operation.outputs[0])[-1]
    flops = 2 * layout.batch * len(layer.gates) * isa.whole(cells) * outputs
    if layer.divisible:
        layer.division = divided(cells, flops, lowering)
    division = layer.division
    padded, width = division.padded, len(layer.gates) * division.whole
    own = len(layer.gates) * padded
    if not division.divides:
        own += 2 * padded + (isa.whole(-(-max(outputs, cells) // 4)) if layer.bytes_beside else 0)
    algorithm, slots = layer.kernel()
    together = layer.in_floats and (is_symbolic(layout.batch) or layout.batch > 1)
    finite = all(np.isfinite(weights).all() for weights in layer.found.recurrent if weights is not None)
    from_zero = layer.in_floats and finite and is_zero(lowering, h)
    algorithm = evolve(algorithm, together=together, from_zero=from_zero, divided=division.divides)
    y, h_out, c_out = operation.outputs
    reads = {"h": h, "c": c, **({"x": x} if layer.by_steps else {})}
    writes = {"y": y, "h_out": h_out, "c_out": c_out}
    touched: Sequence[Access]
    if layer.by_steps:
        touched = lowering.scratch(4 * layout.batch * own)
        matrix, more = layer.inputs(x)
        algorithm = evolve(algorithm, inputs=matrix)
        depth = lowering.shape(x)[-1]
        slots |= more | {"depth": depth, "x_item": layout.item * depth, "x_step": layout.step * depth}
        room = touched[0]
    else:
        sizes = [4 * layout.batch * layout.steps * width, 4 * layout.batch * own]
        if division.divides:
            sizes[1] *= lowering.callers
            sizes += [progress_bytes(division.parts), 4 * (layout.steps + 1) * layout.batch * division.whole]
        given, room, *shares = layer.given(at, x, sizes)
        slots |= {
            "given": given.pointer,
            "given_item": layout.item * width,
            "given_step": layout.step * width,
        }
        touched = (evolve(given, write=False), room, *shares)
    slots |= {
        "y_item": layout.item * outputs,
        "y_step": layout.step * outputs,
        "steps": layout.steps,
        "cells": cells,
        "padded": padded,
        "outputs": outputs,
        "scratch": room.pointer,
        "room": own,
    }
    if division.divides:
        slots |= _shares(lowering, at, division, layout.batch, *shares)
        writes = {"y": y}
    used = {name: slots[name] for name in algorithm.slots if name not in reads and name not in writes}
    flops *= layout.steps - from_zero
    shared(lowering, at, algorithm, layout.batch, division, reads, writes, used, flops, touched)
    if division.divides:
        _last_step(lowering, at, layout, division, (cells, outputs), shares[1])


def _shares(
    lowering: Lowering, at: int, division: Division, batch: int, progress: Access, kept: Access
) -> dict[str, Slot]:
    """The slots that only a divided layer has; its progress is cleared."""
    clear(lowering, at, progress)
    return {
        "progress": progress.pointer,
        "parts": division.parts,
        "items": batch,
        "kept": kept.pointer,
        "kept_item": division.whole,
        "kept_step": batch * division.whole,
    }


def _last_step(
    lowering: Lowering, at: int, layout: Sequences, division: Division, sizes: tuple[int, int], kept: Access
) -> None:
    """Copy the outputs and the `kept` states of a divided layer's last step to its last two results."""
    y, h_out, c_out = lowering.operation(at).outputs
    cells, outputs = sizes
    last = lowering.operand(y, 4 * (layout.steps - 1) * layout.step * outputs)
    copy_rows(lowering, at, (last, 4 * layout.item * outputs, y), h_out, layout.batch, 4 * outputs)
    states = after(kept.pointer, 4 * layout.steps * layout.batch * division.whole)
    copy_rows(lowering, at, (states, 4 * division.whole, evolve(kept, write=False)), c_out, layout.batch, 4 * cells)
