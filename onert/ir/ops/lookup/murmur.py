"""MurmurHash3, which turns names of features into numbers."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

from .strings import text

_TYPES = (DType.INT32, DType.UINT32, DType.INT64, DType.UINT64, DType.FLOAT32, DType.FLOAT64, DType.STRING)


@frozen
class MurmurHash3(Op):
    """The 32-bit MurmurHash3 of each element's bytes, numbers in little-endian order.

    - `x`: strings, or integers or floats of 32 or 64 bits

    The result has x's shape, and holds uint32 or, if `signed`, the same bits as int32. Source: the published algorithm
    `MurmurHash3_x86_32`; com.microsoft's MurmurHash3.
    """

    seed: int = 0
    signed: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require(x.dtype in _TYPES, f"x is {x}, expected strings, or numbers of 32 or 64 bits")
        require(0 <= self.seed < 1 << 32, f"the seed is {self.seed}, expected 32 bits")
        return TensorType(DType.INT32 if self.signed else DType.UINT32, x.shape)

    def rounds(self, types: CallTypes) -> int:
        return shapes.num_elements(types.input(0).shape) or 0

    def evaluate(self, x: Array) -> Array:
        flat = x.reshape(-1)
        if x.dtype == object:
            keys = [text(each).encode() for each in flat]
            sizes = np.array([len(key) for key in keys], np.int64)
            found = np.zeros(len(keys), np.uint32)
            for size in np.unique(sizes):
                places = np.flatnonzero(sizes == size)
                rows = np.frombuffer(b"".join(keys[at] for at in places), np.uint8).reshape(len(places), size)
                found[places] = _hashes(rows, self.seed)
        else:
            ordered = np.ascontiguousarray(flat.astype(x.dtype.newbyteorder("<")))
            found = _hashes(ordered.view(np.uint8).reshape(len(flat), x.dtype.itemsize), self.seed)
        return (found.view(np.int32) if self.signed else found).reshape(x.shape)


def _hashes(rows: Array, seed: int) -> Array:
    """The hashes, uint32 [n], of n keys of the same length, uint8 [n, length]."""
    count, length = rows.shape
    whole = length - length % 4
    hashes = np.full(count, seed, np.uint32)
    for block in np.ascontiguousarray(rows[:, :whole]).view("<u4").T:
        hashes = _turned(hashes ^ _scrambled(block.astype(np.uint32)), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    rest = np.zeros(count, np.uint32)
    for at in range(whole, length):
        rest |= rows[:, at].astype(np.uint32) << np.uint32(8 * (at - whole))
    hashes = hashes ^ _scrambled(rest) ^ np.uint32(length & 0xFFFFFFFF)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    out: Array = hashes ^ (hashes >> np.uint32(16))
    return out


def _scrambled(block: Array) -> Array:
    out: Array = _turned(block * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return out


def _turned(x: Array, by: int) -> Array:
    """The bits rotated to the left."""
    out: Array = (x << np.uint32(by)) | (x >> np.uint32(32 - by))
    return out
