"""Windows along an axis, convolutions of the letters of words, and transposed convolutions with computed margins."""

from __future__ import annotations

from attrs import evolve

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.messages import Attribute, Kind
from onert.frontend.onnx.node import NEWEST, Importer, Node
from onert.frontend.onnx.table.elements.movement import sliced
from onert.frontend.onnx.table.layers.convolution import TABLE as CONVOLUTIONS
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.shape import normalize_axis

_WIDEST = 1 << 20


def _windows(x: Expression, axis: int, size: int, step: int) -> Expression:
    """The windows along an axis, which is replaced by one for the windows and one for the places in each."""
    starts = ((x.size(axis) - size) / step + 1).arange() * step
    return x.take(starts.unsqueeze(1) + x.of(ints(x.draft, range(size))), axis)


def _unfold(node: Node) -> int:
    """The windows along an axis; the places in a window are a new last axis."""
    x = operand(node, 0)
    axis, size, step = normalize_axis(node.integer("dim", -1), x.rank), node.integer("size"), node.integer("step", 1)
    most = x.shape[axis]
    if not 1 <= size <= (_WIDEST if most is None else min(most, _WIDEST)) or step < 1:
        raise ModelError(f"windows of {size} every {step} do not fit dimension {axis} of {x.type}")
    found = _windows(x, axis, size, step)
    order = [at for at in range(found.rank) if at != axis + 1]
    return found.transpose(*order, axis + 1).operand


def _words(node: Node) -> int:
    """The largest results of each filter in each word [words, letters], where 0 is no letter; zeros for no word.

    Inputs: words, filters [filters, 1, window, features], biases, the features of each letter.
    """
    words, filters, bias, letters = (operand(node, at) for at in range(4))
    count, _, size, each = (filters.known_size(at, "the filter") for at in range(4))
    for name, value in (("embedding_size", count), ("conv_window_size", size), ("char_embedding_size", each)):
        if node.integer(name, value) != value:
            raise ModelError(f"{name} is {node.integer(name)} but the filter is {filters.type}")
    filters.expect("the filter", count, 1, size, each)
    words.expect("the tensor of words", None, None)
    bias.expect("the bias", count)
    letters.expect("the tensor of letters", None, each)
    most = words.shape[1]
    if not 1 <= size <= (_WIDEST if most is None else min(most, _WIDEST)):
        raise ModelError(f"a window of {size} letters does not fit into {words.type}")
    rows = _windows(letters.take(words, 0), 1, size, 1)  # [words, windows, letters, features]
    rows = rows.reshape_by(rows.size(0), rows.size(1), size * each)
    y = (rows @ filters.reshape(count, size * each).transpose(1, 0) + bias).unary(UnaryKind.TANH)
    long = (words > 0).cast(DType.INT64).sum(1).at_least(size) - (size - 1)
    inside = (y.size(1).arange().unsqueeze(0) < long).unsqueeze(2)
    best = inside.select(y, -1.0).reduce(Reduction.MAX, [1], keep=False)
    return (words.take(0, 1) > 0).unsqueeze(1).select(best, 0.0).operand


def _transposed(node: Node) -> int:
    """A transposed convolution whose margins are an input. Inputs: x, filters, margins, a bias."""
    x, given = operand(node, 0), tuple(node.optional(at) for at in (0, 1, 3))
    if x.rank < 3:
        raise ModelError(f"the input is {x.type}, expected at least 3 dimensions")
    margins, count = operand(node, 2), x.rank - 2
    margins.expect("the tensor of margins", 2 * count)
    known, whole = node.value(2), evolve(node, inputs=given, version=NEWEST)
    if known is not None:
        pads = Attribute("pads", Kind.INTS, tuple(int(value) for value in known.reshape(-1)))
        whole = evolve(whole, attributes={**node.attributes, "pads": pads})
    y = CONVOLUTIONS["ConvTranspose"](whole)
    if not isinstance(y, int):
        raise ModelError("has several results, expected one")
    if known is not None:
        return y
    axes = tuple(range(2, x.rank))
    sizes = x.of(y).size(2).concat([x.of(y).size(axis) for axis in axes[1:]], 0)
    starts, ends = margins.take(range(count), 0), sizes - margins.take(range(count, 2 * count), 0)
    return sliced(node.draft, y, axes, starts.operand, ends.operand, None)


MICROSOFT: dict[str, Importer] = {
    "ConvTransposeWithDynamicPads": _transposed,
    "UnfoldTensor": _unfold,
    "WordConvEmbedding": _words,
}
