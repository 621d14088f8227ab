"""Rotary position embedding."""

from __future__ import annotations

from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import ModelError
from onert.ir.ops.contraction.attention import Pairing, RoPE


def rotary_embedding(x: Expression, cos: Expression, sin: Expression, width: int, *, interleaved: bool) -> Expression:
    """Rotate pairs of the first `width` features by the angles in the tables; the others are unchanged.

    `x` is [batch, heads, tokens, n]; the tables are [batch, tokens, width / 2] or [tokens, width / 2].
    """
    n = x.known_size(3, "the input")
    if not 0 < width <= n or width % 2:
        raise ModelError(f"{width} features are rotated, expected an even number of at most {n}")
    half = width // 2
    for table in (cos, sin):
        if table.rank not in (2, 3) or table.known_size(table.rank - 1, "a table") != half:
            raise ModelError(f"a table of angles is {table.type}, expected {half} per row")
    pairing = Pairing.NEIGHBORS if interleaved else Pairing.HALVES
    places = [at // 2 if interleaved else at % half for at in range(width)]
    tables = []
    for table in (sin, cos):
        wide = table.take(places, table.rank - 1)
        tables.append((wide.unsqueeze(1) if wide.rank == 3 else wide).operand)
    if width == n:
        return x.of(x.draft.add(RoPE(pairing), x.operand, *tables))
    turned, rest = split(x.draft, x.operand, [width, n - width], 3)
    return x.of(x.draft.add(RoPE(pairing), turned, *tables)).concat([x.of(rest)], 3)
