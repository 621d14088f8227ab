"""Long short-term memory layers in float32: what depends on the inputs for all steps at once, then step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_parts import Parts, needed, parts
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.recurrent.lstm_f32 import CELL, FORGET, INPUT, OUTPUT, LstmF32
from onert_llvm.kernels.recurrent.matvec import Bytes, Matrix
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.bfloat.layers import rounded_bytes
from onert_llvm.lower.elementwise.op_to_expression import activated

from .recurrent_common import matrix_f32, own_slots, rows_times, side_by_side, whole

GATES = (INPUT, FORGET, CELL, OUTPUT)
"""In the order of `Parts`."""

STATES = (0, 18, 19)
"""The operands that change from run to run: input, output state and cell state."""


def why_not(op: LSTM, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    present = [t for t in types.inputs if t is not None]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if any(t is not None and t.value is None for i, t in enumerate(types.inputs) if i not in STATES):
        return "the weights are not constant"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return "a tensor has no elements" if any(0 in t.shape for t in (*present, *types.outputs)) else None


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


class Floats:
    """How the weights of a layer are multiplied: by floats."""

    def __init__(self, lowering: Lowering, op: LSTM, types: CallTypes) -> None:
        self.lowering = lowering

    @property
    def quantized(self) -> Bytes | None:
        """How vectors become bytes, where they do."""
        return None

    @property
    def by_steps(self) -> bool:
        """Whether inputs are multiplied step by step."""
        return self.lowering.isa.small

    def given(
        self, at: int, x: int, found: Parts[Array], gates: Sequence[int], sizes: tuple[int, int]
    ) -> tuple[Access, ...]:
        """The command for what depends on the inputs, in scratch memory; and memory of another size beside it."""
        *outer, depth = self.lowering.shape(x)
        given, room, pairs = self.lowering.scratch(*sizes, rounded_bytes(self.lowering, math.prod(outer), depth))
        rows_times(self.lowering, at, x, *self._inputs(found, gates), given, pairs)
        return given, room

    def inputs(self, x: int, found: Parts[Array], gates: Sequence[int]) -> tuple[Matrix, dict[str, Slot]]:
        """All gates' weights from the inputs, which the kernel of the steps multiplies itself."""
        weights, bias = self._inputs(found, gates)
        matrix, slots = matrix_f32(self.lowering, "weights", weights)
        slots |= {"x": self.lowering.operand(x), "depth": len(weights)}
        return matrix, slots | ({} if bias is None else {"input_bias": self.lowering.constant(bias)})

    def _inputs(self, found: Parts[Array], gates: Sequence[int]) -> tuple[Array, Array | None]:
        isa = self.lowering.isa
        bias = None if found.norm[3] is not None else side_by_side([needed(found.bias[i]) for i in gates], isa)
        return side_by_side([needed(found.weights[i]).T for i in gates], isa), bias

    def recurrent(self, found: Parts[Array], gates: Sequence[int]) -> tuple[Matrix, dict[str, Slot]]:
        """All gates' weights from the last output."""
        weights = side_by_side([_matrix(found, i) for i in gates], self.lowering.isa)
        return matrix_f32(self.lowering, "recurrent", weights)

    def projection(self, weights: Array) -> tuple[Matrix, dict[str, Slot]]:
        return matrix_f32(self.lowering, "projection", side_by_side([weights.T], self.lowering.isa))

    def peephole(self, gate: int, weights: Array) -> Array:
        return weights


