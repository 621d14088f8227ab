"""Layers between parallel branches of features: normalisation, mixing, gates; routing of tokens to experts.

Most are computed in float32 and rounded to the input's type.
"""

from __future__ import annotations

from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.layers.attention import usual_scale
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction


def _wide(x: Expression) -> Expression:
    return x.cast(DType.FLOAT32)


def _grouped(node: Node, x: Expression, what: str) -> Expression:
    """x as [..., branches, features] in float32: it has these axes, or one for both if an attribute says how many."""
    count = node.integer("num_branches")
    if not count:
        if x.rank < 2:
            raise ModelError(f"{what} is {x.type}, expected branches and features")
        return _wide(x)
    width = x.known_size(x.rank - 1, what)
    if count < 1 or width % count:
        raise ModelError(f"{what} is {x.type}, expected a multiple of {count} features")
    return _wide(x).reshape_by(*(x.size(at) for at in range(x.rank - 1)), count, width // count)


def _like(x: Expression, original: Expression) -> Expression:
    """[..., branches, features] in the shape and type of the input that these came from."""
    if x.rank != original.rank:
        width = original.known_size(original.rank - 1, "the input")
        x = x.reshape_by(*(x.size(at) for at in range(x.rank - 2)), width)
    return x.cast(original.dtype)


def _rms(x: Expression, epsilon: float) -> Expression:
    """Each row divided by its root mean square."""
    return x * ((x * x).reduce(Reduction.MEAN, [x.rank - 1]) + epsilon).unary(UnaryKind.RSQRT)


def _norm(node: Node) -> int:
    """RMS normalisation of each branch. The scale is [features], [branches, features] or flat."""
    x = operand(node, 0)
    parts = _grouped(node, x, "the input")
    y, scale = _rms(parts, node.number("epsilon", 1e-5)), optional(node, 1)
    if scale is not None:
        count, each = (parts.known_size(parts.rank - at, "the input") for at in (2, 1))
        if scale.shape not in ((each,), (count, each), (count * each,)):
            raise ModelError(f"the scale is {scale.type}, expected [{each}], [{count}, {each}] or [{count * each}]")
        y = y * _wide(scale if scale.shape[-1] == each else scale.reshape(count, each))
    return _like(y, x).operand


def _gates(x: Expression, parts: Expression, *, flat: bool = False) -> Expression:
    """A gate per branch, or per branch and feature, that broadcasts to [..., branches, features]; `flat` ones may have
    one axis for both."""
    outer, (count, each) = parts.shape[:-2], (parts.known_size(parts.rank - back, "the input") for back in (2, 1))
    width = x.known_size(x.rank - 1, "the gate") if x.rank else 0
    if x.rank == parts.rank:
        x.expect("the gate", *outer, count, 1 if width == 1 else each)
        return _wide(x)
    flat = flat and width == count * each
    x.expect("the gate", *outer, count * each if flat else count)
    if flat:
        return _wide(x).reshape_by(*(x.size(axis) for axis in range(x.rank - 1)), count, each)
    return _wide(x).unsqueeze(x.rank)


def _reduced(node: Node) -> int:
    """The sum of the branches times their gates, times a factor."""
    x = operand(node, 0)
    parts = _grouped(node, x, "the streams")
    y = (parts * _gates(operand(node, 1), parts, flat=node.has_attribute("num_branches"))).sum(
        parts.rank - 2, keep=False
    )
    scale = node.number("reduction_scale", 1.0)
    return (y if scale == 1 else y * scale).cast(x.dtype).operand


def _injected(node: Node) -> int:
    """The branches, mixed by a matrix if there is one, plus one tensor of features times the gates."""
    x, block, mix = operand(node, 0), operand(node, 1), optional(node, 3)
    parts = _grouped(node, x, "the streams")
    count = parts.known_size(parts.rank - 2, "the streams")
    block.expect("the added tensor", *parts.shape[:-2], parts.shape[-1])
    added = _gates(operand(node, 2), parts) * _wide(block).unsqueeze(parts.rank - 2)
    if mix is None:
        return _like(parts + added, x).operand
    mix.expect("the matrix of branches", *parts.shape[:-2], count, count)
    turned = _wide(mix).transpose(*range(mix.rank - 2), mix.rank - 1, mix.rank - 2)
    return _like(turned @ parts + added, x).operand


_LEAST = 1e-6


def _engram(node: Node) -> tuple[int | None, ...]:
    """A value times the gate of each branch, from normalised keys and queries [batch, tokens, branches, features]; and
    that normalised, if it has a scale."""
    k, q, value, *scales = (operand(node, at) for at in range(5))
    count, each = (k.known_size(at, "the key") for at in (2, 3))
    for x, what in ((k, "the key"), (q, "the query")):
        x.expect(what, *k.shape[:2], count, each)
    value.expect("the value", *k.shape[:2], each)
    last = optional(node, 5)
    for scale in (*scales, *([last] if last is not None else [])):
        scale.expect("a scale", count, each)
    epsilon = node.number("epsilon", 1e-5)
    k, q = (_rms(_wide(x), epsilon) * _wide(scale) for x, scale in zip((k, q), scales, strict=True))
    dot = (k * q).sum(3) * usual_scale(k)
    root = dot.unary(UnaryKind.ABS).at_least(_LEAST).unary(UnaryKind.SQRT)
    y = _wide(value).unsqueeze(2) * (dot.unary(UnaryKind.SIGN) * root).unary(UnaryKind.LOGISTIC)
    found = y.cast(value.dtype).operand
    return found, None if last is None else (_rms(y, epsilon) * _wide(last)).cast(value.dtype).operand


MICROSOFT: dict[str, Importer] = {
    "BranchwiseRMSNorm": _norm,
    "EngramGate": _engram,
    "HyperConnectionPostMix": _injected,
    "HyperConnectionPreMix": _reduced,
}
