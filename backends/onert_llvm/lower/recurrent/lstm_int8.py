"""Byte long short-term memory layers with 16-bit gates: the input products at once, then step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.fixed_point import Multiplier
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_integer import GATE_SCALE, multiplier, power_of_two, stored_clip
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.ops.recurrent.recurrent import why_no_layer
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.recurrent.lstm import Lstm
from onert_llvm.kernels.recurrent.lstm_int8 import LstmInt8, ScaledSums
from onert_llvm.kernels.recurrent.matvec import Matrix
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import rows_of
from onert_llvm.lower.contraction.int8_gemm import byte_contraction, byte_product
from onert_llvm.schedule.cost_model import product_tile
from onert_llvm.schedule.weight_packing import folded_bias, pack_columns

from .lstm import GATES, STATES, Layer
from .lstm import lower as lower_layer
from .weights import matrix_int8, side_by_side

_FIVE = 5
"""The number of intermediates of the form with 16-bit gates."""


def why_not(op: LSTM, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    if types.input(0).dtype is not DType.INT8 or len(op.intermediates) != _FIVE:
        return "only int8 with 16-bit gates is native"
    if any(t is not None for t in types.inputs[20:]):
        return "normalised gates of integers are not native"
    return why_no_layer(types, STATES)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower a layer over a sequence."""
    lower_layer(lowering, operations, _Integers)


class _Integers(Layer):
    """Byte weights for byte inputs and outputs."""

    def given(self, at: int, x: int, sizes: Sequence[int]) -> Sequence[Access]:
        own = self.lowering.scratch(*sizes)
        lowering, isa = self.lowering, self.lowering.isa
        weights, columns = self._inputs(x)
        depth, n = weights.shape
        m = math.prod(lowering.shape(x)) // depth
        tile = product_tile(m, n, depth, isa, integer=True)
        product = byte_product(lowering, m, weights[None], tile, depth)
        rows, slots = rows_of(lowering.operand(x), depth)
        slots |= {**product.slots, "c": own[0].pointer, "columns": columns}
        algorithm = byte_contraction(isa, tile, rows, depth, ScaledSums(), far=False)
        lowering.emit(at, algorithm, slots, product.tiles, (x,), (), 2 * m * n * depth, (own[0],))
        return own

    def inputs(self, x: int) -> tuple[Matrix, dict[str, Slot]]:
        weights, columns = self._inputs(x)
        matrix, slots = matrix_int8(self.lowering, "weights", weights)
        return matrix, slots | {"input_columns": columns}

    def _inputs(self, x: int) -> tuple[Array, Pointer]:
        """The input weights, and their columns' parameters."""
        isa = self.lowering.isa
        weights = side_by_side([needed(self.found.weights[i]).T for i in self.gates], isa)
        bias = side_by_side([needed(self.found.bias[i]) for i in self.gates], isa)
        return weights, self._columns(weights, bias, self.lowering.type(x), self.kinds.weights)

    def _columns(
        self, weights: Array, bias: Array | None, source: TensorType, kinds: Sequence[TensorType | None]
    ) -> Pointer:
        """The parameters of all gates' columns, for a product with `source`."""
        isa = self.lowering.isa
        found = [multiplier(_product(needed(kinds[i]), source) / np.float32(GATE_SCALE)) for i in self.gates]
        width = weights.shape[1] // len(self.gates)
        each = [np.repeat([getattr(f, name) for f in found], width) for name in ("mantissa", "shift")]
        start = folded_bias(weights, bias, source.zero_point, 0, isa, True)
        return self.lowering.constant(pack_columns(Scaling.WIDE, start, (each[0], each[1]), 0, isa))

    def kernel(self) -> tuple[Lstm, dict[str, Slot]]:
        lowering, op, found = self.lowering, self.op, self.found
        h, c, between = self.types.input(18), self.types.input(19), op.intermediates[4]
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
        peeping, bounded = found.peephole[3] is not None, slots["cell_clip"] != 0
        kinds = (found.coupled, peeping, projection, bounded, clipped)
        return LstmInt8(recurrent, *kinds, rests=self.rests, exponent=exponent), slots

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
