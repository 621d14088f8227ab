"""Conversion of TensorFlow operations on parts of tensors, and of whole layers, to several operations of flows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from onert.flow.builder import Builder
from onert.flow.builder.parts import padded, strided_slice
from onert.flow.graph import Variable
from onert.ir.ops.data_movement.slicing import StridedSlice

from .node import Node, Result, Rule

_LONGEST = 4096
"""The most parts into which a tensor is split."""


def _strided_slice(f: Builder, node: Node) -> Result:
    """What takes every element between two known bounds along each axis, or one; others stay as they are."""
    x, begin, end, steps = node.inputs[0], *map(node.constant, (1, 2, 3))
    if begin is None or end is None or steps is None:
        return None
    mask = node.mask
    op = StridedSlice(
        mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"), mask("new_axis_mask"), mask("shrink_axis_mask")
    )
    found = strided_slice(f, op, x, begin, end, steps)
    if found is None:
        return None
    part, shape = found
    return f.identity(part, node.name) if part.shape == shape else f.reshape(part, shape, node.name)


def _pack(f: Builder, node: Node) -> Result:
    axis = node.number("axis")
    parts = [f.expand_dims(x, axis, f"{node.name}/part") for x in node.inputs]
    if len(parts) == 1:
        return f.identity(parts[0], node.name)
    return f.concat(parts, node.name, axis % parts[0].rank())


def _unpack(f: Builder, node: Node) -> Result:
    x, axis = node.inputs[0], node.number("axis")
    axis %= max(x.rank(), 1)
    if x.shape[axis] != len(node.shapes):
        return None
    parts = f.split(x, len(node.shapes), axis, f"{node.name}/parts")
    shape = [*x.shape[:axis], *x.shape[axis + 1 :]]
    return tuple(f.reshape(part, shape, f"{node.name}/{at}") for at, part in enumerate(parts))


def _split_v(f: Builder, node: Node) -> Result:
    x, sizes, axis = node.inputs[0], node.constant(1), node.constant(2)
    if sizes is None or axis is None:
        return None
    at, start, found = axis[0] % x.rank(), 0, []
    if -1 in sizes:
        if x.shape[at] < 0:
            return None
        sizes[sizes.index(-1)] = x.shape[at] - sum(sizes) - 1
    for number, size in enumerate(sizes):
        begin, whole = [0] * x.rank(), [-1] * x.rank()
        begin[at], whole[at], start = start, size, start + size
        found.append(f.slice(x, begin, whole, f"{node.name}/{number}"))
    return tuple(found)


def _reversed(f: Builder, node: Node) -> Result:
    """The elements along some axes in reverse order."""
    x, axes = node.inputs[0], node.constant(1)
    if axes is None or any(not 0 < x.shape[axis] <= _LONGEST for axis in axes):
        return None
    for axis in (axis % x.rank() for axis in axes):
        parts = f.split(x, x.shape[axis], axis)
        x = f.concat(parts[::-1], axis=axis) if len(parts) > 1 else x
    return f.identity(x, node.name)


def _add_n(f: Builder, node: Node) -> Result:
    total, *others = node.inputs
    for other in others[:-1]:
        total = f.add(total, other, f"{node.name}/sum")
    return f.add(total, others[-1], node.name) if others else f.identity(total, node.name)


def _filled(value: float, f: Builder, node: Node) -> Result:
    """A tensor filled with a value, made by selecting 0 everywhere in the shape of the operand."""
    (x,) = node.inputs
    never = f.const(0, x.type)
    if not value:
        return f.select(never, x, node.name)
    return f.add(f.select(never, x, f"{node.name}/zeros"), value, node.name)


def _fill(f: Builder, node: Node) -> Result:
    shape = node.constant(0)
    return None if shape is None else f.broadcast(node.inputs[1], shape, node.name)


def _broadcast(f: Builder, node: Node) -> Result:
    shape = node.constant(1)
    return None if shape is None else f.broadcast(node.inputs[0], shape, node.name)


def _pad(f: Builder, node: Node) -> Result:
    """Pad by concatenating constants to the tensor, axis by axis."""
    x, margins = node.inputs[0], node.constant(1)
    element = np.asarray(node.inputs[2].data) if len(node.inputs) > 2 else np.zeros(())
    if margins is None or element.dtype == object or -1 in x.shape:
        return None
    for axis, pair in enumerate(zip(margins[::2], margins[1::2], strict=True)):
        x = padded(f, x, axis, *pair, float(element), f"{node.name}/along{axis}")
    return f.identity(x, node.name)


def _normalized(f: Builder, node: Node) -> Result:
    """Inference of batch norm: `(x - mean) / sqrt(variance + epsilon) · scale + offset`."""
    if node.attributes.get("is_training") or node.attributes.get("data_format", b"NHWC") != b"NHWC":
        return None
    x, scale, offset, mean, variance = node.inputs
    epsilon = float(node.attributes["epsilon"])
    factor = f.mul(scale, f.rsqrt(f.add(variance, epsilon, f"{node.name}/variance"), f"{node.name}/deviation"))
    y = f.add(f.mul(f.sub(x, mean, f"{node.name}/centred"), factor), offset, node.name)
    return (y, mean, variance, *(mean for _ in node.shapes[3:]))


def _bias(f: Builder, node: Node) -> Result:
    x, bias = node.inputs
    if node.attributes.get("data_format", b"NHWC") != b"NHWC":
        bias = f.reshape(bias, [*bias.shape, *(1,) * (x.rank() - 2)], f"{node.name}/bias")
    return f.add(x, bias, node.name)


def _einsum(f: Builder, node: Node) -> Result:
    """The product of two tensors, summed over the letters that are missing in the result, as a matrix product.

    Letters in both operands and the result are batch dimensions. Other equations are not converted.
    """
    given, _, result = node.attributes["equation"].decode().replace(" ", "").partition("->")
    first, _, second = given.partition(",")
    terms = (first, second, result)
    if len(node.inputs) != 2 or not all(term.isalpha() and len({*term}) == len(term) for term in terms):
        return None
    sizes = dict(zip(first + second, (*node.inputs[0].shape, *node.inputs[1].shape), strict=True))
    shared = [letter for letter in first if letter in second]
    batch, depth = [c for c in shared if c in result], [c for c in shared if c not in result]
    rows, columns = [c for c in first if c not in shared], [c for c in second if c not in shared]
    together = [group for group in (rows, columns, depth) if len(group) > 1]
    if {*rows, *columns, *batch} != {*result} or any(sizes[c] < 0 for group in together for c in group):
        return None

    def grouped(x: Variable, letters: str, one: list[str], other: list[str]) -> Variable:
        order = [letters.index(letter) for letter in (*batch, *one, *other)]
        shape = [*(sizes[c] for c in batch), *(math.prod(sizes[c] for c in group) for group in (one, other))]
        return f.reshape(f.transpose(x, order), shape)

    x, y = grouped(node.inputs[0], first, rows, depth), grouped(node.inputs[1], second, depth, columns)
    made = [*batch, *rows, *columns]
    found = f.reshape(f.matmul(x, y, f"{node.name}/product"), [sizes[c] for c in made])
    return f.transpose(found, [made.index(c) for c in result], node.name)


PARTS: Mapping[str, Rule] = {
    "StridedSlice": _strided_slice,
    "Pack": _pack,
    "Unpack": _unpack,
    "SplitV": _split_v,
    "ReverseV2": _reversed,
    "AddN": _add_n,
    "ZerosLike": partial(_filled, 0.0),
    "OnesLike": partial(_filled, 1.0),
    "Fill": _fill,
    "BroadcastTo": _broadcast,
    "Pad": _pad,
    "PadV2": _pad,
    "BiasAdd": _bias,
    "FusedBatchNorm": _normalized,
    "FusedBatchNormV2": _normalized,
    "FusedBatchNormV3": _normalized,
    "Einsum": _einsum,
}
"""The conversions, by the type of the TensorFlow operation; None if it is not converted."""
