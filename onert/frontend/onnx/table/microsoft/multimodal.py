"""Rotary embedding of positions in time, height and width, as in models of pictures and text."""

from __future__ import annotations

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.layers.attention import merge_heads, split_heads
from onert.frontend.onnx.table.layers.rotary import rotary_embedding
from onert.ir import ModelError

_STREAMS = 3


def _streams(node: Node, half: int) -> list[int]:
    """The stream of positions, in time, height or width, that turns each of the pairs of features."""
    sections, layout = node.integers("mrope_section") or (), node.integer("mrope_layout")
    if len(sections) != _STREAMS or min(sections) < 0 or sum(sections) != half:
        raise ModelError(f"mrope_section is {list(sections)}, expected {_STREAMS} numbers with the sum {half}")
    if layout not in (0, 1):
        raise ModelError(f"mrope_layout is {layout}, expected 0 or 1")
    if not layout:
        return [stream for stream, count in enumerate(sections) for _ in range(count)]
    return [at % _STREAMS if at < _STREAMS * sections[at % _STREAMS] else 0 for at in range(half)]


def _rotary(node: Node) -> int:
    """Inputs: x, positions [3, batch, tokens], cosine and sine tables."""
    x, places = operand(node, 0), operand(node, 1)
    flat = x.rank == 3
    if flat:
        x = split_heads(x, node.integer("num_heads"), "the input")
    if x.rank != 4:
        raise ModelError(f"has input {x.type}, expected 3 or 4 dimensions")
    places.expect("the tensor of positions", _STREAMS, x.shape[0], x.shape[2])
    width = node.integer("rotary_embedding_dim") or x.known_size(3, "the input")
    for at in (2, 3):
        operand(node, at).expect("a table of angles", operand(node, 2).shape[0], width // 2)
    node.draft.memory.spend(8 * width, "the streams of features")
    streams = _streams(node, width // 2)
    columns = [[at for at, each in enumerate(streams) if each == stream] for stream in range(_STREAMS)]
    order = [at for each in columns for at in each]
    back = [order.index(at) for at in range(len(order))]
    scale = node.number("scale", 1.0)
    rows = [places.take(stream, 0) for stream in range(_STREAMS)]

    def angles(at: int) -> Expression:
        table = operand(node, at) if scale == 1 else operand(node, at) * scale
        first, *rest = (table.take(each, 1).take(row, 0) for each, row in zip(columns, rows, strict=True) if each)
        found = first.concat(rest, 2) if rest else first
        return found if back == sorted(back) else found.take(back, 2)

    y = rotary_embedding(x, angles(2), angles(3), width, interleaved=node.flag("interleaved"))
    return (merge_heads(y) if flat else y).operand


MICROSOFT: dict[str, Importer] = {"MRotaryEmbedding": _rotary}
