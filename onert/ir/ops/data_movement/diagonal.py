"""Matrices and their diagonals."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import TensorType

from .reshape import require_one


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of the element type of `like`; empty strings for strings."""
    return np.full(shape, b"" if like.dtype == object else 0, like.dtype)


def _with_diagonal(out: Array, diagonal: Array) -> Array:
    along = np.arange(diagonal.shape[-1])
    out[..., along, along] = diagonal
    return out


@frozen
class MatrixDiag(OnStored):
    """Square matrices with the last dimension of `diagonal` on their diagonals and zeros elsewhere.

    - `diagonal`: any of rank 1 or more, [..., n]; the result is [..., n, n]
    """

    def infer(self, diagonal: TensorType) -> TensorType:
        require(diagonal.rank >= 1, "diagonal is a scalar, expected rank 1 or more")
        shape = (*diagonal.shape, diagonal.shape[-1])
        sv.checked_shape(tuple(d for d in shape if d is not None), "the matrices' shape")
        return diagonal.result(shape)

    def evaluate(self, diagonal: Array) -> Array:
        return _with_diagonal(_zeros((*diagonal.shape, diagonal.shape[-1]), diagonal), diagonal)


@frozen
class MatrixSetDiag(OnStored):
    """Matrices with their main diagonals replaced.

    - `x`: any of rank 2 or more, [..., rows, columns]
    - `diagonal`: of x's type, [..., min(rows, columns)]
    """

    def infer(self, x: TensorType, diagonal: TensorType) -> TensorType:
        require(x.rank >= 2, f"x has rank {x.rank}, expected at least 2")
        require(x.dtype is diagonal.dtype, f"diagonal is {diagonal.dtype.text}, expected {x.dtype.text}")
        rows, columns = x.shape[-2:]
        length = None if rows is None or columns is None else min(rows, columns)
        wanted = (*x.shape[:-2], length)
        require(
            shapes.compatible(diagonal.shape, wanted),
            f"diagonal is {shapes.text(diagonal.shape)}, expected {shapes.text(wanted)}",
        )
        return x.result(x.shape)

    def evaluate(self, x: Array, diagonal: Array) -> Array:
        return _with_diagonal(x.copy(), diagonal)


@frozen
class MatrixBandPart(OnStored):
    """Matrices with the elements outside of a band around the main diagonal set to zero.

    - `x`: numbers or booleans of rank 2 or more, [..., rows, columns]
    - `lower`, `upper`: one integer each, the number of diagonals kept below and above; negative numbers keep all
    """

    def infer(self, x: TensorType, lower: TensorType, upper: TensorType) -> TensorType:
        require(x.rank >= 2, f"x has rank {x.rank}, expected at least 2")
        plain = not x.dtype.is_handle and (x.quantization is None or x.dtype.bits >= 32)
        require(plain, f"MatrixBandPart is not defined on elements of type {x.dtype.text}")
        for bound, name in ((lower, "num_lower"), (upper, "num_upper")):
            sv.integers(bound, name)
            require_one(bound, name)
        return x.result(x.shape)

    def evaluate(self, x: Array, lower: Array, upper: Array) -> Array:
        rows, columns = (np.arange(n)[:, None] if i == 0 else np.arange(n) for i, n in enumerate(x.shape[-2:]))
        above = columns - rows
        low, high = (sv.values(bound)[0] for bound in (lower, upper))
        kept = ((above <= high) | (high < 0)) & ((-above <= low) | (low < 0))
        return np.where(kept, x, np.zeros((), x.dtype))
