"""Gated recurrent units in float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.ops.recurrent.recurrent import why_no_layer
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.kernels.recurrent.division import progress_bytes
from onert_llvm.kernels.recurrent.gru_f32 import GruF32
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.bfloat.layers import rounded_bytes

from .division import after, clear, copy_rows, divided
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
    flops = 2 * batch * 3 * isa.whole(units) * units
    division = divided(units, flops, lowering)
    width, own = 3 * division.whole, 3 * division.padded

    def gates(array: Array) -> Array:
        """The gates' parts of the last axis."""
        return side_by_side(np.split(array, 3, axis=-1), isa, division)

    recurrent = needed(state_weights)
    matrix, slots = matrix_f32(lowering, "recurrent", gates(recurrent.T), division.parts)
    sizes = [4 * batch * steps * width, 4 * batch * own, rounded_bytes(lowering, batch * steps, depth)]
    if division.divides:
        sizes[1] *= lowering.callers
        # All outputs are needed, even if only the last are wanted.
        sizes += [progress_bytes(division.parts), 0 if op.return_sequences else 4 * steps * batch * units]
    given, room, pairs, *shares = lowering.scratch(*sizes)
    given_bias = None if bias is None else gates(bias)
    rows_times(lowering, at, x, gates(needed(weights).T), given_bias, given, pairs, 3 * isa.whole(units))
    from_zero = bool(np.isfinite(recurrent).all()) and is_zero(lowering, h)
    algorithm = GruF32(matrix, is_symbolic(batch) or batch > 1, from_zero, division.divides)
    start = np.zeros(3 * units, np.float32) if state_bias is None else state_bias
    slots |= {
        "given": given.pointer,
        "given_item": width,
        "given_step": batch * width,
        "y_item": units,
        "y_step": batch * units if op.return_sequences or division.divides else 0,
        "steps": steps,
        "outputs": units,
        "padded": division.padded,
        "scratch": room.pointer,
        "room": own,
        "bias": lowering.constant(gates(start)),
    }
    reads, writes, touched = {"h": h}, {"y": operation.outputs[0]}, [evolve(given, write=False), room]
    if division.divides:
        progress, outputs = shares
        clear(lowering, at, progress)
        slots |= {"progress": progress.pointer, "parts": division.parts, "items": batch}
        touched.append(progress)
        if not op.return_sequences:
            slots["y"], writes = outputs.pointer, {}
            touched.append(outputs)
    shared(lowering, at, algorithm, batch, division, reads, writes, slots, flops * (steps - from_zero), touched)
    if division.divides and not op.return_sequences:
        last = after(outputs.pointer, 4 * (steps - 1) * batch * units)
        copy_rows(lowering, at, (last, 4 * units, evolve(outputs, write=False)), operation.outputs[0], batch, 4 * units)
