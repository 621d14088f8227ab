"""Channels-last convolutions and normalisations, gates, and integer sums and products.

Source: docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from attrs import evolve

from onert.frontend.onnx.building import to_channels_first, to_channels_last
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.movement import split
from onert.frontend.onnx.table.layers.normalization import TABLE as NORMALIZATIONS
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction

from .fused import MICROSOFT as FUSED


def _convolved(node: Node) -> int:
    """FusedConv with channels-last input and addend; filters are [filters, channels, ...] as in Conv."""
    x = operand(node, 0)
    given = [x.transpose(*to_channels_first(x.rank)).operand, node.input(1), node.optional(2)]
    if node.has(3):
        given.append(operand(node, 3).transpose(*to_channels_first(x.rank)).operand)
    found = FUSED["FusedConv"](evolve(node, inputs=tuple(given)))
    assert isinstance(found, int)
    return x.of(found).transpose(*to_channels_last(x.rank)).operand


def _convolved_with_filters(node: Node) -> int:
    """Conv with channels-last input, and channels-last filters if they fit.

    The documentation says [filters, channels, height, width]. But what writes this operator, the tools in
    onnxruntime.transformers, turns the filters too, and the kernel for CUDA expects that.
    """
    x, filters = operand(node, 0), operand(node, 1)
    width = filters.shape[-1] if 0 < filters.rank == x.rank else None
    if width is not None and x.shape[-1] in (None, width * node.integer("group", 1)):
        turned = filters.transpose(*to_channels_first(x.rank)).operand
        node = evolve(node, inputs=(node.input(0), turned, *node.inputs[2:]))
    return _convolved(node)


def _silu(x: Expression) -> Expression:
    return x * x.unary(UnaryKind.LOGISTIC)


def _by_groups(node: Node, x: Expression) -> int:
    """Group normalisation with gamma and beta, followed by SiLU if `activation` is 1."""
    last, code = node.flag("channels_last", default=True), node.integer("activation")
    if "groups" not in node.attributes or code not in (0, 1):
        raise ModelError(f"activation is {code}, expected 0 or 1, with the attribute groups")
    turned = x.transpose(*to_channels_first(x.rank)) if last else x
    plain = evolve(
        node,
        inputs=(turned.operand, node.input(1), node.input(2)),
        attributes={**node.attributes, "num_groups": node.attributes["groups"]},
        version=NEWEST,
    )
    found = NORMALIZATIONS["GroupNormalization"](plain)
    assert isinstance(found, int)
    y = x.of(found).transpose(*to_channels_last(x.rank)) if last else x.of(found)
    return (_silu(y) if code else y).operand


def _skip_group_norm(node: Node) -> tuple[int, int]:
    """Group normalisation of input + skip + bias, and that sum; a skip [batch, channels] is broadcast over space."""
    x, skip = operand(node, 0), operand(node, 3)
    if skip.rank == 2 and x.rank > 2:
        for _ in range(x.rank - 2):
            skip = skip.unsqueeze(1)
    x = x + skip
    x = x + operand(node, 4) if node.has(4) else x
    return _by_groups(node, x), x.operand


def _gated_norm(node: Node) -> int:
    """RMS normalisation of each part of a row, multiplied by the scale and an activation of the gate."""
    x, scale, gate = (operand(node, at) for at in range(3))
    name = node.choice("activation", ("silu", "swish", "sigmoid"), "silu")
    length, row = scale.known_size(0, "the scale"), x.known_size(x.rank - 1, "the rows")
    if not length or row % length:
        raise ModelError(f"rows of {row} are not divisible into parts of {length}")
    outer = [x.size(axis) for axis in range(x.rank - 1)]
    parts = x if row == length else x.reshape_by(*outer, row // length, length)
    wide = parts.cast(DType.FLOAT32)
    mean = (wide * wide).reduce(Reduction.MEAN, [parts.rank - 1])
    y = wide * (mean + node.number("epsilon", 1e-5)).unary(UnaryKind.RSQRT) * scale.cast(DType.FLOAT32)
    y = y if row == length else y.reshape_by(*outer, row)
    bent = gate.cast(DType.FLOAT32)
    return (y * (bent.unary(UnaryKind.LOGISTIC) if name == "sigmoid" else _silu(bent))).cast(x.dtype).operand


def _bias_split_gelu(node: Node) -> int:
    """Input plus bias: the first half of each row times GELU of the second."""
    x = operand(node, 0) + operand(node, 1)
    half = x.known_size(x.rank - 1, "the rows") // 2
    left, right = (x.of(part) for part in split(node.draft, x.operand, [half, half], x.rank - 1))
    return (left * right.unary(UnaryKind.GELU)).operand


def _product_gelu(node: Node) -> int:
    product = operand(node, 0) @ operand(node, 1)
    found = FUSED["FastGelu"](evolve(node, inputs=(product.operand, node.optional(2))))
    assert isinstance(found, int)
    return found


def _integers_times(node: Node) -> int:
    """The int32 product of two tensors of bytes minus their zero points."""
    sides = []
    for at in (0, 2):
        x = operand(node, at).cast(DType.INT32)
        sides.append(x - operand(node, at + 1).cast(DType.INT32) if node.has(at + 1) else x)
    return (sides[0] * sides[1]).operand


def _integers_summed(node: Node) -> int:
    x = operand(node, 0).cast(DType.INT32)
    axes = node.integers("axes") or tuple(range(x.rank))
    return x.sum(*axes, keep=node.flag("keepdims", default=True)).operand


MICROSOFT: dict[str, Importer] = {
    "BiasSplitGelu": _bias_split_gelu,
    "GatedRMSNorm": _gated_norm,
    "GemmFastGelu": _product_gelu,
    "GroupNorm": lambda node: _by_groups(node, operand(node, 0)),
    "MulInteger": _integers_times,
    "NhwcConv": _convolved_with_filters,
    "NhwcFusedConv": _convolved,
    "ReduceSumInteger": _integers_summed,
    "SkipGroupNorm": _skip_group_norm,
}
