"""tanh as TFLite's kernels with weights of bytes compute it: part of layers that are spelt as graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import CallTypes, Op, TensorType
from onert_llvm.command.command import Slot
from onert_llvm.kernels.recurrent.tflite_activations import SumTanh
from onert_llvm.lower.command_builder import Lowering


@frozen
class TanhOfSum(Op):
    """`tanh(x + y)` of two float32 tensors of one shape, to the last bit of `APPROXIMATE` in recurrent_functions."""

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        return x.result(x.shape)


def why_not(op: TanhOfSum, types: CallTypes) -> str | None:
    """It is native wherever it was written."""
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """One loop."""
    (at,) = operations
    (x, y), (out,) = lowering.operation(at).used, lowering.operation(at).outputs
    count = int(np.prod(lowering.shape(out), dtype=np.int64))
    ends = {"x": x, "y": y, "out": out}
    slots: dict[str, Slot] = {name: lowering.operand(i) for name, i in ends.items()}
    lowering.emit(at, SumTanh(), {**slots, "count": count}, 1, (x, y), (out,), count)
