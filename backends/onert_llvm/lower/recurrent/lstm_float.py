"""Long short-term memory layers in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.ops.recurrent.recurrent import why_no_layer
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.recurrent.lstm import Lstm
from onert_llvm.kernels.recurrent.lstm_f32 import LstmF32
from onert_llvm.kernels.recurrent.matvec import Bytes, Matrix
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.bfloat.layers import rounded_bytes
from onert_llvm.lower.elementwise.op_to_expression import activated

from .lstm import GATES, STATES, Layer
from .lstm import lower as lower_layer
from .weights import matrix_f32, rows_times, side_by_side


def why_not(op: LSTM, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for t in types.inputs):
        return "only float32 is native"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return why_no_layer(types, STATES)


class Floats(Layer):
    """Float weights; the base class of all weights that are multiplied by floats."""

    @property
    def quantized(self) -> Bytes | None:
        """How vectors become bytes, if they do."""
        return None

    def given(self, at: int, x: int, sizes: Sequence[int]) -> Sequence[Access]:
        *outer, depth = self.lowering.shape(x)
        *own, pairs = self.lowering.scratch(*sizes, rounded_bytes(self.lowering, math.prod(outer), depth))
        like = len(self.gates) * self.lowering.isa.whole(self.cells)
        rows_times(self.lowering, at, x, *self._inputs(), own[0], pairs, like)
        return own

    def inputs(self, x: int) -> tuple[Matrix, dict[str, Slot]]:
        weights, bias = self._inputs()
        matrix, slots = matrix_f32(self.lowering, "weights", weights)
        return matrix, slots | ({} if bias is None else {"input_bias": self.lowering.constant(bias)})

    def _inputs(self) -> tuple[Array, Array | None]:
        found = self.found
        bias = None if found.norm[3] is not None else self._by_gates([needed(found.bias[i]) for i in self.gates])
        return self._by_gates([needed(found.weights[i]).T for i in self.gates]), bias

    def _by_gates(self, arrays: Sequence[Array]) -> Array:
        return side_by_side(arrays, self.lowering.isa, self.division)

    def recurrent(self) -> tuple[Matrix, dict[str, Slot]]:
        """The recurrent weights of all gates, `[outputs, cells]` each."""
        each = [needed(self.found.recurrent[gate]) for gate in self.gates]
        weights = self._by_gates([np.diag(own) if own.ndim == 1 else own.T for own in each])
        return matrix_f32(self.lowering, "recurrent", weights, self.division.parts)

    def projection(self, weights: Array) -> tuple[Matrix, dict[str, Slot]]:
        return matrix_f32(self.lowering, "projection", side_by_side([weights.T], self.lowering.isa))

    def peephole(self, gate: int, weights: Array) -> Array:
        return weights

    @property
    def in_floats(self) -> bool:
        return not self.by_steps and self.quantized is None

    @property
    def divisible(self) -> bool:
        return self.in_floats and self.found.projection is None and self.found.norm[3] is None

    def kernel(self) -> tuple[Lstm, dict[str, Slot]]:
        op, found = self.op, self.found
        recurrent, slots = self.recurrent()
        vectors = {
            f"{kind}_{GATES[i]}": self.peephole(i, array) if kind == "peephole" else array
            for kind, arrays in (("peephole", found.peephole), ("norm", found.norm), ("bias", found.bias))
            for i, array in enumerate(arrays)
            if array is not None
        }
        slots |= {n: self.lowering.constant(self._by_gates([array])) for n, array in vectors.items()}
        if found.projection_bias is not None:
            slots["projection_bias"] = self.lowering.constant(side_by_side([found.projection_bias], self.lowering.isa))
        projection: Matrix | None = None
        if found.projection is not None:
            projection, more = self.projection(found.projection)
            slots |= more
        slots |= {"cell_clip": float(op.cell_clip), "output_clip": float(op.projection_clip)}
        activation = activated(ACC, op.activation)
        assert activation is not None
        algorithm = LstmF32(
            recurrent,
            found.coupled,
            found.peephole[3] is not None,
            projection,
            op.cell_clip > 0,
            op.projection_clip > 0 and projection is not None,
            rests=(0, 0, 0) if self.quantized is None else self.rests,
            activation=activation,
            normalized=found.norm[3] is not None,
            projection_bias=found.projection_bias is not None,
            quantized=self.quantized,
        )
        return algorithm, slots


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower a layer over a sequence."""
    lower_layer(lowering, operations, Floats)
