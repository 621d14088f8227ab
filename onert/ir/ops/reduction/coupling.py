"""Class probabilities from pairwise comparisons."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

ROUNDS = 100
"""The maximum number of iterations."""
NEAR = 0.005
"""The iteration stops when the error times the number of classes is less than this."""


@frozen
class CoupledProbabilities(Op):
    """The probability of each class from pairwise probabilities (pairwise coupling).

    - `x`: float32 [rows, classes, classes]: x[r, i, j] is the probability of class i given that it is i or j, between 0
      and 1 exclusively; the diagonal is ignored

    Result: [rows, classes], each row summing to 1. At most a hundred iterations, until no error is above 0.005 divided
    by the number of classes. Source: Wu, Lin, Weng: Probability estimates for multi-class classification by pairwise
    coupling, 2004, second approach; LIBSVM, which has the same stopping criterion.
    """

    def infer(self, x: TensorType) -> TensorType:
        fits = x.dtype is DType.FLOAT32 and x.rank == 3 and shapes.compatible(x.shape[1:2], x.shape[2:])
        require(fits, f"x is {x}, expected f32 of rows, classes and classes")
        return x.result(x.shape[:2])

    def flops(self, types: CallTypes) -> int:
        return 8 * ROUNDS * (shapes.num_elements(types.input(0).shape) or 0)

    def rounds(self, types: CallTypes) -> int:
        return ROUNDS * (types.input(0).shape[1] or 0)

    def evaluate(self, x: Array) -> Array:
        rows, count = x.shape[:2]
        other = np.where(np.eye(count, dtype=np.bool_), 0.0, x.astype(np.float64))
        diagonal = (other**2).sum(1)
        matrix = -other.transpose(0, 2, 1) * other
        matrix += diagonal[:, :, None] * np.eye(count)
        found = np.full((rows, count), 1 / max(count, 1))
        going = np.arange(rows)
        for _ in range(ROUNDS):
            q, p = matrix[going], found[going]
            line = np.einsum("rij,rj->ri", q, p)
            total = (p * line).sum(1)
            far = np.abs(line - total[:, None]).max(1, initial=0) >= NEAR / max(count, 1)
            if not far.any():
                break
            going, q, p, line, total = going[far], q[far], p[far], line[far], total[far]
            for at in range(count):
                by = (total - line[:, at]) / q[:, at, at]
                p[:, at] += by
                total = (total + by * (by * q[:, at, at] + 2 * line[:, at])) / (1 + by) ** 2
                line = (line + by[:, None] * q[:, at]) / (1 + by)[:, None]
                p /= (1 + by)[:, None]
            found[going] = p
        return found.astype(np.float32)
