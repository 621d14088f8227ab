"""Convolutions and pools in com.microsoft.nchwc, with channels in blocks.

ONNX Runtime's highest level of optimisation writes them. Inside of a block, channels are the last axis of memory. This
is the same order for all tensors between ReorderInput and ReorderOutput, and what ONNX Runtime puts between these gives
the same elements in any order. So here they are plain tensors [batch, channels, height, width], with zeros for the
channels that fill the last block; only filters, which are stored in blocks, are put in order.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import to_channels_first, to_channels_last
from onert.frontend.onnx.expression import operand
from onert.frontend.onnx.messages import Attribute, Kind
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.movement import padded, split
from onert.frontend.onnx.table.layers.pooling import TABLE as POOLS
from onert.frontend.onnx.table.layers.resizing import TABLE as RESIZING
from onert.frontend.onnx.table.microsoft.fused import MICROSOFT as FUSED
from onert.frontend.onnx.table.microsoft.standard import as_standard
from onert.ir import Array, ModelError
from onert.ir.process.cpus import detected_features


@cache
def block_size() -> int:
    """Channels in a block: ONNX Runtime chooses by the processor, and does not write it to the file."""
    known = detected_features()
    if known.get("AVX512F") or known.get("X86_V4"):
        return 16
    return 8 if known.get("SSE2") or known.get("X86_V2") else 16


def in_order(filters: Array, block: int) -> Array:
    """Filters [filters, channels, height, width] of blocks: of filters, or if channels fill one, of both."""
    many, channels, *window = filters.shape
    if many % block or (channels > block and channels % block):
        raise ModelError(
            f"filters are {list(filters.shape)}, expected multiples of {block}: ONNX Runtime saved the model on "
            "another kind of processor, save it on this one or without layouts (ORT_ENABLE_EXTENDED)"
        )
    if channels < block:
        stored = filters.reshape(many // block, channels, *window, block).transpose(0, 4, 1, 2, 3)
    else:
        stored = filters.reshape(many // block, channels // block, *window, block, block).transpose(0, 5, 1, 4, 2, 3)
    return np.ascontiguousarray(stored.reshape(filters.shape))


def _convolved(node: Node) -> int:
    """FusedConv."""
    filters = node.constant(1, "the filters")
    if filters.ndim != 4:
        raise ModelError(f"filters are {node.type(1)}, expected 4 dimensions")
    own = node.draft.constant(in_order(filters, block_size()), node.type(1).dtype)
    found = FUSED["FusedConv"](evolve(node, inputs=(node.input(0), own, *node.inputs[2:])))
    assert isinstance(found, int)
    return found


def _into_blocks(node: Node) -> int:
    x = operand(node, 0)
    x = x.transpose(*to_channels_first(x.rank)) if node.flag("channels_last") else x
    more = -x.known_size(1, "the input") % block_size()
    return padded(node.draft, x.operand, [(0, 0), (0, more), *((0, 0),) * (x.rank - 2)])


def _out_of_blocks(node: Node) -> int:
    x, channels = operand(node, 0), node.integer("channels")
    more = x.known_size(1, "the input") - channels
    if channels < 1 or more < 0:
        raise ModelError(f"the input is {x.type}, expected at least {channels} channels, and these at least 1")
    y = x.of(split(node.draft, x.operand, [channels, more], 1)[0]) if more else x
    return (y.transpose(*to_channels_last(y.rank)) if node.flag("channels_last") else y).operand


def _upsampled(node: Node) -> int:
    """Resize by whole numbers, whose nearest elements are repeated ones."""
    scales = node.integers("scales") or ()
    if any(scale < 1 for scale in scales):
        raise ModelError(f"scales are {scales}, expected at least 1")
    given = (node.input(0), None, node.draft.constant(np.array(scales, np.float32)))
    kept = {name: node.attributes[name] for name in node.attributes if name != "scales"}
    if node.text("mode", "nearest") == "nearest":
        plain = {"coordinate_transformation_mode": b"asymmetric", "nearest_mode": b"floor"}
        kept |= {name: Attribute(name, Kind.STRING, text) for name, text in plain.items()}
    found = RESIZING["Resize"](evolve(node, inputs=given, attributes=kept, version=NEWEST))
    assert isinstance(found, int)
    return found


_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
TABLE: dict[str, Importer] = {
    "Conv": _convolved,
    "ReorderInput": _into_blocks,
    "ReorderOutput": _out_of_blocks,
    "Upsample": _upsampled,
    **{name: as_standard(POOLS[name]) for name in _POOLS},
}
