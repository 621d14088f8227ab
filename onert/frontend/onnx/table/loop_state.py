"""The state of a loop, whose first values may have other shapes than later ones, and the lists it adds to.

Paddle's exporter passes a placeholder of any shape for a variable that the body assigns before it is read, and a scalar
for one that is a tensor of one element after an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from onert.frontend.onnx.building import ints, reshape
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.messages import Graph
from onert.frontend.onnx.node import names_read
from onert.ir import DType, ModelError, TensorType
from onert.ir.analysis.model_inference import join
from onert.ir.ops.control_flow.sequences import VARIANT, SequenceInsert, SequenceJoin, SequenceOf
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims
from onert.ir.shape import compatible


def unread_state(d: Draft, body: Graph, count: int, trips: int | None, start: int) -> frozenset[int]:
    """The positions of state values that no node of the body reads, if the loop is certain to run at least once."""
    most, goes = None if trips is None else d.value(trips), d.value(start)
    runs = (trips is None or (most is not None and int(most) > 0)) and goes is not None and bool(goes)
    if not runs:
        return frozenset()
    read = {name for node in body.nodes for name in names_read(node, d.steps)}
    read |= {output.name for output in body.outputs}
    return frozenset(at for at, each in enumerate(body.inputs[2 : 2 + count]) if each.name not in read)


def widened_state(before: Sequence[TensorType], after: Sequence[TensorType], unread: Set[int]) -> list[TensorType]:
    """Types that hold before and after an iteration; only after it for `unread` values. A single element whose rank
    changes has its later shape, because broadcasting makes no difference between the two."""
    return [
        new if at in unread or (old.rank != new.rank and _is_single(old) and _is_single(new)) else join(old, new)
        for at, (old, new) in enumerate(zip(before, after, strict=True))
    ]


def first_values(d: Draft, initial: Sequence[int], types: Sequence[TensorType], unread: Set[int]) -> list[int]:
    """The first values of a loop's state in the state's types. An unread one of another shape is replaced by zeros."""
    return [_first_value(d, i, t, at in unread) for at, (i, t) in enumerate(zip(initial, types, strict=True))]


def _first_value(d: Draft, initial: int, type_: TensorType, unread: bool) -> int:
    found = d.type(initial)
    if not type_.ranked or (found.ranked and compatible(found.shape, type_.shape)):
        return initial
    if _is_single(found) and all(size in (1, None) for size in type_.shape):
        return reshape(d, initial, (1,) * type_.rank)
    if not unread or type_.dtype.is_handle:
        raise ModelError(f"its state is {found} at first and {type_} later, expected one rank")
    zero = d.constant(np.zeros((), type_.dtype.numpy), type_.dtype)
    return d.add(Fill(), ints(d, [size or 0 for size in type_.shape]), zero)


def _is_single(type_: TensorType) -> bool:
    """Whether a tensor has one element, whatever its rank."""
    return type_.ranked and all(size == 1 for size in type_.shape)


class ScanOutput:
    """The entries that a loop's iterations add, along a new first axis; a sequence if their shapes may differ."""

    def __init__(self, inner: Draft, item: int) -> None:
        found = inner.type(item)
        self.item = item
        self.each = found.with_data(None)
        self.type = TensorType(found.dtype, (None, *found.shape)) if found.is_static else VARIANT

    def empty(self, d: Draft) -> int:
        if self.type is VARIANT:
            return d.add(SequenceOf())
        shape = (0, *(s or 0 for s in self.type.shape[1:]))
        return d.constant(np.zeros(shape, self.type.dtype.numpy), self.type.dtype)

    def append(self, inner: Draft, items: int) -> int:
        if self.type is VARIANT:
            return inner.add(SequenceInsert(), items, self.item)
        return inner.add(Concat(0), items, inner.add(ExpandDims(), self.item, inner.constant(0, DType.INT32)))

    def stacked(self, d: Draft, items: int) -> int:
        """The list as a tensor, after the loop."""
        if self.type is not VARIANT:
            return items
        shape = self.each.shape if self.each.ranked else None
        return d.add(SequenceJoin(self.each.dtype, shape, 0, new=True), items)
