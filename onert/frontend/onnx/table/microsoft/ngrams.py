"""Tables indexed by hashes of the last words."""

from __future__ import annotations

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import sliced
from onert.ir import ModelError
from onert.ir.ops.elementwise.binary import BinaryKind

_MOST = 64


def _hashes(node: Node) -> tuple[int, int]:
    """The hashes of each word and up to `max_ngram_size` - 1 words before it, modulo the size of each table.

    Inputs: words [batch, words], multipliers, sizes of tables, the words before, offsets of tables, the word that ends
    a text, the segment of each word.
    """
    words, multipliers, sizes = (operand(node, at) for at in range(3))
    longest, heads = node.integer("max_ngram_size"), node.integer("n_head_per_ngram")
    if not 2 <= longest <= _MOST or heads < 1:
        raise ModelError(f"max_ngram_size is {longest} with {heads} heads, expected 2 to {_MOST} with at least 1")
    before, tables = longest - 1, (longest - 1) * heads
    words.expect("the tensor of words", None, None)
    if sizes.rank != 1 or sizes.known_size(0, "the tensor of sizes") != tables:
        raise ModelError(f"the tensor of sizes is {sizes.type}, expected [{tables}]")
    words.draft.memory.spend(8 * tables, "the numbers of tables")
    if multipliers.rank != 1 or multipliers.known_size(0, "the tensor of multipliers") < longest:
        raise ModelError(f"the tensor of multipliers is {multipliers.type}, expected at least {longest} elements")
    end = optional(node, 5)
    if end is not None:
        end.expect("the end of a text")
    filler = words.of(words.draft.constant(node.integer("pad_id"), words.dtype)) if end is None else end
    past = optional(node, 3)
    if past is None:
        past = filler.broadcast(words.size(0).concat([words.of(ints(words.draft, [before]))], 0))
    past.expect("the tensor of words before", words.shape[0], before)
    whole = past.concat([words], 1)
    usable, segments = None, optional(node, 6)
    if segments is not None:
        segments.expect("the tensor of segments", *words.shape)
    mix, found = words * multipliers.take(0, 0), []
    for back in range(1, longest):
        word = _shifted(whole, before - back, words)
        seen = [usable] if usable is not None else []
        if end is not None and node.flag("reset_on_eos"):
            seen.append(~word.equals(end))
        if segments is not None:
            seen.append(_same_segment(segments, back))
        for each in seen:
            usable = each if usable is None or usable is each else usable & each
        shown = word if usable is None else usable.select(word, filler)
        mix = mix.binary(BinaryKind.BITWISE_XOR, shown * multipliers.take(back, 0))
        each = sizes.take(range(heads * (back - 1), heads * back), 0)
        found.append(mix.unsqueeze(2).binary(BinaryKind.FLOOR_MOD, each))
    y = found[0].concat(found[1:], 2)
    if node.has(4):
        operand(node, 4).expect("the tensor of offsets", tables)
        y = y + operand(node, 4)
    return y.operand, _shifted(whole, words.size(1), past).operand


def _shifted(x: Expression, first: int | Expression, like: Expression) -> Expression:
    """As many columns as another tensor has, from one on."""
    start = x.of(ints(x.draft, [first])) if isinstance(first, int) else first
    return x.of(sliced(x.draft, x.operand, (1,), start.operand, (start + like.size(1)).operand, None))


def _same_segment(segments: Expression, back: int) -> Expression:
    """Whether the words `back` and `back - 1` places before each have one segment, or are before the first."""
    first = segments.take([0], 1)
    margin = first.take([0] * back, 1)
    older = margin.concat([segments], 1)
    newer = older if back == 1 else first.take([0] * (back - 1), 1).concat([segments], 1)
    newer = segments if back == 1 else _shifted(newer, 0, segments)
    return _shifted(older, 0, segments).equals(newer)


MICROSOFT: dict[str, Importer] = {"NGramHashMapping": _hashes}
