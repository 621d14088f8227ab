"""The alignment of two sequences with the least cost, as of spoken words with their sound."""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.messages import Attribute, Kind
from onert.frontend.onnx.node import NEWEST, EnclosingGraph, Importer, Node
from onert.frontend.onnx.table.control import add_loop
from onert.frontend.onnx.table.elements.indexing import TABLE as INDEXING
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.reduction.reduce import Reduction

_BOTH, _FIRST, _SECOND = 0, 1, 2
"""A step along both sequences, or along one of them."""


def _steps(node: Node, costs: Expression) -> Expression:
    """The last step of the cheapest path to each pair, [diagonals, rows], where the pair (i, j) is on diagonal i + j.

    Each diagonal follows from the two before it. Of equal paths the one with the last step along the second sequence is
    taken, unless it costs more.
    """
    d, dtype = node.draft, costs.dtype
    rows, columns = costs.size(0), costs.size(1)
    at = (rows + columns - 1).arange().unsqueeze(1) - rows.arange()
    inside = (at >= 0) & (at < columns)
    flat = costs.reshape(None).take(rows.arange() * columns + at.at_least(0).at_most(columns - 1), 0)
    turned = inside.select(flat, math.inf)
    outside = costs.of(d.constant(np.array([math.inf]), dtype))
    none = outside.broadcast(rows)
    begin = costs.of(d.constant(np.array([0.0]), dtype))
    places = rows.arange()

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        index, last, before = Expression(inner, at), Expression(inner, now[0]), Expression(inner, now[1])
        here, order = (Expression(inner, capture(d, inner, x.operand)) for x in (turned, places))
        nothing, nought = (Expression(inner, capture(d, inner, x.operand)) for x in (outside, begin))
        previous = (order - 1).at_least(0)
        up, across = (
            (order > 0).select(x.take(previous, 0), edge)
            for x, edge in ((last, nothing), (before, index.equals(0).select(nought, nothing)))
        )
        is_across = (across < up) & (across < last)
        is_up = (up < across) & (up < last)
        best = is_across.select(across, is_up.select(up, last))
        step = is_across.select(index.like(_BOTH), is_up.select(index.like(_FIRST), index.like(_SECOND)))
        return go, [(here.take(index, 0) + best).operand, last.operand], [step.operand]

    go = d.constant(np.array(True), DType.BOOL)
    count = (rows + columns - 1).scalar().operand
    _, (found,) = add_loop(node, count, go, [none.operand, none.operand], each)
    return costs.of(found)


def _warped(node: Node) -> int:
    """The pairs of the cheapest path from the first to the last elements of both sequences, [2, pairs]."""
    d, costs = node.draft, operand(node, 0)
    if costs.rank == 3:
        costs.expect("the tensor of costs", 1, None, None)
        costs = costs.squeeze(0)
    if costs.rank != 2:
        raise ModelError(f"the tensor of costs is {costs.type}, expected 2 dimensions")
    steps, rows, columns = _steps(node, costs).reshape(None), costs.size(0), costs.size(1)

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        i, j = (Expression(inner, x) for x in now)
        table, width = (Expression(inner, capture(d, inner, x.operand)) for x in (steps, rows))
        step = table.take((i.at_least(0) + j.at_least(0)) * width + i.at_least(0), 0)
        onward = (x - (~step.equals(still)).cast(DType.INT64) for x, still in ((i, _SECOND), (j, _FIRST)))
        return go, [x.operand for x in onward], [i.concat([j], 0).operand]

    go, last = d.constant(np.array(True), DType.BOOL), [(size - 1).operand for size in (rows, columns)]
    _, (pairs,) = add_loop(node, (rows + columns - 1).scalar().operand, go, last, each)
    path = costs.of(d.add(Reverse(), pairs, ints(d, [0], DType.INT32)))
    given = (path.operand, (path.reduce(Reduction.MIN, [1], keep=False) >= 0).operand)
    attributes = {"axis": Attribute("axis", Kind.INT, 0)}
    kept = INDEXING["Compress"](evolve(node, inputs=given, attributes=attributes, version=NEWEST))
    if not isinstance(kept, int):
        raise ModelError("has several results, expected one")
    return costs.of(kept).transpose(1, 0).cast(DType.INT32).operand


MICROSOFT: dict[str, Importer] = {"DynamicTimeWarping": _warped}
