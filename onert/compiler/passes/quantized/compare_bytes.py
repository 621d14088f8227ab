"""Places of the greatest and the least are found among integers, not among the floats that these stand for."""

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
"""Of integers whose products with a scale differ as floats: these have 24."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def compare_bytes(subgraph: Subgraph) -> Subgraph:
    """Find the place of an extreme before numbers are dequantised: one positive scale keeps their order, and whichever
    are equal.

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
    """The integers that floats are in the same order as; None where there are none."""
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
    """Whether products of a scale with any two of the integers differ, and neither is infinite."""
    return float(_LIMITS.tiny) <= scale <= float(_LIMITS.max) / (1 << _MOST_BITS)
