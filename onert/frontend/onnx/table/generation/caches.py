"""Attention to caches of keys and values."""

from __future__ import annotations

from attrs import evolve, frozen

from onert.frontend.onnx.expression import Expression
from onert.ir import DType, ModelError
from onert.ir.ops.contraction.cached_attention import CachedAttention
from onert.ir.ops.data_movement.element_indices import ScatterSlices


@frozen(eq=False)
class Given:
    """What attention to a cache has beside queries, keys and values; see `CachedAttention`."""

    ends: Expression | None = None
    bias: Expression | None = None
    sinks: Expression | None = None
    blocks: Expression | None = None
    beams: Expression | None = None


@frozen(eq=False)
class Attended:
    """The results of attention [batch, heads, tokens, n] and what it shows of its scores, if it does."""

    y: Expression
    shown: Expression | None


def attend(
    op: CachedAttention,
    q: Expression,
    caches: tuple[Expression, Expression],
    first: Expression,
    given: Given,
    scale: float | Expression,
) -> Attended:
    """Attention of tokens [batch, heads, tokens, n], the first of which are at places `first` of the caches."""
    heads, own = q.shape[1], caches[0].shape[1]
    if heads is not None and own is not None and (own < 1 or heads % own):
        raise ModelError(f"{heads} query heads are not a multiple of {own} key and value heads")

    def wide(x: Expression | None) -> int | None:
        return None if x is None else x.cast(DType.FLOAT32).operand

    if isinstance(scale, Expression):
        scaled, known = q.cast(DType.FLOAT32) * scale.cast(DType.FLOAT32), 1.0
    else:
        scaled, known = q, scale
    ends, blocks, beams = (None if x is None else x.operand for x in (given.ends, given.blocks, given.beams))
    rest = [ends, wide(given.bias), wide(given.sinks), blocks, beams]
    while rest and rest[-1] is None:
        rest.pop()
    operands = (wide(scaled), *map(wide, caches), first.cast(DType.INT64).operand, *rest)
    y, *shown = (q.of(x).cast(q.dtype) for x in q.draft.add_many(evolve(op, scale=known), *operands))
    return Attended(y, shown[0] if shown else None)


def put_rows(cache: Expression, rows: Expression, first: Expression) -> Expression:
    """A cache [batch, heads, places, n] with rows [batch, heads, tokens, n] at places that begin at `first` [batch]."""
    parts = [
        rows.size(0).arange().unsqueeze(1).unsqueeze(2),
        rows.size(1).arange().unsqueeze(0).unsqueeze(2),
        (first.unsqueeze(1) + rows.size(2).arange()).unsqueeze(1),
    ]
    zero = (parts[0] + parts[1] + parts[2]) * 0
    indices = (zero + parts[0]).unsqueeze(3).concat([(zero + part).unsqueeze(3) for part in parts[1:]], 3)
    return cache.of(cache.draft.add(ScatterSlices(), cache.operand, indices.operand, rows.operand))


def grown(cache: Expression, size: Expression) -> Expression:
    """A cache [batch, heads, places, n] with so many places, of which more are 0."""
    more = cache.filled(0, cache.size(0), cache.size(1), size - cache.size(2), cache.size(3))
    return cache.concat([more], 2)
