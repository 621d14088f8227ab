"""Experimental operators that ONNX removed before version 1.5; ONNX Runtime still supports them."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import ModelError
from onert.ir.ops.elementwise.unary import UnaryKind

from .movement import TABLE as MOVEMENT


def _softplus(node: Node) -> int:
    x = operand(node, 0) * node.number("beta", 1.0)
    return (x.unary(UnaryKind.SOFTPLUS) * node.number("alpha", 1.0)).operand


def _tanh(node: Node) -> int:
    x = operand(node, 0) * node.number("beta", 1.0)
    return (x.unary(UnaryKind.TANH) * node.number("alpha", 1.0)).operand


def _picture(node: Node) -> Expression:
    x = operand(node, 0)
    if x.rank != 4:
        raise ModelError(f"has input {x.type}, expected 4 dimensions")
    return x


def _scaled_picture(node: Node) -> int:
    """Multiply by a number, and add one per channel."""
    x, bias = _picture(node), node.numbers("bias") or ()
    if len(bias) != x.known_size(1, "the picture"):
        raise ModelError(f"there are {len(bias)} biases for {x.type}")
    added = x.of(x.draft.constant(np.array(bias, x.dtype.numpy).reshape(-1, 1, 1), x.dtype))
    return (x * node.number("scale", 1.0) + added).operand


def _cropped(node: Node) -> int:
    """Crop by a border (left, top, right, bottom), or to a size from the border's upper left corner."""
    x, border, size = _picture(node), node.integers("border") or (), node.integers("scale")
    if len(border) != 4 or min(border) < 0 or (size is not None and (len(size) != 2 or min(size) < 1)):
        raise ModelError(f"border is {list(border)} and scale {size}, expected 4 numbers, and 2 or none")
    height, width = x.known_size(2, "the picture"), x.known_size(3, "the picture")
    left, top, right, bottom = border
    ends = (height - bottom, width - right) if size is None else (top + size[0], left + size[1])
    if not (top < ends[0] <= height and left < ends[1] <= width):
        raise ModelError(f"crops to rows {top} to {ends[0]} of {height} and columns {left} to {ends[1]} of {width}")
    d = node.draft
    parts = (x.operand, ints(d, (top, left)), ints(d, ends), ints(d, (2, 3)))
    found = MOVEMENT["Slice"](evolve(node, inputs=parts, version=10))
    assert isinstance(found, int)
    return found


TABLE: dict[str, Importer] = {
    "Affine": lambda node: (operand(node, 0) * node.number("alpha", 1.0) + node.number("beta")).operand,
    "Crop": _cropped,
    "DynamicSlice": lambda node: MOVEMENT["Slice"](evolve(node, version=10)),
    "ImageScaler": _scaled_picture,
    "ParametricSoftplus": _softplus,
    "Scale": lambda node: (operand(node, 0) * node.number("scale", 1.0)).operand,
    "ScaledTanh": _tanh,
}
