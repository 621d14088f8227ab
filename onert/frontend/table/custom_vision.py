"""Custom operators of MediaPipe and of LiteRT's perception, gradient and debugging kernels."""

from __future__ import annotations

from onert.frontend.flexible import Map, flag, flexible_map, integer, number
from onert.ir import ModelError, Op
from onert.ir.ops.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor
from onert.ir.ops.verify_quantized import BroadcastGradientArgs, NumericVerify

from .importer import Operator, Table, fixed


def _indices(options: Map, key: str) -> tuple[int, ...]:
    values = options.get(key)
    if not isinstance(values, list) or not all(isinstance(v, int) for v in values):
        raise ModelError(f"the custom option {key} is {values!r}, expected a list of whole numbers")
    return tuple(values)


def _matrix(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options)
    return LandmarksToMatrix(
        integer(options, "left_rotation_idx"),
        integer(options, "right_rotation_idx"),
        _indices(options, "subset_idxs"),
        integer(options, "output_width"),
        integer(options, "output_height"),
        number(options, "scale_x", 1.0),
        number(options, "scale_y", 1.0),
    )


def _tensor(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options)
    return TransformTensor(integer(options, "output_height"), integer(options, "output_width"))


def _verify(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options)
    return NumericVerify(number(options, "tolerance", 5.0), flag(options, "log_if_failed"))


TABLE: Table = {}
CUSTOM: Table = {
    "BroadcastGradientArgs": fixed(BroadcastGradientArgs()),
    "DenseImageWarp": fixed(DenseImageWarp()),
    "Landmarks2TransformMatrix": _matrix,
    "NumericVerify": _verify,
    "TransformLandmarks": fixed(TransformLandmarks()),
    "TransformTensorBilinear": _tensor,
}
