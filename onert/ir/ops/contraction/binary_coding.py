"""Weights as sums of scaled signs (binary-coding quantisation, BCQ).

The rows of the weights are grouped in clusters; each row of a cluster has as many planes of signs as the cluster has
bits. A row's weights are the sum over its planes of the plane's scale times +1 or -1. Scales and sign words are ordered
by cluster, then by plane, then by row. A word's lowest bit is the sign of the row's first element, and 1 means +1. Each
row is padded to whole 32-bit words.

Sources: luci's FuseBCQPass and ONE's shape inference for the operands and shapes of BCQ_FULLY_CONNECTED and BCQ_GATHER.
No public source documents how signs are packed (the kernels are a separate library); the order above is onert's own.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.shape import MAX_ELEMENTS, Dim
from onert.ir.types import CallTypes, TensorType

WORD = 32
MAX_BITS = 32


def _check(scales: TensorType, binary: TensorType, clusters: TensorType, hidden: int) -> Dim:
    """The number of rows of the weights, or None if the clusters are unknown. Raises RuleError for invalid operands."""
    require(scales.dtype is DType.FLOAT32, f"scales hold {scales.dtype.text}, expected f32")
    require(binary.dtype is DType.INT32, f"signs are {binary.dtype.text}, expected i32")
    require(clusters.dtype is DType.INT32, f"clusters are {clusters.dtype.text}, expected i32")
    require(shapes.compatible(clusters.shape, (None, 2)), f"clusters are {clusters}, expected [count, 2]")
    require(1 <= hidden <= MAX_ELEMENTS, f"the hidden size is {hidden}, expected at least 1")
    if clusters.value is None:
        return None
    pairs = [(int(bits), int(rows)) for bits, rows in clusters.value]
    for bits, rows in pairs:
        require(1 <= bits <= MAX_BITS, f"a cluster has {bits} bits, expected 1 to {MAX_BITS}")
        require(rows >= 0, f"a cluster has {rows} rows, expected at least 0")
    planes = sum(bits * rows for bits, rows in pairs)
    have, words = shapes.num_elements(scales.shape), shapes.num_elements(binary.shape)
    require(have in (None, planes), f"there are {have} scales, expected {planes}")
    wanted = planes * -(-hidden // WORD)
    require(words in (None, wanted), f"there are {words} words of signs, expected {wanted}")
    return sum(rows for _, rows in pairs)


def _weights(scales: Array, binary: Array, clusters: Array, hidden: int) -> Array:
    """The weights, float32 [rows, hidden]."""
    words = np.ascontiguousarray(binary, "<i4").view(np.uint8).reshape(scales.size, 4 * -(-hidden // WORD))
    bits = np.unpackbits(words, axis=1, bitorder="little")[:, :hidden]
    planes = (bits.astype(np.float32) * 2 - 1) * scales.reshape(-1, 1)
    found = []
    start = 0
    for count, rows in clusters.tolist():
        found.append(planes[start : start + count * rows].reshape(count, rows, hidden).sum(axis=0))
        start += count * rows
    return np.concatenate(found) if found else np.zeros((0, hidden), np.float32)


@frozen
class BcqFullyConnected(OnStored):
    """`weights · x + bias`, with the weights given as scaled signs (binary-coding quantisation).

    - `x`: float32 [hidden, columns]
    - `scales`: float32, one for each plane of each row
    - `binary`: int32, the signs of each plane of each row, 32 per word
    - `bias`: float32 [rows]; optional
    - `clusters`: int32 [count, 2]: the number of bits and of rows of each cluster

    Result: float32 [rows, columns], after the `activation`.
    """

    hidden: int
    activation: Activation = Activation.NONE

    def infer(
        self,
        x: TensorType,
        scales: TensorType,
        binary: TensorType,
        bias: TensorType | None,
        clusters: TensorType,
    ) -> TensorType:
        require(x.dtype is DType.FLOAT32, f"x holds {x.dtype.text}, expected f32")
        require(shapes.compatible(x.shape, (self.hidden, None)), f"x is {x}, expected [{self.hidden}, columns]")
        rows = _check(scales, binary, clusters, self.hidden)
        if bias is not None:
            require(bias.dtype is DType.FLOAT32, f"bias holds {bias.dtype.text}, expected f32")
            count = shapes.num_elements(bias.shape)
            require(None in (count, rows) or count == rows, f"bias has {count} elements, expected {rows}")
        return x.result((rows, x.shape[1]))

    def flops(self, types: CallTypes) -> int:
        return 2 * self.hidden * elementwise(types)

    def rounds(self, types: CallTypes) -> int:
        return types.input(4).shape[0] or 0

    def evaluate(self, x: Array, scales: Array, binary: Array, bias: Array | None, clusters: Array) -> Array:
        out = _weights(scales, binary, clusters, self.hidden) @ x
        return self.activation.apply(out if bias is None else out + bias.reshape(-1, 1))


@frozen
class BcqGather(OnStored):
    """Slices along `axis` of a table [rows, hidden] given as scaled signs (binary-coding quantisation).

    - `scales`, `binary`, `clusters`: as in BcqFullyConnected
    - `indices`: int32 or int64, any shape
    """

    hidden: int
    axis: int = 0

    def infer(self, scales: TensorType, binary: TensorType, indices: TensorType, clusters: TensorType) -> TensorType:
        rows = _check(scales, binary, clusters, self.hidden)
        table = TensorType(DType.FLOAT32, (rows, self.hidden))
        found: TensorType = Gather(self.axis).infer(table, indices)
        return found

    def rounds(self, types: CallTypes) -> int:
        return types.input(3).shape[0] or 0

    def evaluate(self, scales: Array, binary: Array, indices: Array, clusters: Array) -> Array:
        found: Array = Gather(self.axis).evaluate(_weights(scales, binary, clusters, self.hidden), indices)
        return found
