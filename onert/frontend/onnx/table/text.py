"""Strings, and n-gram counts."""

from __future__ import annotations

from onert.frontend.onnx.building import reshape
from onert.frontend.onnx.node import Importer, Node
from onert.ir import ModelError
from onert.ir.ops.lookup.murmur import MurmurHash3
from onert.ir.ops.lookup.ngrams import CountGroups, Weighting
from onert.ir.ops.lookup.strings import Letters, RegexFullMatch, StringConcat, StringNormalize, StringSplit, Tokenize


def _split(node: Node) -> tuple[int, ...]:
    most = node.integer("maxsplit") if node.has_attribute("maxsplit") else None
    return node.draft.add_many(StringSplit(node.text("delimiter"), most), node.input(0))


def _normalized(node: Node) -> int:
    wanted = node.text("case_change_action", "NONE").lower()
    letters = next((each for each in Letters if each.value == wanted), None)
    if letters is None:
        raise ModelError(f"case_change_action is {wanted!r}, expected NONE, LOWER or UPPER")
    op = StringNormalize(letters, node.texts("stopwords"), node.flag("is_case_sensitive"))
    return node.draft.add(op, node.input(0))


def _groups(node: Node) -> int:
    op = CountGroups(
        Weighting[node.choice("mode", ("TF", "IDF", "TFIDF"))],
        node.integer("min_gram_length"),
        node.integer("max_gram_length"),
        node.integer("max_skip_count"),
        node.integers("ngram_counts") or (),
        node.integers("ngram_indexes") or (),
        node.texts("pool_strings") or node.integers("pool_int64s") or (),
        node.numbers("weights") or (),
    )
    x = node.input(0)
    return node.draft.add(op, reshape(node.draft, x, (1,)) if node.type(0).rank == 0 else x)


def _tokens(node: Node) -> int:
    """Separators take precedence over an expression. An empty separator or the expression `.` means characters."""
    separators, expression, least = node.texts("separators"), node.text("tokenexp"), node.integer("mincharnum", 1)
    if not separators and not expression:
        raise ModelError("has neither separators nor a tokenexp")
    alone = separators == ("",) or (not separators and expression == ".")
    if alone and least > 1:
        raise ModelError(f"mincharnum is {least}, expected 1 because each character is a token")
    op = Tokenize(
        () if alone else separators,
        "" if alone or separators else expression,
        least,
        node.flag("mark"),
        node.text("pad_value"),
    )
    return node.draft.add(op, node.input(0))


def _hashes(node: Node) -> int:
    op = MurmurHash3(node.integer("seed") & 0xFFFFFFFF, signed=not node.flag("positive", default=True))
    return node.draft.add(op, node.input(0))


TABLE: dict[str, Importer] = {
    "RegexFullMatch": lambda node: node.draft.add(RegexFullMatch(node.text("pattern")), node.input(0)),
    "StringConcat": lambda node: node.draft.add(StringConcat(), node.input(0), node.input(1)),
    "StringNormalizer": _normalized,
    "StringSplit": _split,
    "TfIdfVectorizer": _groups,
}
MICROSOFT: dict[str, Importer] = {"MurmurHash3": _hashes, "Tokenizer": _tokens}
