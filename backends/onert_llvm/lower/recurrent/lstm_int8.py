"""Long short-term memory layers of bytes with 16-bit gates: the inputs' part at once, then step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.fixed_point import Multiplier
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_integer import GATE_SCALE, multiplier, power_of_two, stored_clip
from onert.ir.ops.recurrent.lstm_parts import Parts, needed, parts
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.recurrent.lstm_int8 import LstmInt8, ScaledSums
from onert_llvm.kernels.recurrent.matvec import Matrix
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import rows_of
from onert_llvm.lower.contraction.int8_gemm import byte_contraction, byte_product
from onert_llvm.schedule.cost_model import product_tile
from onert_llvm.schedule.weight_packing import folded_bias, pack_columns

from .lstm_float import GATES, STATES, elements, sequences
from .recurrent_common import matrix_int8, own_slots, side_by_side, whole

_FIVE = 5
"""Intermediates of the form with 16-bit gates."""


def why_not(op: LSTM, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    if types.input(0).dtype is not DType.INT8 or len(op.intermediates) != _FIVE:
        return "only int8 with 16-bit gates is native"
    if any(t is not None and t.value is None for i, t in enumerate(types.inputs) if i not in STATES):
        return "the weights are not constant"
    if any(t is not None for t in types.inputs[20:]):
        return "normalised gates of integers are not native"
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return "a tensor has no elements" if any(0 in t.shape for t in present) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A layer over a sequence."""
    at, operation, op = lowering.single(operations, LSTM)
    layer = _Layer(lowering, op, lowering.subgraph.types(operation), operation.inputs)
    x, h, c = (needed(operation.inputs[i]) for i in STATES)
    layout = sequences(lowering.shape(x), op.time_major)
    isa, cells = lowering.isa, layer.cells
    padded, count = whole(cells, isa), len(layer.gates)
    width, room = count * padded, (count + 2) * padded
    rows = 0 if isa.small else layout.batch * layout.steps * width * 4
    given, scratch = lowering.scratch(rows, layout.batch * room * 4)
    algorithm, slots = layer.kernel()
    if isa.small:
        algorithm, more = layer.by_steps(algorithm, x)
        depth = lowering.shape(x)[-1]
        slots |= more | {"x_item": layout.item * depth, "x_step": layout.step * depth}
    else:
        layer.inputs(at, x, given)
    y, h_out, c_out = operation.outputs
    outputs = lowering.shape(y)[-1]
    slots |= {
        "given": given.pointer,
        "given_item": layout.item * width,
        "given_step": layout.step * width,
        "y_item": layout.item * outputs,
        "y_step": layout.step * outputs,
        "steps": layout.steps,
        "cells": cells,
        "padded": padded,
        "outputs": outputs,
        "scratch": scratch.pointer,
        "room": room,
    }
    ends = {"y": y, "h": h, "c": c, "h_out": h_out, "c_out": c_out}
    slots |= {name: lowering.operand(i) for name, i in ends.items()}
    own = own_slots(algorithm, slots)
    flops = 2 * layout.steps * layout.batch * width * outputs
    touched = (scratch,) if isa.small else (evolve(given, write=False), scratch)
    reads = (x, h, c) if isa.small else (h, c)
    lowering.emit(at, algorithm, own, layout.batch, reads, (y, h_out, c_out), flops, touched)


