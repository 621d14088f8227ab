"""Linear attention, whose state is a matrix for each head."""

from __future__ import annotations

from attrs import frozen

from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.recurrent.linear_attention import LinearAttention

RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def _linear_attention(node: Node) -> tuple[int, int]:
    """Source: ONNX LinearAttention, opset 27. Computed in float32."""
    heads, own = node.integer("q_num_heads"), node.integer("kv_num_heads")
    given = [operand(node, at) for at in range(3)]
    q, v = (
        _by_head(x, count, name)
        for x, count, name in zip(given[::2], (heads, own), ("the query", "the value"), strict=True)
    )
    n, width = q.known_size(3, "the query"), v.known_size(3, "the value")
    k = _by_head(given[1], max(given[1].known_size(2, "the key") // max(n, 1), 1), "the key")
    rule = node.choice("update_rule", RULES, "gated_delta")
    decay, beta = gates(node, rule, 4, 5)
    if decay is not None:
        decay = _by_head(decay, own, "the decay")
        if decay.shape[3] not in (1, n):
            raise ModelError(f"the decay is {operand(node, 4).type}, expected {own} or {own * n} features")
    if beta is not None:
        count = beta.known_size(2, "the update rate")
        if count not in (1, own):
            raise ModelError(f"the update rate is {beta.type}, expected 1 or {own} features")
        beta = beta.cast(DType.FLOAT32)
    past = optional(node, 3)
    sizes = (q.size(0), own, n, width)
    first = q.filled(0, *sizes) if past is None else past.cast(DType.FLOAT32)
    first.expect("the state", q.shape[0], own, n, width)
    y, last = attend(Tokens(q, k, v, decay, beta), scale_of(node, n), first, None)
    dtype = given[0].dtype
    merged = y.reshape_by(q.size(0), q.size(1), max(heads, own) * width)
    return merged.cast(dtype).operand, last.cast(dtype if past is None else past.dtype).operand


def _by_head(x: Expression, heads: int, what: str) -> Expression:
    """[batch, tokens, heads * n] as [batch, tokens, heads, n] in float32."""
    width = x.known_size(2, what)
    if heads < 1 or width % heads:
        raise ModelError(f"{what} is {x.type}, expected a multiple of {heads} features")
    return x.cast(DType.FLOAT32).reshape_by(x.size(0), x.size(1), heads, width // heads)


def gates(node: Node, rule: str, decay: int, beta: int) -> list[Expression | None]:
    """The inputs for decay and update rate, as far as a rule has them."""
    found: list[Expression | None] = []
    for at, needed, what in zip((decay, beta), RULES[rule], ("decay", "update rate"), strict=True):
        if needed and not node.has(at):
            raise ModelError(f"update_rule is {rule!r} but the {what} (input {at}) is absent")
        found.append(operand(node, at) if needed else None)
    return found


@frozen(eq=False)
class Tokens:
    """What a linear attention reads, in float32: queries, keys and values [batch, tokens, heads, n], the logarithm of
    the decay [batch, tokens, heads, n or 1] and the update rate [batch, tokens, heads or 1].
    """

    q: Expression
    k: Expression
    v: Expression
    decay: Expression | None = None
    rate: Expression | None = None

    def check_heads(self) -> None:
        """Raise ModelError unless heads share keys and queries evenly."""
        heads, own = self.q.known_size(2, "the query"), self.v.known_size(2, "the value")
        if heads > own and (not own or heads % own):
            raise ModelError(f"{heads} query heads are not a multiple of {own} key and value heads")
        for x, what in ((self.q, "query"), (self.k, "key")):
            count = x.known_size(2, f"the {what}")
            more = count > own and what == "query"
            if not more and (count == 0 or count > own or own % count):
                raise ModelError(f"{own} value heads are not a multiple of {count} {what} heads")


def scale_of(node: Node, n: int) -> float:
    """The factor of the results of queries of `n` numbers."""
    return node.number("scale") or 1 / max(n, 1) ** 0.5


def attend(tokens: Tokens, scale: float, first: Expression, bounds: Expression | None) -> tuple[Expression, Expression]:
    """The results [batch, tokens, heads, n] of a linear attention and its last state [batch, heads, keys, n].

    With `bounds` there is one batch of several sequences, each with a state: where each begins, and the end of the
    last.
    """
    tokens.check_heads()
    decay = None if tokens.decay is None else tokens.decay.unary(UnaryKind.EXP)
    inputs = (tokens.q, tokens.k, tokens.v, decay, tokens.rate, first, bounds)
    operands = [None if x is None else x.operand for x in inputs]
    y, last = first.draft.add_many(LinearAttention(scale), *operands)
    return first.of(y), first.of(last)


TABLE: dict[str, Importer] = {"LinearAttention": _linear_attention}
