"""Layers in which every row selects its own weights."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.shape import num_elements
from onert.ir.types import CallTypes, TensorType


@frozen
class MixtureOfExperts(Op):
    """Mixture of experts: each row of `x` passes through the gated layers selected for it; their results are summed.

    Operands: `x`, float32, rows of `features`; `weights` (float32) and `indices` (int32), `chosen` expert weights and
    expert numbers for each row, where negative numbers count from the end; `gate` and `up`, float32 [hidden, experts,
    1, features]; `down`, float32 [features, experts, 1, hidden]; `scales`, float32, one per expert. Result: as `x`.

    An expert computes `down · (gelu(gate · row) * (up · row))`; its result is first multiplied by the expert's scale
    and by the row's weight for it.

    Source: LiteRT's custom operator `moe`, delegates/xnnpack/moe_delegate_kernel.cc.
    """

    experts: int
    chosen: int
    features: int
    hidden: int

    def infer(
        self,
        x: TensorType,
        weights: TensorType,
        indices: TensorType,
        gate: TensorType,
        up: TensorType,
        down: TensorType,
        scales: TensorType,
    ) -> TensorType:
        sizes = (self.experts, self.chosen, self.features, self.hidden)
        require(min(sizes) >= 1, f"experts, chosen ones, features and hidden features are {sizes}, expected at least 1")
        require(self.chosen <= self.experts, f"{self.chosen} experts are chosen, expected at most {self.experts}")
        for operand, name in ((x, "x"), (weights, "weights"), (gate, "gate"), (up, "up"), (down, "down")):
            require(operand.dtype is DType.FLOAT32, f"{name} is {operand.dtype.text}, expected f32")
        require(scales.dtype is DType.FLOAT32, f"scales are {scales.dtype.text}, expected f32")
        require(indices.dtype is DType.INT32, f"indices are {indices.dtype.text}, expected i32")
        matrix = self.experts * self.features * self.hidden
        for operand, name, count in (
            (gate, "gate", matrix),
            (up, "up", matrix),
            (down, "down", matrix),
            (scales, "scales", self.experts),
        ):
            _require_count(operand, name, count)
        total = num_elements(x.shape)
        if total is not None:
            require(total % self.features == 0, f"x has {total} elements, expected rows of {self.features}")
            for operand, name in ((weights, "weights"), (indices, "indices")):
                _require_count(operand, name, total // self.features * self.chosen)
        return x.result(x.shape)

    def flops(self, types: CallTypes) -> int:
        rows = (num_elements(types.input(0).shape) or 0) // self.features
        return 6 * rows * self.chosen * self.features * self.hidden

    def rounds(self, types: CallTypes) -> int:
        return 10 * self.experts

    def evaluate(
        self, x: Array, weights: Array, indices: Array, gate: Array, up: Array, down: Array, scales: Array
    ) -> Array:
        rows = x.reshape(-1, self.features)
        numbers = indices.reshape(-1, self.chosen).astype(np.int64)
        numbers = np.where(numbers < 0, numbers + self.experts, numbers)
        if numbers.size:
            low, high = int(numbers.min()), int(numbers.max())
            require(low >= 0 and high < self.experts, f"expert {low if low < 0 else high} is chosen of {self.experts}")
        factors = weights.reshape(-1, self.chosen) * scales.reshape(-1)[numbers]
        out = np.zeros_like(rows)
        for expert in range(self.experts):
            row, place = np.nonzero(numbers == expert)
            given = rows[row]
            into = [w.reshape(self.hidden, self.experts, self.features)[:, expert] for w in (gate, up)]
            inner = UnaryKind.GELU.value.numpy(given @ into[0].T) * (given @ into[1].T)
            made = inner @ down.reshape(self.features, self.experts, self.hidden)[:, expert].T
            np.add.at(out, row, made * factors[row, place][:, None])
        return out.reshape(x.shape)


def _require_count(operand: TensorType, name: str, count: int) -> None:
    found = num_elements(operand.shape)
    require(found in (count, None), f"{name} has {found} elements, expected {count}")