def lower(lowering: Lowering, operations: Sequence[int], kind: type[Floats] = Floats) -> None:
    """A layer over a sequence."""
    at, operation, op = lowering.single(operations, LSTM)
    operands = (*operation.inputs, *(None,) * (24 - len(operation.inputs)))
    found = parts(elements(lowering, operands[1:18]), elements(lowering, operands[20:24]))
    x, h, c = (needed(operands[i]) for i in STATES)
    layout = sequences(lowering.shape(x), op.time_major)
    isa, cells = lowering.isa, len(needed(found.weights[3]))
    padded, gates = whole(cells, isa), [i for i in range(4) if found.weights[i] is not None]
    outputs = lowering.shape(operation.outputs[0])[-1]
    own = (len(gates) + 2) * padded + whole(-(-max(outputs, cells) // 4), isa)
    multiplying = kind(lowering, op, lowering.subgraph.types(operation))
    rows = layout.batch * layout.steps * len(gates) * padded
    width = len(gates) * padded
    algorithm, slots = _kernel(lowering, op, found, gates, multiplying)
    if multiplying.by_steps:
        (room,) = touched = lowering.scratch(4 * layout.batch * own)
        matrix, more = multiplying.inputs(x, found, gates)
        algorithm = evolve(algorithm, inputs=matrix)
        depth = lowering.shape(x)[-1]
        slots |= more | {"x_item": layout.item * depth, "x_step": layout.step * depth}
    else:
        given, room = multiplying.given(at, x, found, gates, (4 * rows, 4 * layout.batch * own))
        slots |= {
            "given": given.pointer,
            "given_item": layout.item * width,
            "given_step": layout.step * width,
        }
        touched = (evolve(given, write=False), room)
    y, h_out, c_out = operation.outputs
    slots |= {
        "y": lowering.operand(y),
        "y_item": layout.item * outputs,
        "y_step": layout.step * outputs,
        "h": lowering.operand(h),
        "c": lowering.operand(c),
        "h_out": lowering.operand(h_out),
        "c_out": lowering.operand(c_out),
        "steps": layout.steps,
        "cells": cells,
        "padded": padded,
        "outputs": outputs,
        "scratch": room.pointer,
        "room": own,
    }
    flops = 2 * layout.steps * layout.batch * width * outputs
    reads = (x, h, c) if multiplying.by_steps else (h, c)
    lowering.emit(at, algorithm, own_slots(algorithm, slots), layout.batch, reads, (y, h_out, c_out), flops, touched)


def _kernel(
    lowering: Lowering, op: LSTM, found: Parts[Array], gates: Sequence[int], multiplying: Floats
) -> tuple[LstmF32, dict[str, Slot]]:
    """The kernel that the layer's parts ask for, and the slots that hold them."""
    isa = lowering.isa
    recurrent, slots = multiplying.recurrent(found, gates)
    vectors = {
        f"{kind}_{GATES[i]}": multiplying.peephole(i, array) if kind == "peephole" else array
        for kind, arrays in (("peephole", found.peephole), ("norm", found.norm), ("bias", found.bias))
        for i, array in enumerate(arrays)
        if array is not None
    }
    if found.projection_bias is not None:
        vectors["projection_bias"] = found.projection_bias
    slots |= {name: lowering.constant(side_by_side([array], isa)) for name, array in vectors.items()}
    projection: Matrix | None = None
    if found.projection is not None:
        projection, more = multiplying.projection(found.projection)
        slots |= more
    slots |= {"cell_clip": float(op.cell_clip), "output_clip": float(op.projection_clip)}
    activation = activated(ACC, op.activation)
    assert activation is not None
    group, cells = isa.group, len(needed(found.weights[3]))
    outputs = needed(found.recurrent[3]).shape[-1]
    algorithm = LstmF32(
        recurrent,
        activation,
        found.coupled,
        found.peephole[3] is not None,
        found.norm[3] is not None,
        projection,
        found.projection_bias is not None,
        op.cell_clip > 0,
        op.projection_clip > 0 and projection is not None,
        multiplying.quantized,
        (0, 0) if multiplying.quantized is None else (outputs % group, cells % group),
    )
    return algorithm, slots


def _matrix(found: Parts[Array], gate: int) -> Array:
    """A gate's weights from the last output, `[outputs, cells]`."""
    own = needed(found.recurrent[gate])
    return np.diag(own) if own.ndim == 1 else own.T
