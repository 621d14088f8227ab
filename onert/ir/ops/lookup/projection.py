"""Hashes of tensors that keep near ones together."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic.fingerprint import fingerprints
from onert.ir.types import CallTypes, TensorType

MAX_BITS = 31


@frozen
class LshProjection(OnStored):
    """Locality-sensitive hashing: bits that are the signs of weighted sums of fingerprints of x's rows.

    - `hash`: float32 `[hashes, bits]`, seeds; at most 31 bits where the projection is sparse
    - `x`: numbers `[n, ...]`
    - `weight`: float32 `[n]`; may be absent, which stands for ones

    A bit is 1 where the sum of the weighted fingerprints (FarmHash's, of the seed's bytes and the row's, as signed
    64-bit numbers) is above 0. `dense` gives all bits as int32 `[hashes * bits]`; otherwise each hash's bits, first
    highest, are one number, to which the hash's number times 2**bits is added: `[hashes]`.
    """

    dense: bool = False

    def infer(self, hash: TensorType, x: TensorType, weight: TensorType | None = None) -> TensorType:  # noqa: A002 # the operand's published name
        require(hash.dtype is DType.FLOAT32, f"hash holds {hash.dtype.text}, expected f32")
        require(hash.rank == 2, f"hash has rank {hash.rank}, expected 2")
        require(not x.dtype.is_handle, f"LshProjection is not defined on elements of type {x.dtype.text}")
        require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
        if weight is not None:
            require(weight.dtype is DType.FLOAT32, f"weight holds {weight.dtype.text}, expected f32")
            require(
                shapes.compatible(weight.shape, x.shape[:1]),
                f"weight is {shapes.text(weight.shape)}, expected {shapes.text(x.shape[:1])}",
            )
        hashes, bits = hash.shape
        if not self.dense:
            require(bits is None or bits <= MAX_BITS, f"a hash has {bits} bits, expected at most {MAX_BITS}")
            return TensorType(DType.INT32, (hashes,))
        return TensorType(DType.INT32, (None if hashes is None or bits is None else hashes * bits,))

    def rounds(self, types: CallTypes) -> int:
        x = types.input(1)
        return 2 * (x.shape[0] or 0) + x.nbytes // 2

    def evaluate(self, hash: Array, x: Array, weight: Array | None = None) -> Array:  # noqa: A002 # as in infer
        seeds = np.ascontiguousarray(hash, "<f4").reshape(-1, 1).view(np.uint8)
        rows = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1) if x.size else np.zeros((len(x), 0), np.uint8)
        score = np.zeros(len(seeds), np.float32)
        for at, row in enumerate(rows):  # in this order, rounded each time: the sum is of float32
            keys = np.concatenate([seeds, np.broadcast_to(row, (len(seeds), len(row)))], axis=1)
            found = fingerprints(keys).view(np.int64).astype(np.float64)
            score = (score + (found if weight is None else weight[at].astype(np.float64) * found)).astype(np.float32)
        bits = (score > 0).astype(np.int32).reshape(hash.shape)
        if self.dense:
            return bits.reshape(-1)
        width = hash.shape[1]
        places = np.int64(1) << np.arange(width - 1, -1, -1, dtype=np.int64)
        first: Array = np.arange(len(bits), dtype=np.int64) << np.int64(width)
        return (bits @ places + first).astype(np.int32)
