"""Locality-sensitive hashes of tensors."""

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
    """Locality-sensitive hashing: each bit is the sign of a weighted sum of fingerprints of the rows of `x`.

    - `hash`: float32 [hashes, bits], one seed per bit; at most 31 bits unless `dense`
    - `x`: [n, ...], any type except strings, resources and variants
    - `weight`: float32 [n]; ones if absent

    A fingerprint is FarmHash's of the bytes of the seed followed by those of the row, as a signed 64-bit number. A bit
    is 1 if the weighted sum is positive. With `dense` the result is all bits, int32 [hashes * bits]. Otherwise the bits
    of each hash, highest first, form one number, plus the index of the hash times 2**bits: int32 [hashes].
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
        for at, row in enumerate(rows):  # row by row, as the result depends on the order of the float32 additions
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
