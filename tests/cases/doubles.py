"""Cases in float64 of the operations that ONNX models in double consist of: the float32 cases with the same numbers."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import Array
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import PRelu
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import BatchNorm, InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm
from onert.ir.ops.reduction.pool import Pool2D
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax

from . import conv, elementwise, matmul, norm, pool, reduce
from .case import Case

_LAYERS = (Conv2D, DepthwiseConv2D, FullyConnected, Pool2D, PRelu)
_NORMS = (BatchNorm, InstanceNorm, L2Normalization, LocalResponseNormalization, LogSoftmax, RmsNorm, Softmax)


def _is_real(case: Case) -> bool:
    """Whether all inputs are float32, except axes."""
    kind = case.op
    covered = isinstance(kind, _LAYERS + _NORMS)
    covered = covered or (isinstance(kind, Unary) and kind.kind is UnaryKind.HARD_SWISH)
    covered = covered or (isinstance(kind, Reduce) and kind.kind is Reduction.MEAN)
    own = case.inputs[:1] if isinstance(kind, Reduce) else case.inputs
    return covered and not any(case.dtypes) and all(a is None or a.dtype == np.float32 for a in own)


def _wide(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype == np.float32 else x


CASES = [
    evolve(
        case,
        name=f"{case.name}, in double",
        inputs=tuple(None if a is None else _wide(a) for a in case.inputs),
        expected=None if case.expected is None else tuple(map(_wide, case.expected)),
    )
    for family in (conv, elementwise, matmul, norm, pool, reduce)
    for case in family.CASES
    if _is_real(case)
]
