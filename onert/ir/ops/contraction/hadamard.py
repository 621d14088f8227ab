"""Rotation of rows by Hadamard matrices."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

MOST = 1 << 16
"""The largest matrix, far larger than a layer has inputs."""


def hadamard(size: int) -> Array:
    """The Hadamard matrix of a size that is a power of two: 1 and -1, rows in the order of Sylvester's construction."""
    out = np.ones((1, 1), np.float32)
    while len(out) < size:
        out = np.block([[out, out], [out, -out]])
    return out


@frozen
class HadamardRotation(Op):
    """`x` in pieces of `size` along the last axis, each multiplied by the Hadamard matrix of that size over its root.

    - `x`: float32 [..., a multiple of `size`]; `size` is a power of two

    Source: LiteRT's custom operator `aeq.hadamard_rotation`, kernels/hadamard_rotation.cc.
    """

    size: int

    def infer(self, x: TensorType) -> TensorType:
        require(
            1 <= self.size <= MOST and self.size & (self.size - 1) == 0,
            f"hadamard_size is {self.size}, expected a power of two of at most {MOST}",
        )
        require(x.dtype is DType.FLOAT32 and x.rank >= 1, f"x is {x}, expected f32 of at least 1 dimension")
        last = x.shape[-1]
        require(last is None or last % self.size == 0, f"x is {x}, expected a last dimension divisible by {self.size}")
        return x.result(x.shape)

    def flops(self, types: CallTypes) -> int:
        return elementwise(types) * self.size.bit_length()

    def evaluate(self, x: Array) -> Array:
        out, half = x, 1
        while half < self.size:
            pairs = out.reshape(-1, 2, half)
            out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
            half *= 2
        scaled: Array = out.reshape(x.shape) * (np.float32(1) / np.sqrt(np.float32(self.size)))
        return scaled
