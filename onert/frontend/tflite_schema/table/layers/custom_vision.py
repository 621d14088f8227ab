"""Custom operators of MediaPipe, and of LiteRT's perception, gradient, attention, mixture-of-experts and rotation
kernels."""

from __future__ import annotations

from onert.frontend.tflite_schema.flexbuffer_options import Map, flag, flexible_map, integer, number, text
from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed
from onert.ir import DType, ModelError, Op
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.experts import MixtureOfExperts
from onert.ir.ops.contraction.hadamard import HadamardRotation
from onert.ir.ops.contraction.masked_attention import MaskedAttention, StoreTokens
from onert.ir.ops.elementwise.broadcast_gradient import BroadcastGradientArgs
from onert.ir.ops.reduction.unpool import MaxPoolWithIndices
from onert.ir.ops.vision_audio.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor


def _indices(options: Map, key: str) -> tuple[int, ...]:
    values = options.get(key)
    if not isinstance(values, list) or not all(isinstance(v, int) for v in values):
        raise ModelError(f"the custom option {key} is {values!r}, expected a list of integers")
    return tuple(values)


def _matrix(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
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
    options = flexible_map(operator.custom_options, operator.budget)
    return TransformTensor(integer(options, "output_height"), integer(options, "output_width"))


def _pool(operator: Operator) -> Op:
    """Sizes and strides have all four dimensions; those of the batch and the channels are ignored."""
    options = flexible_map(operator.custom_options, operator.budget)
    size, strides = _indices(options, "ksize"), _indices(options, "strides")
    for name, numbers in (("ksize", size), ("strides", strides)):
        if len(numbers) != 4 or numbers[::3] != (1, 1):
            raise ModelError(f"{name} is {list(numbers)}, expected 4 numbers, the first and last of them 1")
    padding = text(options, "padding")
    if padding not in ("SAME", "VALID"):
        raise ModelError(f"padding is {padding!r}, expected SAME or VALID")
    return MaxPoolWithIndices(
        filter_height=size[1],
        filter_width=size[2],
        padding=Padding[padding],
        stride_height=strides[1],
        stride_width=strides[2],
        index=operator.outputs[1].dtype if len(operator.outputs) > 1 else DType.INT32,
        batched=flag(options, "include_batch_in_index"),
    )


def _experts(operator: Operator) -> Op:
    options = flexible_map(operator.custom_options, operator.budget)
    for key, expected in (("weight_type", "fp32"), ("activation", "gelu")):
        found = text(options, key, expected if key == "activation" else None)
        if found != expected:
            raise ModelError(f"{key} is {found!r}, expected {expected!r}")
    keys = ("num_experts", "num_active_experts", "model_dim", "hidden_dim")
    return MixtureOfExperts(*(integer(options, key) for key in keys))


def _rotation(operator: Operator) -> Op:
    return HadamardRotation(integer(flexible_map(operator.custom_options, operator.budget), "hadamard_size"))


def _attention(operator: Operator) -> Op:
    return MaskedAttention(number(flexible_map(operator.custom_options, operator.budget), "scale", 0.0))


TABLE: Table = {}
CUSTOM: Table = {
    "BroadcastGradientArgs": fixed(BroadcastGradientArgs()),
    "DenseImageWarp": fixed(DenseImageWarp()),
    "Landmarks2TransformMatrix": _matrix,
    "MaxPoolWithArgmax": _pool,
    "TransformLandmarks": fixed(TransformLandmarks()),
    "TransformTensorBilinear": _tensor,
    "aeq.hadamard_rotation": _rotation,
    "odml.scaled_dot_product_attention": _attention,
    "odml.update_external_kv_cache": fixed(StoreTokens()),
    "moe": _experts,
}
