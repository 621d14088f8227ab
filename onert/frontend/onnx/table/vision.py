"""Images and regions: grid sampling, deformable convolution, boxes, column-to-image, decoding."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import ints, reshape
from onert.frontend.onnx.expression import operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.columns import FromColumns
from onert.ir.ops.vision_audio.boxes import BoxesPerClass, MaxRoiPool
from onert.ir.ops.vision_audio.image_decoder import ImageDecoder, Pixels
from onert.ir.ops.vision_audio.interpolate import Interpolation
from onert.ir.ops.vision_audio.sampling import DeformConv, GridSample, Outside, RoiAlign

_MODES = {
    "nearest": Interpolation.NEAREST,
    "linear": Interpolation.LINEAR,
    "bilinear": Interpolation.LINEAR,
    "cubic": Interpolation.CUBIC,
    "bicubic": Interpolation.CUBIC,
}
_OUTSIDE = {"zeros": Outside.ZEROS, "border": Outside.BORDER, "reflection": Outside.REFLECTION}


def _grid_sample(node: Node) -> int:
    mode, outside = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in _MODES or outside not in _OUTSIDE:
        raise ModelError(f"mode is {mode!r} and padding_mode {outside!r}, expected {list(_MODES)} and {list(_OUTSIDE)}")
    op = GridSample(_MODES[mode], _OUTSIDE[outside], node.flag("align_corners"))
    return node.draft.add(op, node.input(0), node.input(1))


def _affine_grid(node: Node) -> int:
    """The sampling points to which a matrix maps the positions of an image, the last axis first."""
    d = node.draft
    theta, sizes = operand(node, 0), operand(node, 1)
    if theta.rank != 3:
        raise ModelError(f"theta is {theta.type}, expected 3 dimensions")
    # Each of these sizes tells the number of axes. Unknown ones are checked in the run, by the product and its reshape.
    rows, columns, length = theta.shape[1], theta.shape[2], sizes.shape[0] if sizes.rank == 1 else None
    known = {size - more for size, more in ((rows, 0), (columns, 1), (length, 2)) if size is not None}
    if known not in ({2}, {3}):
        raise ModelError(f"theta is {theta.type} and size {sizes.type}; expected 2 x 3 and 4, or 3 x 4 and 5")
    (axes,), corners = known, node.flag("align_corners")
    lengths = [sizes.cast(DType.INT64).take([2 + axis], 0) for axis in range(axes)]
    whole = lengths[0].concat(lengths[1:], 0)
    places = []
    for axis in reversed(range(axes)):
        count = lengths[axis].arange().cast(theta.dtype)
        size = lengths[axis].scalar().cast(theta.dtype)
        line = count * 2 / (size - 1).at_least(1) - 1 if corners else (count * 2 + 1) / size - 1
        shaped = line.reshape(*(None if a == axis else 1 for a in range(axes)))
        places.append(shaped.broadcast(whole).unsqueeze(axes))
    one = theta.of(d.constant(np.ones((1,) * (axes + 1)), theta.dtype))
    ones = one.broadcast(whole.concat([whole.of(ints(d, [1]))], 0))
    points = places[0].concat([*places[1:], ones], axes).reshape(1, None, axes + 1)
    found = points @ theta.transpose(0, 2, 1)
    return found.reshape_by(theta.size(0), *lengths, axes).operand


def _roi_align(node: Node) -> int:
    mode = node.choice("mode", ("avg", "max"), "avg")
    places = ("half_pixel", "output_half_pixel")
    where = node.choice("coordinate_transformation_mode", places, places[node.version < 16])
    rows, columns = node.integer("output_height", 1), node.integer("output_width", 1)
    op = RoiAlign(
        rows,
        columns,
        node.integer("sampling_ratio"),
        node.number("spatial_scale", 1.0),
        where == "half_pixel",
        mode == "max",
    )
    return node.draft.add(op, node.input(0), node.input(1), node.input(2))


def _max_roi_pool(node: Node) -> int:
    shape = node.integers("pooled_shape") or ()
    if len(shape) != 2:
        raise ModelError(f"pooled_shape is {list(shape)}, expected 2 numbers")
    return node.draft.add(MaxRoiPool(*shape, node.number("spatial_scale", 1.0)), node.input(0), node.input(1))


def _deformed(node: Node) -> int:
    d, axes = node.draft, node.type(0).rank - 2
    op = DeformConv(
        node.integers("strides") or (1,) * axes,
        node.integers("dilations") or (1,) * axes,
        node.integers("pads") or (0,) * 2 * axes,
        node.integer("group", 1),
        node.integer("offset_group", 1),
    )
    return d.add(op, node.input(0), node.input(1), node.input(2), node.optional(3), node.optional(4))


def _boxes(node: Node) -> int:
    d = node.draft
    most = node.input(2) if node.has(2) else d.constant(0, DType.INT64)
    op = BoxesPerClass(node.flag("center_point_box"))
    return d.add(op, node.input(0), node.input(1), most, node.optional(3), node.optional(4))


def _from_columns(node: Node) -> int:
    op = FromColumns(*(node.integers(name) or () for name in ("strides", "dilations", "pads")))
    return node.draft.add(op, node.input(0), node.input(1), node.input(2))


def _decoded(node: Node) -> int:
    pixels = Pixels(node.choice("pixel_format", ("RGB", "BGR", "Grayscale"), "RGB"))
    return node.draft.add(ImageDecoder(pixels), reshape(node.draft, node.input(0), (None,)))


TABLE: dict[str, Importer] = {
    "AffineGrid": _affine_grid,
    "Col2Im": _from_columns,
    "DeformConv": _deformed,
    "GridSample": _grid_sample,
    "ImageDecoder": _decoded,
    "MaxRoiPool": _max_roi_pool,
    "NonMaxSuppression": _boxes,
    "RoiAlign": _roi_align,
}
