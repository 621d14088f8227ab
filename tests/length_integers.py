"""Quantised models with dynamic dimensions, for tests of lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.ir import DType, Quantization, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.resize import ResizeBilinear

_SCALES = {DType.INT8: Quantization((0.05,), (3,)), DType.INT16: Quantization((0.0002,), (0,))}


def _quantized(b: Builder, shape: tuple[int, ...], dtype: DType) -> int:
    x = b.input(TensorType(DType.FLOAT32, shape), "x")
    return b.add(Quantize(dtype), x, quantization=(_SCALES[dtype],))


def bytes_() -> Subgraphs:
    """Self-attention of int8 rows with a constant added."""
    b, scale = Builder(), (_SCALES[DType.INT8],)
    x = _quantized(b, (1, 2, 8), DType.INT8)
    own = b.constant(np.arange(-4, 4, dtype=np.int8), scale[0])
    y = b.add(Binary(BinaryKind.ADD), x, own, quantization=scale)
    scores = b.add(BatchMatMul(adjoint_y=True), y, x, quantization=scale)
    return b.model([scores, b.add(BatchMatMul(), scores, y, quantization=scale)])


def averaged(dtype: DType) -> Callable[[], Subgraphs]:
    """Means and sums over steps, as classifiers pool them."""

    def made() -> Subgraphs:
        b = Builder()
        x, axis = _quantized(b, (2, 6, 8), dtype), b.constant(np.array([1], np.int32))
        kinds = (Reduction.MEAN, Reduction.SUM)
        return b.model([b.add(Dequantize(), b.add(Reduce(k), x, axis, quantization=(_SCALES[dtype],))) for k in kinds])

    return made


def resized(dtype: DType, **how: bool) -> Callable[[], Subgraphs]:
    """An image resized to twice its size."""

    def made() -> Subgraphs:
        b = Builder()
        x = _quantized(b, (1, 2, 6, 3), dtype)
        sizes = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(np.array([1, 2], np.int32)))
        size = b.add(Binary(BinaryKind.MUL), sizes, b.constant(np.int32(2)))
        return b.model([b.add(Dequantize(), b.add(ResizeBilinear(**how), x, size, quantization=(_SCALES[dtype],)))])

    return made
