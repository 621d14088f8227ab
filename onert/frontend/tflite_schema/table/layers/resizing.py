"""Operators that resize images."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Table, read
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

TABLE: Table = {
    "RESIZE_BILINEAR": read(ResizeBilinear),
    "RESIZE_NEAREST_NEIGHBOR": read(ResizeNearestNeighbor),
    "TRANSPOSE_CONV": read(TransposeConv2D),
}
CUSTOM: Table = {}
