"""Layers of bytes whose sums become bytes again by a few float32 operations.

These are a factor, a term, a division by a scale, and bounds anywhere between. Each is non-decreasing, so all bounds
may be applied last. Such a layer is lowered like one of TFLite's with another scaling of its sums (`Scaling.QUOTIENT`
and `PRODUCT`), including the kernels for depthwise and filtered windows and the tables of byte functions that follow.
Each operation is rounded as it would be on its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, DType, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.rescale import filter_scales
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import WHOLE, Requantize, Scaling
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.int8_filters import Filter, Outputs
from onert_llvm.lower.elementwise.int8_lookup_tables import results
from onert_llvm.schedule.reciprocals import LEAST, MOST, reciprocal
from onert_llvm.schedule.weight_packing import pack_real_terms, sum_bounds

_EITHER = (BinaryKind.MUL, BinaryKind.ADD, BinaryKind.MAXIMUM, BinaryKind.MINIMUM)
"""Commutative functions."""
_CLAMPS = (UnaryKind.RELU, UnaryKind.RELU6, UnaryKind.RELU_N1_TO_1, UnaryKind.RELU_0_TO_1)
_WHOLE = float(1 << 21)
"""Quotients from here on are not rounded by adding `WHOLE`."""


@frozen(eq=False)
class ColumnScaling:
    """How the sums of n columns become bytes within `limits`: scaling, rows of per-column numbers, and other slots."""

    scaling: Scaling
    rows: tuple[Array, Array]
    slots: dict[str, Slot]
    limits: tuple[int, int]


@frozen(eq=False)
class ScaledOutputs(Outputs):
    """Outputs whose sums are scaled as float operations specify."""

    how: ColumnScaling | None = None

    def scaled(
        self, lowering: Lowering, weights: Filter, part: slice | Array = slice(None), places: Array | None = None
    ) -> tuple[dict[str, Slot], Requantize]:
        assert self.how is not None
        isa, start = lowering.isa, self.folded(weights, None, lowering.isa)
        first, second = (row[part] for row in self.how.rows)
        columns = lowering.deferred_constant(lambda: pack_real_terms(start(), first, second, isa, places))
        slots = {**self.how.slots, "columns": columns}
        return self.ended(lowering, slots, self.how.limits, Requantize(self.how.scaling))


def outputs(lowering: Lowering, operations: Sequence[int], table: Array | None) -> ScaledOutputs | None:
    """How the sums of the first operation become the last one's bytes, then the table's; None in other cases."""
    subgraph, isa = lowering.subgraph, lowering.isa
    types = subgraph.types(subgraph.operations[operations[0]])
    last = subgraph.type(subgraph.operations[operations[-1]].outputs[0])
    if not isa.fma or isa.products is not None or last.dtype is not types.input(0).dtype:
        return None
    how = _column_scaling(subgraph, operations)
    return None if how is None else ScaledOutputs(types, Activation.NONE, table=table, how=how)


def _column_scaling(subgraph: Subgraph, operations: Sequence[int]) -> ColumnScaling | None:
    operation = subgraph.operations[operations[0]]
    types = subgraph.types(operation)
    x, weight = types.input(0), types.input(1)
    assert weight.value is not None
    filters = np.moveaxis(weight.value, 3 if isinstance(operation.op, DepthwiseConv2D) else 0, -1)
    n = filters.shape[-1]
    first = np.broadcast_to(np.float32(x.scale) * filter_scales(weight), (n,))
    steps = _steps(subgraph, operations, n)
    limits = None if steps is None else _limits(subgraph, operations)
    if steps is None or limits is None:
        return None
    kinds, term, factor, zero = steps
    spread = sum_bounds(filters.reshape(-1, n), None, x.zero_point, 0, x.dtype is DType.INT8)
    each = (first, factor)
    if any((row < LEAST).any() or (row > MOST).any() for row in each) or (np.abs(term) > MOST).any():
        return None
    slots: dict[str, Slot] = {"zero_point": zero - WHOLE}
    if kinds is BinaryKind.MUL:
        most = (spread + np.abs(term)) * factor
        found = None if (first != 1).any() else ColumnScaling(Scaling.PRODUCT, (term, factor), slots, limits)
    else:
        most = (spread * first.astype(np.float64) + np.abs(term)) / factor
        both = reciprocal(factor[0], 2 + max(abs(limit - zero) for limit in limits))
        alike = both is not None and (factor == factor[0]).all()
        if both is not None:
            slots |= {"inverse": float(both[0]), "rest": float(both[1])}
        found = ColumnScaling(Scaling.QUOTIENT, (first, term), slots, limits) if alike else None
    return found if (most < _WHOLE).all() else None


def _limits(subgraph: Subgraph, operations: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest byte of all columns; None if bounds differ, or leave only one value."""
    values: dict[int, Array] = {}
    values[subgraph.operations[operations[0]].outputs[0]] = np.array([-np.inf, np.inf], np.float32)
    for at in operations[1:]:
        operation = subgraph.operations[at]
        given = [values[i] if i in values else _number(subgraph, i) for i in operation.used]
        values[operation.outputs[0]] = results(operation.op, subgraph.types(operation), given)
    low, high = values[subgraph.operations[operations[-1]].outputs[0]].astype(np.int64).tolist()
    return (low, high) if low < high else None


