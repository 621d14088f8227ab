"""Conversion of TensorFlow operations to operations of flows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from onert.flow.builder import Builder

from .node import Node, Result, Rule
from .parts import PARTS


def _called(optype: str) -> Rule:
    return lambda f, node: f.op(optype, list(node.inputs), node.name)


def _product(first: str, second: str, f: Builder, node: Node) -> Result:
    """A matrix product; `first` and `second` are the attributes that transpose its operands."""
    result = f.made("MatMul", list(node.inputs), node.name, node.shapes[0])
    assert result.producer is not None
    for name, attribute in (("transpose_a", first), ("transpose_b", second)):
        if node.attributes.get(attribute):
            result.producer.add_attr(name, True)
    return result


def _reduction(optype: str, f: Builder, node: Node) -> Result:
    """Reduce along constant axes, one after the other."""
    x, axes = node.inputs[0], node.constant(1)
    if axes is None:
        return None
    keep = bool(node.attributes.get("keep_dims"))
    at = sorted({axis % x.rank() for axis in axes} if x.rank() else set(), reverse=True)
    if not at:
        return f.identity(x, node.name)
    for number, axis in enumerate(at):
        x = f.reduce(optype, x, axis, keep, node.name if number == len(at) - 1 else None)
    return x


def _mean(f: Builder, node: Node) -> Result:
    x, axes = node.inputs[0], node.constant(1)
    if axes is None or any(x.shape[axis] < 0 for axis in axes):
        return None
    count = math.prod(x.shape[axis] for axis in axes)
    total = _reduction("Sum", f, Node("Sum", f"{node.name}/Sum", node.inputs, node.attributes, node.shapes))
    return f.div(total, float(count), node.name)


def _along_last(optype: str, f: Builder, node: Node) -> Result:
    (x,) = node.inputs
    result = f.op(optype, [x], node.name)
    assert result.producer is not None
    result.producer.add_attr("axis", x.rank() - 1)
    return result


def _leaky_relu(f: Builder, node: Node) -> Result:
    (x,) = node.inputs
    return f.cond(f.less(x, 0.0), f.mul(x, float(node.attributes["alpha"])), x, node.name)


def _in_shape(optype: str, f: Builder, node: Node) -> Result:
    """Change the shape to the declared one."""
    if optype == "Reshape" and node.constant(1) is None:
        return None
    given = list(node.inputs) if optype == "Reshape" else [node.inputs[0]]
    return f.made(optype, given, node.name, node.shapes[0])


def _transpose(f: Builder, node: Node) -> Result:
    order = node.constant(1)
    return None if order is None else f.transpose(node.inputs[0], order, node.name)


def _concat(f: Builder, node: Node) -> Result:
    axis = node.constant(len(node.inputs) - 1)
    return None if axis is None else f.concat(node.inputs[:-1], node.name, axis[0])


def _split(f: Builder, node: Node) -> Result:
    axis = node.constant(0)
    return None if axis is None else f.split(node.inputs[1], len(node.shapes), axis[0], node.name)


def _slice(f: Builder, node: Node) -> Result:
    begin, size = node.constant(1), node.constant(2)
    return None if begin is None or size is None else f.slice(node.inputs[0], begin, size, node.name)


def _gather(f: Builder, node: Node) -> Result:
    """Rows by number: in flows, the last dimension of indices is the number of dimensions that they index."""
    axis, params, indices = node.constant(2), node.inputs[0], node.inputs[1]
    if axis is None or axis[0] or node.attributes.get("batch_dims"):
        return None
    if indices.rank():
        indices = f.expand_dims(indices, indices.rank())
    return f.gather(params, indices, name=node.name)


def _cast(f: Builder, node: Node) -> Result:
    dtype = node.attributes["DstT"].name
    return f.made("Cast", [node.inputs[0]], node.name, node.shapes[0], dtype)


def _extreme(optype: str, f: Builder, node: Node) -> Result:
    axis = node.constant(1)
    return None if axis is None else f.reduce(optype, node.inputs[0], axis[0], None, node.name, "int32")


_SAME = (
    *("Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Exp", "Log", "Erf", "Sigmoid", "Tanh", "Relu"),
    *("Softplus", "Softsign", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
    *("Floor", "Ceil", "Identity", "Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow"),
    *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
)
_OTHERS = {
    "AddV2": "Add",
    "RealDiv": "Div",
    "Round": "Round",
    "Rint": "Round",
    "Inv": "Reciprocal",
    "StopGradient": "Identity",
    "Snapshot": "Identity",
    "EnsureShape": "Identity",
    "LogicalNot": "Not",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
    "Select": "Cond",
    "SelectV2": "Cond",
}

RULES: Mapping[str, Rule] = {
    **PARTS,
    **{name: _called(name) for name in _SAME},
    **{name: _called(optype) for name, optype in _OTHERS.items()},
    "MatMul": partial(_product, "transpose_a", "transpose_b"),
    "BatchMatMul": partial(_product, "adj_x", "adj_y"),
    "BatchMatMulV2": partial(_product, "adj_x", "adj_y"),
    "Relu6": lambda f, node: f.minimum(f.relu(node.inputs[0]), 6.0, node.name),
    "Erfc": lambda f, node: f.sub(1.0, f.erf(node.inputs[0]), node.name),
    "LeakyRelu": _leaky_relu,
    "SquaredDifference": lambda f, node: f.square(f.sub(*node.inputs), node.name),
    "Softmax": partial(_along_last, "SoftMax"),
    "LogSoftmax": partial(_along_last, "LogSoftMax"),
    "Sum": partial(_reduction, "Sum"),
    "Prod": partial(_reduction, "Product"),
    "Max": partial(_reduction, "Max"),
    "Min": partial(_reduction, "Min"),
    "Mean": _mean,
    "ArgMax": partial(_extreme, "ArgMax"),
    "ArgMin": partial(_extreme, "ArgMin"),
    "Reshape": partial(_in_shape, "Reshape"),
    "Squeeze": partial(_in_shape, "Squeeze"),
    "ExpandDims": partial(_in_shape, "ExpandDims"),
    "Transpose": _transpose,
    "ConcatV2": _concat,
    "Split": _split,
    "Slice": _slice,
    "GatherV2": _gather,
    "Cast": _cast,
}
"""The conversions, by the type of the TensorFlow operation."""
