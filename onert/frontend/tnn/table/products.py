"""Inner products and matrix products.

Source: TNN's inner_product_layer.cc, inner_product_layer_interpreter.cc, mat_mul_layer_interpreter.cc and
naive_compute.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.buffers import INT8, WeightRequest
from onert.frontend.tnn.layer_types import base_type
from onert.frontend.tnn.site import Site
from onert.ir import ModelError, Quantization
from onert.ir.ops.contraction.einsum import Einsum, spelled
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .convolution import integer_bias, product_scales
from .spans import LARGEST


def _inner_product(site: Site) -> Sequence[int]:
    g = site.graph
    outputs, bias, rows, terms, shape = _parameters(site, site.x)
    weight = site.real_weight(WeightRequest("weight", (outputs, terms), terms), outputs)
    constants = [g.constant(weight)]
    if bias:
        constants.append(g.constant(site.required_buffer(WeightRequest("bias", (outputs,))).real()))
    y = g.add(FullyConnected(), g.add(Reshape((rows, terms)), site.x), *constants)
    return [g.add(Reshape(shape), y)]


def _quantized_inner_product(site: Site) -> Sequence[int]:
    g = site.graph
    x = g.quantized(site.blob(0))
    outputs, _, rows, terms, shape = _parameters(site, x)
    buffer = site.integer_weight((outputs, terms), terms)
    scales = product_scales(site, x, outputs, terms)
    weight = g.constant(buffer.array().reshape(outputs, terms), Quantization(scales, (0,) * outputs, 0))
    quantization = g.quantization(site.layer.outputs[0])
    flat = g.move(Reshape((rows, terms)), x)
    y = g.add(FullyConnected(), flat, weight, *integer_bias(site, outputs), quantization=quantization)
    return [g.move(Reshape(shape), y)]


def _parameters(site: Site, x: int) -> tuple[int, bool, int, int, tuple[int, ...]]:
    """The number of outputs, whether there is a bias, rows and terms of the product, and the result's shape.

    TNN reads the flag `transpose` but ignores it.
    """
    shape = site.graph.shape(x)
    outputs, bias = site.integer("outputs", None, 1, LARGEST), site.flag("bias")
    site.integer("transpose")
    axis = site.axis("axis", len(shape))
    result = (*shape[:axis], outputs, *(1,) * (len(shape) - axis - 1))
    return outputs, bias, math.prod(shape[:axis]), math.prod(shape[axis:]), result


def _matmul(site: Site) -> Sequence[int]:
    """A product of two blobs, or of a blob and a weight, which may be the first or second factor."""
    g = site.graph
    position = site.integer("position of the weight", -1, -1, 1)
    if len(site.layer.inputs) > 1:
        return [g.add(BatchMatMul(), site.input(0), site.input(1))]
    shape = site.shape
    if position < 0 or len(shape) < 2:
        raise ModelError(f"it has one input of shape {list(shape)}, and its weight's position is {position}")
    terms = shape[-1] if position == 1 else shape[-2]
    wanted = (terms, _columns(site, terms)) if position == 1 else (terms, terms)
    found = g.weights.buffer(site.layer, WeightRequest("weight", wanted, terms))
    if found is None:
        raise ModelError("it has no weight")
    real = found.real()
    if found.code == INT8:
        scale = g.weights.buffer(site.layer, WeightRequest("scale", (1,)))
        if scale is None or scale.count != 1:
            raise ModelError("its integer weight does not have exactly one scale")
        real = real * scale.real()
    if found.shape is None and len(real) % terms:
        raise ModelError(f"its weight has {len(real)} elements, expected a multiple of {terms}")
    given = (terms, len(real) // terms) if position == 1 else (len(real) // terms, terms)
    weight = g.constant(np.ascontiguousarray(real.reshape(found.shape or given)))
    return [g.add(BatchMatMul(), *((site.x, weight) if position == 1 else (weight, site.x)))]


_KEEPING = frozenset({"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "PReLU", "ReLU", "ReLU6", "Sigmoid", "Tanh"})


def _columns(site: Site, terms: int) -> int:
    """The number of columns of a random weight: what later layers require, otherwise the number of rows."""
    blob = site.layer.outputs[0]
    for layer in site.following:
        if blob not in layer.inputs:
            continue
        others = [name for name in layer.inputs if name != blob and name in site.graph.blobs]
        if others:
            return site.graph.shape(site.graph.real(others[0]))[-1]
        name = base_type(layer.type)[0]
        if name == "SplitV":
            sizes = layer.parameters[2:]
            return sum(map(int, sizes)) if sizes and all(size.isdigit() for size in sizes) else terms
        if name not in _KEEPING:
            break
        blob = layer.outputs[0]
    return terms


def _einsum(site: Site) -> Sequence[int]:
    """Einsum. Semicolons separate the operands' terms, because a comma ends a line."""
    groups, arrow, result = site.text("equation").partition("->")
    ranks = [len(site.graph.shape(x)) for x in site.inputs]
    return [site.graph.add(Einsum(spelled(groups.replace(";", ","), arrow, result, ranks)), *site.inputs)]


def _inverse(site: Site) -> Sequence[int]:
    """The inverse of 2 x 2 matrices: swap the diagonal, negate the rest, and divide by the determinant."""
    g = site.graph
    shape = site.shape
    if len(shape) < 2 or shape[-2:] != (2, 2):
        raise ModelError(f"its input has the shape {list(shape)}, expected matrices of 2 by 2")
    x = g.add(Reshape((*shape[:-2], 4)), site.x)
    a, b, c, d = g.add_many(SplitV(4), x, g.integers((1,) * 4), g.integers([len(shape) - 2]))
    products = (g.binary(BinaryKind.MUL, *pair) for pair in ((a, d), (b, c)))
    by = g.binary(BinaryKind.DIV, g.constant(np.ones((), np.float32)), g.binary(BinaryKind.SUB, *products))
    turned = g.add(Concat(len(shape) - 2), d, *(g.add(Unary(UnaryKind.NEG), part) for part in (b, c)), a)
    return [g.add(Reshape(shape), g.binary(BinaryKind.MUL, turned, by))]


LAYERS = {"Einsum": _einsum, "InnerProduct": _inner_product, "Inverse": _inverse, "MatMul": _matmul}
QUANTIZED = {"InnerProduct": _quantized_inner_product}
