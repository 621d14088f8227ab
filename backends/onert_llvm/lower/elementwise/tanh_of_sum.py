"""tanh of a sum, as in TFLite's kernels with byte weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.recurrent.tanh_of_sum import TanhOfSum
from onert_llvm.kernels.recurrent.tflite_activations import SumTanh
from onert_llvm.lower.command_builder import Lowering


def why_not(op: TanhOfSum, types: CallTypes) -> str | None:
    """None: it is native for every shape."""
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower to one loop."""
    at, operation, _ = lowering.single(operations, TanhOfSum)
    (x, y), (out,) = operation.used, operation.outputs
    count = math.prod(lowering.shape(out))
    lowering.run(at, SumTanh(), 1, {"x": x, "y": y}, {"out": out}, {"count": count}, count)
