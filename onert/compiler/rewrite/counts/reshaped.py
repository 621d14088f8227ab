"""Reshapes of tensors with valid first entries."""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from onert.ir import Operation
from onert.ir.ops.data_movement.fill import CountedWhere, Within
from onert.ir.ops.data_movement.gather import GatherNd
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import static

from .counting import MOST_SIZED, Counted, CountedInputs, CountedResults, Writer
from .extents import Extent, exactly, times


def reshaped(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """A reshape that merges the counted dimension with dimensions beside it, or splits it; otherwise a reshape of the
    compacted valid elements."""
    op, x = operation.op, inputs[0]
    assert isinstance(op, Reshape)
    if x is None or any(inputs[1:]) or (op.new_shape is None and len(inputs) < 2):
        return None
    dims = _dims(w, operation)
    if dims is None or 0 in w.types[x.operand].shape:
        return None
    found = None if x.more else _single_axis(w, op, x, _solved(w, x, dims))
    return found if found is not None or w.types[x.operand].rank == 1 else _single_axis(w, op, _flat(w, x), dims)


def _solved(w: Writer, x: Counted, wanted: list[Extent]) -> list[Extent]:
    """The dimensions, with -1 as a number if it is beside a multiple of the count; without valid entries, -1 could be
    any number, and is this one too.
    """
    counted = [c for c in wanted if c.exact is None]
    each = math.prod(static(w.types[x.operand].shape)) // w.bound(x)
    if len(counted) != 1 or counted[0].constant or [c for c, _ in counted[0].terms or ()] != [x.count]:
        return wanted
    ((_, multiple),) = counted[0].terms or ()
    beside = multiple * math.prod(c.low for c in wanted if c.exact not in (None, -1))
    if not beside or each % beside:
        return wanted
    return [exactly(each // beside) if c.exact == -1 else c for c in wanted]


def _flat(w: Writer, x: Counted) -> Counted:
    """The valid elements, compacted to a vector."""
    type_ = w.types[x.operand]
    mask = w.add(BroadcastTo(), w.valid_mask(x), w.integers(type_.shape))
    places, count = w.add_many(CountedWhere(), mask)
    elements = w.add(GatherNd(), x.operand, places, quantization=type_.quantization)
    return Counted(elements, count, 0, False)


def _single_axis(w: Writer, op: Reshape, x: Counted, dims: list[Extent]) -> CountedResults | None:
    shape = static(w.types[x.operand].shape)
    open_ = [at for at, each in enumerate(dims) if each.exact in (None, -1)]
    if not open_:
        return _reshaped_exactly(w, x, [c.low for c in dims])
    if len(open_) != 1:
        return None
    (at,) = open_
    before = math.prod(c.low for c in dims[:at])
    after = math.prod(c.low for c in dims[at + 1 :])
    outer, inner = math.prod(shape[: x.axis]), math.prod(shape[x.axis + 1 :])
    if not before or not after or before != outer:
        return None  # the valid entries would not come first
    length = times(Extent(0, w.bound(x), ((x.count, 1),)), exactly(inner))
    if dims[at].exact is None and not _same(dims[at], after, length):
        return None
    size, left = divmod(w.bound(x) * inner, after)
    if left:
        return None
    if inner % after == 0:
        count = _times(w, x.count, inner // after)
    else:
        whole = _times(w, x.count, inner)
        rest = w.add(Binary(BinaryKind.FLOOR_MOD), whole, w.number(after))
        remainder_checked = w.add(Within(inclusive=True), rest, w.number(0))
        count = w.sum(w.add(Binary(BinaryKind.FLOOR_DIV), whole, w.number(after)), remainder_checked)
    new = w.integers([size if i == at else c.low for i, c in enumerate(dims)])
    plain = evolve(op, new_shape=None)
    whole = w.add(plain, x.operand, new, quantization=w.types[x.operand].quantization)
    return (Counted(whole, count, at, x.zeros),)


def _reshaped_exactly(w: Writer, x: Counted, dims: list[int]) -> CountedResults | None:
    """A reshape to a known shape, which requires exactly that number of valid entries."""
    type_ = w.types[x.operand]
    one = math.prod(static(type_.shape)) // w.bound(x)
    exact, left = divmod(math.prod(dims), one)
    if left or not 0 < exact <= w.bound(x):
        return None
    zeros, sizes = np.zeros(type_.rank, np.int64), [exact if a == x.axis else -1 for a in range(type_.rank)]
    part = w.add(Slice(), x.operand, w.constant(zeros), w.constant(np.array(sizes)), quantization=type_.quantization)
    checked = w.require_length(part, x.axis, x.count, exact)
    return (w.add(Reshape(tuple(dims)), checked, quantization=type_.quantization),)


def _same(found: Extent, after: int, length: Extent) -> bool:
    """Whether a dimension times `after` is known to equal the number of elements."""
    product = times(found, exactly(after))
    return product.terms is not None and (product.terms, product.constant) == (length.terms, length.constant)


def _times(w: Writer, count: int, number: int) -> int:
    if number == 1:
        return count
    form = (
        Extent(0, w.count_bounds[count] * number, ((count, number),))
        if count in w.count_bounds
        else Extent(0, MOST_SIZED)
    )
    return w.length(form, lambda: w.add(Binary(BinaryKind.MUL), count, w.number(number)))


def _dims(w: Writer, operation: Operation) -> list[Extent] | None:
    op = operation.op
    assert isinstance(op, Reshape)
    if op.new_shape is not None:
        return [exactly(d) for d in op.new_shape]
    cells = w.extents.of(operation.used[1])
    return None if cells is None or cells.shape != w.types[operation.used[1]].shape else list(cells.reshape(-1))
