"""Float long short-term memory layers with byte weights: vectors are quantised on the fly (dynamic range)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.dynamic_range import filter_values
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.ops.recurrent.recurrent import EIGHT_BITS, real, why_no_layer
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.kernels.contraction.epilogue import ACC, Epilogue
from onert_llvm.kernels.recurrent.matvec import Bytes, Matrix
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.dynamic_range_conv_fc import columns, multiply
from onert_llvm.lower.contraction.epilogue import EpilogueTask
from onert_llvm.lower.contraction.quantized_rows import quantize
from onert_llvm.lower.elementwise.op_to_expression import activated

from .lstm import STATES
from .lstm import lower as lower_layer
from .lstm_float import Floats
from .weights import matrix_int8, side_by_side


def why_not(op: LSTM, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    if types.input(0).dtype is not DType.FLOAT32 or types.input(4).dtype not in EIGHT_BITS:
        return "only float32 with byte weights is native"
    if any(t is not None for t in types.inputs[20:]):
        return "normalised gates with byte weights are not native"
    if any(t is not None and t.rank == 1 for t in types.inputs[5:9]):
        return "diagonal weights beside byte weights are not native"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return why_no_layer(types, STATES)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower a layer over a sequence."""
    lower_layer(lowering, operations, _Quantizing)


class _Quantizing(Floats):
    """A layer whose weights are multiplied by vectors that are quantised first."""

    bytes_beside = True
    by_steps = False  # rows of inputs are quantised together

    @property
    def quantized(self) -> Bytes:
        return Bytes(self.op.asymmetric_inputs)

    def given(self, at: int, x: int, sizes: Sequence[int]) -> Sequence[Access]:
        lowering, isa = self.lowering, self.lowering.isa
        weights, scales = self._gates(self.found.weights, self.kinds.weights)
        depth = weights.shape[0]
        rows = math.prod(lowering.shape(x)) // depth
        source = quantize(lowering, at, x, rows, 0, self.op.asymmetric_inputs, *sizes)
        given = source.more[0]
        bias = lowering.constant(side_by_side([needed(self.found.bias[i]) for i in self.gates], isa))
        epilogue = Epilogue(bias=True)
        slots: dict[str, Slot] = {"bias": bias, **columns(lowering, weights[None], scales)}
        after = EpilogueTask(epilogue, slots, (), given.pointer, (), (given,))
        multiply(
            lowering,
            at,
            source,
            weights[None],
            after,
            Dynamic(epilogue, self.op.asymmetric_inputs),
            (rows, depth),
            None,
        )
        return source.more

    def recurrent(self) -> tuple[Matrix, dict[str, Slot]]:
        return self._matrix("recurrent", *self._gates(self.found.recurrent, self.kinds.recurrent))

    def projection(self, weights: Array) -> tuple[Matrix, dict[str, Slot]]:
        return self._matrix("projection", *self._side_by_side([weights], [self.kinds.projection]))

    def peephole(self, gate: int, weights: Array) -> Array:
        return real(weights, self.kinds.peephole[gate])

    def _matrix(self, name: str, ordered: Array, scales: Array) -> tuple[Matrix, dict[str, Slot]]:
        matrix, slots = matrix_int8(self.lowering, name, ordered)
        own = columns(self.lowering, ordered[None], scales)
        return matrix, slots | {f"{name}_sums": own["sums"], f"{name}_scales": own["filter_scales"]}

    def _gates(self, weights: Sequence[Array | None], kinds: Sequence[TensorType | None]) -> tuple[Array, Array]:
        return self._side_by_side([weights[i] for i in self.gates], [kinds[i] for i in self.gates])

    def _side_by_side(self, weights: Sequence[Array | None], kinds: Sequence[TensorType | None]) -> tuple[Array, Array]:
        """Matrices as signed bytes, a column for each row, and the scale of each column."""
        isa = self.lowering.isa
        turned = [filter_values(needed(w)).T for w in weights]
        scales = [
            np.full(isa.whole(w.shape[1]), needed(k).scale, np.float32) for w, k in zip(turned, kinds, strict=True)
        ]
        return side_by_side(turned, isa), np.concatenate(scales)
