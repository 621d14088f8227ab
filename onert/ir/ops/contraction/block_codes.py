"""Matrices quantised to a few bits per element, with a scale for each block of adjacent elements of a row."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType, codes_of
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic.dynamic_range import quantize_rows
from onert.ir.shape import Dim, num_elements
from onert.ir.types import CallTypes, TensorType


def _require_blocks(bits: int, codes: TensorType, scales: TensorType, zeros: TensorType | None) -> Dim:
    """The number of elements in a row, or None if unknown. Raises RuleError for operands that do not fit."""
    require(bits in (2, 4, 8), f"codes have {bits} bits, expected 2, 4 or 8")
    require(codes.dtype is DType.UINT8 and codes.rank == 3, f"codes are {codes}, expected u8 in 3 dimensions")
    require(scales.dtype is DType.FLOAT32, f"scales hold {scales.dtype.text}, expected f32")
    require(zeros is None or zeros.dtype is DType.UINT8, f"zeros are {zeros}, expected u8")
    for each in (scales, zeros):
        fits = each is None or shapes.compatible(each.shape, codes.shape[:2])
        require(fits, f"there are {each} for codes {codes}, expected one for each block")
    size = num_elements(codes.shape[1:])
    return None if size is None else size * 8 // bits


def _centred(bits: int, codes: Array, zeros: Array | None) -> Array:
    """`code - zero`, float32 [rows, blocks, elements]."""
    zero = np.uint8(1 << bits - 1) if zeros is None else zeros[..., None]
    out: Array = codes_of(codes, bits).astype(np.float32) - zero
    return out


@frozen
class DequantizeBlocks(OnStored):
    """The float32 matrix `(code - zero) * scale`, with a zero point and a scale for each block of a row.

    - `codes`: uint8 [rows, blocks, bytes], the codes of each block, `bits` bits each, lowest bits of a byte first
    - `scales`: float32 [rows, blocks]
    - `zeros`: uint8 [rows, blocks]; if absent, every zero point is the middle of the range, `2**(bits - 1)`
    Result: float32 [rows, blocks * block].
    """

    bits: int = 4

    @property
    def packed(self) -> int:
        return 8 // self.bits

    def infer(self, codes: TensorType, scales: TensorType, zeros: TensorType | None = None) -> TensorType:
        features = _require_blocks(self.bits, codes, scales, zeros)
        return TensorType(DType.FLOAT32, (codes.shape[0], features))

    def evaluate(self, codes: Array, scales: Array, zeros: Array | None = None) -> Array:
        out: Array = (_centred(self.bits, codes, zeros) * scales[..., None]).reshape(len(codes), -1)
        return out


@frozen
class BlockFullyConnected(OnStored):
    """`x · weightsᵀ`, where the weights [outputs, features] are stored as codes of `bits` bits with a scale per block.

    - `x`: float32 [..., features]
    - `codes`, `scales`, `zeros`: the weights, as in `DequantizeBlocks`

    Result: float32 [..., outputs]. With `byte_inputs` each block of `x` is first quantised to int8, its largest
    magnitude to 127, and the integer products of each block are summed exactly.

    Source: ONNX Runtime's contributed operator MatMulNBits, where `accuracy_level` 4 means int8 inputs.
    """

    bits: int = 4
    byte_inputs: bool = False

    def infer(
        self, x: TensorType, codes: TensorType, scales: TensorType, zeros: TensorType | None = None
    ) -> TensorType:
        require(x.dtype is DType.FLOAT32 and x.rank > 0, f"x is {x}, expected rows of f32")
        features = _require_blocks(self.bits, codes, scales, zeros)
        require(
            features is None or shapes.compatible(x.shape[-1:], (features,)),
            f"input has {x.shape[-1]} in its last dimension, expected {features}",
        )
        return x.result((*x.shape[:-1], codes.shape[0]))

    def flops(self, types: CallTypes) -> int:
        return 2 * (num_elements(types.output.shape) or 0) * (types.input(0).shape[-1] or 0)

    def rounds(self, types: CallTypes) -> int:
        return (types.input(1).shape[1] or 0) if self.byte_inputs else 0

    def evaluate(self, x: Array, codes: Array, scales: Array, zeros: Array | None = None) -> Array:
        if not self.byte_inputs:
            out: Array = x @ DequantizeBlocks(self.bits).evaluate(codes, scales, zeros).T
            return out
        centred, (outputs, blocks, _) = _centred(self.bits, codes, zeros), codes.shape
        made = quantize_rows(x.reshape(-1, centred.shape[-1]), asymmetric=False)
        values = made.values.reshape(-1, blocks, centred.shape[-1]).astype(np.float64)
        own, out = made.scales.reshape(-1, blocks), np.zeros((len(values), outputs), np.float32)
        for block in range(blocks):
            sums = (values[:, block] @ centred[:, block].T).astype(np.float32)
            out += sums * (own[:, block, None] * scales[:, block])
        return out.reshape(*x.shape[:-1], outputs)
