"""ONNX's own operators under com.microsoft, unchanged or with channels last, and small additional ones."""

from __future__ import annotations

from attrs import evolve

from onert.frontend.onnx.building import to_channels_first, to_channels_last
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.activations import TABLE as ACTIVATIONS
from onert.frontend.onnx.table.elements.indexing import TABLE as INDEXING
from onert.frontend.onnx.table.elements.padding import TABLE as PADDING
from onert.frontend.onnx.table.elements.quantization import TABLE as QUANTIZATION
from onert.frontend.onnx.table.elements.shapes import TABLE as SHAPES
from onert.frontend.onnx.table.layers.normalization import TABLE as NORMALIZATIONS
from onert.frontend.onnx.table.layers.pooling import TABLE as POOLS
from onert.frontend.onnx.table.vision import TABLE as VISION
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.reshape import ExpandDims
from onert.ir.ops.elementwise.unary import UnaryKind


def as_standard(importer: Importer, version: int = NEWEST) -> Importer:
    """One of ONNX's own operators under another domain, by default its newest version."""
    return lambda node: importer(evolve(node, version=version))


def channels_first(importer: Importer, *, always: bool = False) -> Importer:
    """An operator with channels last in its first input and result, always or if an attribute says so."""

    def build(node: Node) -> int:
        turned = always or node.flag("channels_last")
        x = operand(node, 0)
        if turned:
            x = x.transpose(*to_channels_first(x.rank))
        found = importer(evolve(node, inputs=(x.operand, *node.inputs[1:]), version=NEWEST))
        if not isinstance(found, int):
            raise ModelError("has several results, expected one")
        y = x.of(found)
        return (y.transpose(*to_channels_last(y.rank)) if turned else y).operand

    return build


def _range(node: Node) -> int:
    d = node.draft
    one = node.input(2) if node.has(2) else d.constant(1, node.type(0).dtype)
    parts = [Expression(d, operand).scalar().operand for operand in (node.input(0), node.input(1), one)]
    found = SHAPES["Range"](evolve(node, inputs=tuple(parts)))
    assert isinstance(found, int)
    return found


def _distances(node: Node) -> int:
    """The distance of each row of one matrix from each row of another: the sum of squared differences, or its root."""
    metric = node.choice("metric", ("euclidean", "sqeuclidean"), "sqeuclidean")
    x, y = (operand(node, at) for at in range(2))
    found = (x.unsqueeze(1) - y.unsqueeze(0)).unary(UnaryKind.SQUARE).sum(2, keep=False)
    return (found.unary(UnaryKind.SQRT) if metric == "euclidean" else found).operand


def _gated_sum(node: Node) -> int:
    x, y, gate = (operand(node, at) for at in range(3))
    return (x + y * gate).operand


def _scaled_silu(node: Node) -> int:
    x = operand(node, 0)
    scaled = x * operand(node, 1).scalar().cast(x.dtype) if node.has(1) else x * node.number("alpha", 1.0)
    return (scaled * scaled.unary(UnaryKind.LOGISTIC)).operand


def _wide_product(node: Node) -> int:
    """The product of 16-bit integers with 32-bit sums."""
    x, y = (operand(node, at).cast(DType.INT32) for at in range(2))
    return (x @ y).operand


MICROSOFT: dict[str, Importer] = {
    "CDist": _distances,
    "DequantizeLinear": as_standard(QUANTIZATION["DequantizeLinear"]),
    "ExpandDims": lambda node: node.draft.add(ExpandDims(), node.input(0), node.input(1)),
    "GatedAdd": _gated_sum,
    "GatherND": as_standard(INDEXING["GatherND"]),
    "Gelu": as_standard(ACTIVATIONS["Gelu"]),
    "GridSample": VISION["GridSample"],  # in its original form, whose modes have other names
    "LayerNormalization": as_standard(NORMALIZATIONS["LayerNormalization"]),
    "MatMulInteger16": _wide_product,
    "NhwcMaxPool": channels_first(POOLS["MaxPool"], always=True),
    "Pad": as_standard(PADDING["Pad"]),
    "QuantizeLinear": as_standard(QUANTIZATION["QuantizeLinear"], 21),  # its quotients are not rounded
    "Range": _range,
    "ScaledSiLU": _scaled_silu,
    "Trilu": as_standard(INDEXING["Trilu"]),
}
