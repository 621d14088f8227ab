"""Random numbers whose count is known only at run time, and random classes for valid rows.

The largest possible count is drawn; the generator then advances by what the run actually requested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial, reduce

import numpy as np

from onert.ir import DType, Op, Operation
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.random_numbers import MultinomialFrom, RandomFrom
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.shape import static

from .counting import MOST_SIZED, Counted, CountedInputs, CountedResults, Rule, Writer, first_of
from .sized import number_at, open_sizes


def _times(w: Writer, a: int, b: int) -> int:
    return w.add(Binary(BinaryKind.MUL), a, b)


def _blocks_of_four(w: Writer, count: int) -> int:
    """The number of blocks of four for a count, rounded up."""
    return w.add(Binary(BinaryKind.FLOOR_DIV), w.sum(count, w.number(3)), w.number(4))


def _advanced(w: Writer, state: int, blocks: int) -> int:
    """The state of a generator advanced by a number of blocks."""
    steps = _times(w, w.constant(np.array([0, 1, 0], np.int64)), blocks)
    return w.add(Bitcast(DType.UINT64), w.sum(w.add(Bitcast(DType.INT64), state), steps))


def _numbers(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Random numbers of a computed shape. They are consecutive in the run's actual shape, so unless only the first axis
    is counted, each is gathered by its position there."""
    state, dims = operation.used
    type_ = w.types[dims]
    found = None if any(inputs) or type_.rank != 1 else open_sizes(w, dims, type_.shape[0] or 0)
    if found is None:
        return None
    cells, unknown = found
    sizes = [each.high for each in cells]
    total = math.prod(sizes)
    if not 0 < total <= MOST_SIZED:
        return None
    counts = {at: number_at(w, dims, at, cells[at]) for at in unknown}
    numbers = w.add_many(operation.op, state, w.constant(np.array([total], np.int64)))[1]
    lengths = [counts[at] if at in counts else w.number(size) for at, size in enumerate(sizes)]
    if math.prod(sizes[: unknown[-1]]) == 1:
        whole = w.add(Reshape(), numbers, w.constant(np.array(sizes, np.int64)))
    else:
        along = (np.arange(size).reshape(-1, *(1,) * (len(sizes) - 1 - at)) for at, size in enumerate(sizes))
        places = w.constant(next(along))
        for length, more in zip(lengths[1:], along, strict=True):
            places = w.sum(_times(w, places, length), w.constant(more))
        whole = w.add(Gather(0), numbers, places)
    drawn = reduce(partial(_times, w), lengths)
    return _advanced(w, state, _blocks_of_four(w, drawn)), first_of(whole, counts)


def _classes(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Random classes: invalid classes get the logit -inf and are never drawn; invalid rows get equal logits."""
    op, (state, logits, samples), counted = operation.op, operation.used, inputs[1]
    axes = {} if counted is None else counted.axes
    whole = logits if counted is None else counted.operand
    batch, count = static(w.types[whole].shape)[0], w.extents.one(samples)
    if inputs[0] or inputs[2] or count is None or not 0 < count.high <= MOST_SIZED:
        return None
    if count.exact is None and batch != 1:
        return None
    for axis, value in ((1, -math.inf), (0, 0.0)):
        if axis in axes:
            whole = w.filled(Counted(whole, axes[axis], axis, False), value)
    classes = w.add_many(op, state, whole, w.constant(np.array(count.high, np.int32)))[1]
    each = w.length(count, lambda: w.as_count(samples))
    counts = {at: n for at, n in ((0, axes.get(0)), (1, None if count.exact else each)) if n is not None}
    blocks = _times(
        w, _times(w, _blocks_of_four(w, each), axes.get(0, w.number(batch))), w.number(MultinomialFrom.reserved(1, 4))
    )
    return _advanced(w, state, blocks), first_of(classes, counts)


RANDOM: Mapping[type[Op], Rule] = {RandomFrom: _numbers, MultinomialFrom: _classes}
