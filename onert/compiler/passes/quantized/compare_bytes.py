"""Find the positions of extremes among quantised integers rather than their dequantised floats."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Subgraph
from onert.ir.ops.elementwise.convert import Dequantize
from onert.ir.ops.reduction.reduce import ArgReduce

from .scales import dequantized

_LIMITS = np.finfo(np.float32)
_MOST_BITS = 16
"""Distinct integers of up to this many bits have distinct products with a scale: float32 has 24 bits."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def compare_bytes(subgraph: Subgraph) -> Subgraph:
    """Find the position of an extreme before dequantising.

    A single positive scale preserves order and equality.

        a = Dequantize(q); y = ArgReduce(a, axis)   -->   y = ArgReduce(q, axis)
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        if isinstance(operation.op, ArgReduce):
            stored = _stored(subgraph, operation.used[0])
            if stored is not None:
                edit.replace(at, evolve(operation, inputs=(stored, *operation.inputs[1:])))
    return edit.done()


def _stored(subgraph: Subgraph, operand: int) -> int | None:
    """The integers that the floats are dequantised from in the same order; None if there are none."""
    before = definer(subgraph, operand)
    if before is None or not isinstance(before.op, Dequantize):
        found = dequantized(subgraph, operand)
        return found.operand if found is not None and _keeps_order(found.scale) else None
    source = before.used[0]
    dtype, quantization = subgraph.type(source).dtype, subgraph.type(source).quantization
    if not dtype.is_integer or dtype.bits > _MOST_BITS or quantization is None or not quantization.per_tensor:
        return None
    exact = subgraph.type(operand).dtype.itemsize >= _LIMITS.dtype.itemsize
    return source if exact and _keeps_order(quantization.scales[0]) else None


def _keeps_order(scale: float) -> bool:
    """Whether products of the scale with distinct integers are distinct and finite."""
    return float(_LIMITS.tiny) <= scale <= float(_LIMITS.max) / (1 << _MOST_BITS)