def _number(subgraph: Subgraph, operand: int) -> Array:
    """A constant's first element, for use at infinity: factors are positive and terms finite, so any will do."""
    value = subgraph.operands[operand].known.value
    assert value is not None
    return value.reshape(-1)[:1]


def _steps(subgraph: Subgraph, operations: Sequence[int], n: int) -> tuple[BinaryKind, Array, Array, int] | None:
    """The term added to the sums' real numbers, the kind and operand of the multiplication or division that follows,
    and the zero point added after rounding; None for anything else.
    """
    current = subgraph.operations[operations[0]].outputs[0]
    found: list[tuple[BinaryKind, Array]] = []
    rounded = 0
    for at in operations[1:-1]:
        operation = subgraph.operations[at]
        step = _step(subgraph, operation, current, n)
        current = operation.outputs[0]
        if step is None or subgraph.type(current).dtype is not DType.FLOAT32:
            return None
        if operation.op == Unary(UnaryKind.ROUND):
            rounded = len(found) if not rounded else -1
        found += step
    before, after = found[:rounded], found[rounded:]
    if rounded < 1 or len(after) > 1:
        return None
    kinds = [kind for kind, _ in before]
    if kinds[:-1] not in ([], [BinaryKind.ADD]) or kinds[-1] is BinaryKind.ADD:
        return None
    zero = after[0][1] if after else np.zeros(1, np.float32)
    if (after and after[0][0] is not BinaryKind.ADD) or (zero != zero[0]).any() or not float(zero[0]).is_integer():
        return None
    if abs(zero[0]) > 1 << 16:
        return None
    term = before[0][1] if len(before) > 1 else np.zeros(n, np.float32)
    return kinds[-1], term, before[-1][1], int(zero[0])


def _step(subgraph: Subgraph, operation: Operation, current: int, n: int) -> list[tuple[BinaryKind, Array]] | None:
    """What an operation adds, multiplies or divides by in each of n columns; empty for bounds; None for others."""
    op, used = operation.op, operation.used
    if isinstance(op, Unary):
        return [] if op.kind in _CLAMPS or op.kind is UnaryKind.ROUND else None
    if not isinstance(op, Binary) or op.activation.value.function is not None or used.count(current) != 1:
        return None
    known = subgraph.operands[used[1 - used.index(current)]].known.value
    if known is None or known.size not in (1, n) or (used[0] != current and op.kind not in _EITHER):
        return None
    value = np.broadcast_to(known.reshape(-1), (n,))
    if op.kind in (BinaryKind.MAXIMUM, BinaryKind.MINIMUM):
        return [] if known.size == 1 and not np.isnan(known).any() else None
    if op.kind is BinaryKind.SUB:
        return [(BinaryKind.ADD, -value)]
    return [(op.kind, value)] if op.kind in (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.DIV) else None
