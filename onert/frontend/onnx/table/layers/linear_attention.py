"""Linear attention: a loop over tokens with a matrix per head as its state."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import EnclosingGraph, Importer, Node
from onert.frontend.onnx.table.control import add_loop
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.elementwise.unary import UnaryKind

from .attention import usual_scale

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
        beta = _by_head(beta, count, "the update rate")
    past = optional(node, 3)
    sizes = (q.size(0), own, n, width)
    first = q.filled(0, *sizes) if past is None else past.cast(DType.FLOAT32)
    first.expect("the state", q.shape[0], own, n, width)
    y, last = recurrence(node, Tokens(q * (node.number("scale") or usual_scale(q)), k, v, decay, beta), first)
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
    """What a linear attention reads, in float32: scaled queries, keys and values [batch, tokens, heads, n], the
    logarithm of the decay [batch, tokens, heads, n or 1] and the update rate [batch, tokens, heads or 1, 1].
    """

    q: Expression
    k: Expression
    v: Expression
    decay: Expression | None = None
    beta: Expression | None = None

    def in_groups(self) -> Tokens:
        """With as many keys as values, and with queries [batch, tokens, heads, group, n]: those of a value's head."""
        heads, own = self.q.known_size(2, "the query"), self.v.known_size(2, "the value")
        keys, n = self.k.known_size(2, "the key"), self.q.known_size(3, "the query")
        if heads < own:
            q = _repeated(self.q, own, "query").unsqueeze(3)
        elif heads % own:
            raise ModelError(f"{heads} query heads are not a multiple of {own} key and value heads")
        else:
            q = self.q.reshape_by(self.q.size(0), self.q.size(1), own, heads // own, n)
        return evolve(self, q=q, k=self.k if keys == own else _repeated(self.k, own, "key"))


def _repeated(x: Expression, heads: int, what: str) -> Expression:
    own = x.known_size(2, f"the {what}")
    if own > heads or heads % own:
        raise ModelError(f"{heads} value heads are not a multiple of {own} {what} heads")
    x.draft.memory.spend(8 * heads, "the heads of values")
    return x.take([at // (heads // own) for at in range(heads)], 2)


def recurrence(
    node: Node, tokens: Tokens, first: Expression, owners: Expression | None = None
) -> tuple[Expression, Expression]:
    """The results [batch, tokens, heads, n] of a linear attention and its last state [batch, heads, keys, n].

    With `owners`, there is one sequence of tokens, and each reads and writes one of the states: that of its owner.

    The state decays, adds the product of key and value, and is read by the query: `next = g * s + k * v` and
    `y = q * next`. So `y = (q * g) * s + (q * k) * v`: the old state is read once for both products.
    """
    d, x = node.draft, tokens.in_groups()
    grown = None if x.decay is None else x.decay.unary(UnaryKind.EXP)
    key = x.k.unsqueeze(3)
    rows, agreement = x.q, (x.q * key).sum(4)
    rows = key.concat([rows], 3) if x.beta is not None else rows
    rows = rows if grown is None else rows * grown.unsqueeze(3)
    scanned = [rows, agreement, x.k.unsqueeze(4), x.v.unsqueeze(3)]
    scanned += [each.unsqueeze(4) for each in (grown, x.beta) if each is not None]
    steps = [each.transpose(1, 0, *range(2, 5)) for each in scanned]
    group = x.q.known_size(3, "the query")

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        index, states = Expression(inner, at), Expression(inner, now[0])
        owner = (
            None if owners is None else Expression(inner, capture(d, inner, owners.operand)).take(index, 0).reshape(1)
        )
        s = states if owner is None else states.take(owner, 0)
        found = [Expression(inner, capture(d, inner, step.operand)).take(index, 0) for step in steps]
        rows, agreement, key, value, *more = found
        read = rows @ s
        if x.beta is not None:
            kept, read = (s.of(part) for part in split(inner, read.operand, [1, group], 2))
            value = (value - kept) * more[-1]
        s = s if grown is None else s * more[0]
        s = s + key * value
        new = s.operand if owner is None else inner.add(PutRow(), states.operand, s.operand, owner.operand)
        return go, [new], [(read + agreement * value).operand]

    begin = d.constant(np.array(True), DType.BOOL)
    (last,), (y,) = add_loop(node, x.q.size(1).scalar().operand, begin, [first.operand], each)
    heads, width = group * x.v.known_size(2, "the value"), x.v.known_size(3, "the value")
    rows = first.of(y).transpose(1, 0, 2, 3, 4)
    sizes = x.q.size(0), x.q.size(1), heads, width  # without tokens, `rows` has no batch
    return rows.reshape_by(*sizes), first.of(last)


TABLE: dict[str, Importer] = {"LinearAttention": _linear_attention}
