"""Gated recurrent units in float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.ops.recurrent.recurrent import why_no_layer
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.kernels.recurrent.gru_f32 import GruF32
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.bfloat.layers import rounded_bytes

from .lstm import elements, is_zero, shared
from .weights import matrix_f32, rows_times, side_by_side


def why_not(op: GRU, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    return why_no_layer(types, (0, 5))


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower a layer over a sequence: the input products of all steps at once, then the steps."""
    at, operation, op = lowering.single(operations, GRU)
    x, h = needed(operation.inputs[0]), needed(operation.inputs[5])
    steps, batch, depth = lowering.shape(x)
    weights, bias, state_weights, state_bias = elements(lowering, operation.inputs[1:5])
    units = lowering.shape(operation.outputs[0])[-1]
    isa = lowering.isa
    padded = isa.whole(units)
    width = 3 * padded

    def gates(array: Array) -> Array:
        """The gates' parts of the last axis, each padded to whole registers."""
        return side_by_side(np.split(array, 3, axis=-1), isa)

    recurrent = needed(state_weights)
    matrix, slots = matrix_f32(lowering, "recurrent", gates(recurrent.T))
    sizes = 4 * batch * steps * width, 4 * batch * width, rounded_bytes(lowering, batch * steps, depth)
    given, room, pairs = lowering.scratch(*sizes)
    rows_times(lowering, at, x, gates(needed(weights).T), None if bias is None else gates(bias), given, pairs)
    together = is_symbolic(batch) or batch > 1
    from_zero = bool(np.isfinite(recurrent).all()) and is_zero(lowering, h)
    start = np.zeros(3 * units, np.float32) if state_bias is None else state_bias
    slots |= {
        "given": given.pointer,
        "given_item": width,
        "given_step": batch * width,
        "y_item": units,
        "y_step": batch * units if op.return_sequences else 0,
        "steps": steps,
        "outputs": units,
        "padded": padded,
        "scratch": room.pointer,
        "room": width,
        "bias": lowering.constant(gates(start)),
    }
    flops = 2 * (steps - from_zero) * batch * width * units
    ends = {"h": h}, {"y": operation.outputs[0]}
    shared(lowering, at, GruF32(matrix, together, from_zero), batch, *ends, slots, flops, (given, room))