class _Layer:
    """A layer's constants, as its kernels read them."""

    def __init__(self, lowering: Lowering, op: LSTM, types: CallTypes, operands: Sequence[int | None]) -> None:
        some = (*operands, *(None,) * (24 - len(operands)))
        kinds = (*types.inputs, *(None,) * (24 - len(types.inputs)))
        self.lowering, self.op, self.types = lowering, op, types
        self.found: Parts[Array] = parts(elements(lowering, some[1:18]))
        self.kinds: Parts[TensorType] = parts(kinds[1:18])
        self.gates = [i for i in range(4) if self.found.weights[i] is not None]
        self.cells = len(needed(self.found.weights[3]))

    def inputs(self, at: int, x: int, target: Access) -> None:
        """The command for what depends on the inputs."""
        lowering, isa = self.lowering, self.lowering.isa
        weights, columns = self._inputs(x)
        depth, n = weights.shape
        m = math.prod(lowering.shape(x)) // depth
        tile = product_tile(m, n, depth, isa, integer=True)
        product = byte_product(lowering, m, weights[None], tile, depth)
        rows, slots = rows_of(lowering.operand(x), depth)
        slots |= {**product.slots, "c": target.pointer, "columns": columns}
        algorithm = byte_contraction(isa, tile, rows, depth, ScaledSums(), far=False)
        lowering.emit(at, algorithm, slots, product.tiles, (x,), (), 2 * m * n * depth, (target,))

    def by_steps(self, algorithm: LstmInt8, x: int) -> tuple[LstmInt8, dict[str, Slot]]:
        """The kernel with the inputs' part computed step by step, and its slots."""
        lowering = self.lowering
        weights, columns = self._inputs(x)
        matrix, slots = matrix_int8(lowering, "weights", weights)
        slots |= {"x": lowering.operand(x), "depth": len(weights), "input_columns": columns}
        return evolve(algorithm, inputs=matrix, input_rest=len(weights) % lowering.isa.group), slots

    def _inputs(self, x: int) -> tuple[Array, Pointer]:
        """The weights of the inputs, and their columns' parameters."""
        isa = self.lowering.isa
        weights = side_by_side([needed(self.found.weights[i]).T for i in self.gates], isa)
        bias = side_by_side([needed(self.found.bias[i]) for i in self.gates], isa)
        return weights, self._columns(weights, bias, self.lowering.type(x), self.kinds.weights)

    def _columns(
        self, weights: Array, bias: Array | None, source: TensorType, kinds: Sequence[TensorType | None]
    ) -> Pointer:
        """The parameters of all gates' columns for a product with `source`."""
        isa = self.lowering.isa
        found = [multiplier(_product(needed(kinds[i]), source) / np.float32(GATE_SCALE)) for i in self.gates]
        width = weights.shape[1] // len(self.gates)
        each = [np.repeat([getattr(f, name) for f in found], width) for name in ("mantissa", "shift")]
        start = folded_bias(weights, bias, source.zero_point, 0, isa, True)
        return self.lowering.constant(pack_columns(Scaling.WIDE, start, (each[0], each[1]), 0, isa))

    def kernel(self) -> tuple[LstmInt8, dict[str, Slot]]:
        """The kernel of the steps, and the slots that hold its constants."""
        lowering, op, found = self.lowering, self.op, self.found
        h, c, between = self.types.input(18), self.types.input(19), op.intermediates[4]
        group = lowering.isa.group
        weights = side_by_side([needed(found.recurrent[i]).T for i in self.gates], lowering.isa)
        recurrent, slots = matrix_int8(lowering, "recurrent", weights)
        exponent = needed(power_of_two(c.scale))
        hidden = multiplier(2.0**-15 / float(np.float32(between.scale)) * 2.0**-15)
        zero = between.zero_point if found.projection is None else -between.zero_point
        slots |= {
            "columns": self._columns(weights, None, h, self.kinds.recurrent),
            "hidden_zero": zero,
            "cell_clip": stored_clip(op.cell_clip, c.scale, 16),
            "output_clip": stored_clip(op.projection_clip, self.types.output.scale, 8),
        }
        slots |= _multiplier("hidden", hidden) | self._peepholes(exponent)
        projection: Matrix | None = None
        if found.projection is not None:
            projection, more = self._projection(found.projection)
            slots |= more
        clipped = op.projection_clip > 0 and slots["output_clip"] != 0 and projection is not None
        rests = (weights.shape[0] % group, self.cells % group)
        peeping, bounded = found.peephole[3] is not None, slots["cell_clip"] != 0
        return LstmInt8(recurrent, exponent, rests, found.coupled, peeping, projection, bounded, clipped), slots

    def _peepholes(self, exponent: int) -> dict[str, Slot]:
        slots: dict[str, Slot] = {}
        for i, array in enumerate(self.found.peephole):
            if array is not None:
                scale = 2.0**exponent * float(np.float32(needed(self.kinds.peephole[i]).scale)) / GATE_SCALE
                name = f"peephole_{GATES[i]}"
                slots[name] = self.lowering.constant(side_by_side([array.astype(np.int32)], self.lowering.isa))
                slots |= _multiplier(f"{name}_by", multiplier(scale))
        return slots

    def _projection(self, weights: Array) -> tuple[Matrix, dict[str, Slot]]:
        lowering, isa = self.lowering, self.lowering.isa
        h, between = self.types.input(18), self.op.intermediates[4]
        by = multiplier(
            np.float32(needed(self.kinds.projection).scale) * np.float32(between.scale) / np.float32(h.scale)
        )
        turned = side_by_side([weights.T], isa)
        bias = self.found.projection_bias
        wide = None if bias is None else side_by_side([bias], isa)
        start = folded_bias(turned, wide, -between.zero_point, 0, isa, True)
        one = (np.array([by.mantissa]), np.array([by.shift]))
        matrix, slots = matrix_int8(lowering, "projection", turned)
        columns = lowering.constant(pack_columns(Scaling.WIDE, start, one, 0, isa))
        return matrix, slots | {"projection_columns": columns, "output_zero": h.zero_point}


def _product(weight: TensorType, source: TensorType) -> np.float32:
    return np.float32(weight.scale) * np.float32(source.scale)


def _multiplier(name: str, by: Multiplier) -> dict[str, Slot]:
    """The slots of a multiplier."""
    return {f"{name}_mantissa": by.mantissa, f"{name}_left": max(by.shift, 0), f"{name}_right": max(-by.shift, 0)}
