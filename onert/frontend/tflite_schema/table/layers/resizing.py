"""Operators that make pictures larger or smaller."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Importer, Operator, Table, activation, same_or_valid
from onert.ir import Op
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor


def _transpose_conv(operator: Operator) -> Op:
    return TransposeConv2D(
        padding=same_or_valid(operator),
        stride_height=operator.integer("stride_h"),
        stride_width=operator.integer("stride_w"),
        activation=activation(operator),
    )


def _resize(kind: type[ResizeBilinear] | type[ResizeNearestNeighbor]) -> Importer:
    def build(operator: Operator) -> Op:
        return kind(
            align_corners=operator.flag("align_corners"),
            half_pixel_centers=operator.flag("half_pixel_centers"),
        )

    return build


TABLE: Table = {
    "RESIZE_BILINEAR": _resize(ResizeBilinear),
    "RESIZE_NEAREST_NEIGHBOR": _resize(ResizeNearestNeighbor),
    "TRANSPOSE_CONV": _transpose_conv,
}
CUSTOM: Table = {}
