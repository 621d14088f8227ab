"""circle's block types: weights in groups of 32, each with its own scale, imported as float32.

Sources: the block layouts of ggml (block_q4_0, block_q4_1, block_q8_0, block_q8_1) and the OCP Microscaling Formats
specification 1.0 (MXFP4: E2M1 elements, MXINT8: 1.6 fixed point, both with a shared E8M0 scale).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import Array
from onert.ir.value import Value

LENGTH = 32
"""The number of elements in a block, along the last axis."""


@frozen
class Block(Value):
    """A block type: its size in bytes, and the function that decodes rows of bytes, one row per block."""

    name: str
    size: int
    decode: Callable[[Array], Array]


def _half(raw: Array) -> Array:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _nibbles(raw: Array) -> Array:
    """Unpack sixteen bytes: the low nibbles are elements 0 to 15, the high nibbles 16 to 31."""
    return np.concatenate((raw & 15, raw >> 4), axis=-1).astype(np.float32)


_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _power(raw: Array) -> Array:
    """The shared E8M0 scale, 2 ** (exponent - 127); 255 means NaN."""
    exponent = raw.astype(np.int32)
    return np.where(exponent == 255, np.float32(np.nan), np.ldexp(np.float32(1), exponent - 127)).astype(np.float32)


def _signed(stored: Array) -> Array:
    """Reinterpret bytes as signed numbers."""
    return np.ascontiguousarray(stored).view(np.int8).astype(np.float32)


def _mxfp4(rows: Array) -> Array:
    pairs = rows[:, 1:]
    codes = np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(len(rows), LENGTH)
    return _E2M1[codes] * _power(rows[:, :1])


BLOCKS: Mapping[int, Block] = {
    -2: Block("GGML_Q4_0", 18, lambda rows: (_nibbles(rows[:, 2:]) - 8) * _half(rows[:, :2])),
    -3: Block("GGML_Q4_1", 20, lambda rows: _nibbles(rows[:, 4:]) * _half(rows[:, :2]) + _half(rows[:, 2:4])),
    -4: Block("GGML_Q8_0", 34, lambda rows: _signed(rows[:, 2:]) * _half(rows[:, :2])),
    -5: Block("GGML_Q8_1", 36, lambda rows: _signed(rows[:, 4:]) * _half(rows[:, :2])),
    -6: Block("MXFP4", 17, _mxfp4),
    -7: Block("MXINT8", 33, lambda rows: _signed(rows[:, 1:]) / 64 * _power(rows[:, :1])),
}
"""Block types by circle's TensorType number."""


def decode(block: Block, raw: Data, shape: tuple[int, ...]) -> Array:
    """The float32 elements of a tensor whose last dimension is a multiple of the block length."""
    rows = np.frombuffer(raw, np.uint8).reshape(-1, block.size)
    return block.decode(rows).astype(np.float32).reshape(shape)
