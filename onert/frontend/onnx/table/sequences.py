"""Sequences and optionals: resolved at import if their content is known, otherwise operands."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import require_rank
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.messages import ValueType
from onert.frontend.onnx.node import EnclosingGraph, Importer, Node, Optional_, RuntimeValue, Sequence_, Value
from onert.frontend.onnx.runtime_values import (
    as_runtime_value,
    entry_at,
    entry_type,
    operand_of,
    tensor_type,
    type_of,
    with_entry,
)
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import DType, ModelError
from onert.ir.ops.control_flow.sequences import (
    SequenceErase,
    SequenceInsert,
    SequenceJoin,
    SequenceLength,
    SequenceOf,
    SplitToSequence,
)
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import Reshape, Squeeze
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.shape import normalize_axis

from .control import add_loop, along


def sequence(node: Node, index: int) -> Sequence_ | RuntimeValue:
    found = node.any(index)
    if isinstance(found, Optional_) and isinstance(found.content, Sequence_ | RuntimeValue):
        return found.content
    if isinstance(found, RuntimeValue) and found.type.kind == "sequence":
        return found
    if not isinstance(found, Sequence_):
        raise ModelError(f"input {index} is {type_of(node.draft, found).kind}, expected a sequence")
    return found


def _place(node: Node, index: int, default: int) -> int | None:
    """A position; None if it is known only at run time."""
    if not node.has(index):
        return default
    found = node.value(index)
    return None if found is None else int(found.reshape(-1)[0])


def _insert(node: Node) -> Value:
    d, old = node.draft, sequence(node, 0)
    at = _place(node, 2, len(old.items)) if isinstance(old, Sequence_) else None
    if at is None or isinstance(old, RuntimeValue):
        old = as_runtime_value(d, old)
        operand = d.add(SequenceInsert(), old.operand, node.input(1), node.optional(2))
        return RuntimeValue(operand, with_entry(old.type, tensor_type(node.type(1))))
    count = len(old.items)
    if not -count <= at <= count:
        raise ModelError(f"position {at} is outside of a sequence of {count}")
    at = at + count if at < 0 else at
    return Sequence_((*old.items[:at], node.input(1), *old.items[at:]))


def _at(node: Node) -> Value:
    d, old = node.draft, sequence(node, 0)
    at = _place(node, 1, -1)
    if at is None or isinstance(old, RuntimeValue):
        return entry_at(d, as_runtime_value(d, old), node.input(1))
    return old.items[_inside(at, len(old.items))]


def _inside(at: int, count: int) -> int:
    if not -count <= at < count:
        raise ModelError(f"position {at} is outside of a sequence of {count}")
    return at % count


def _erase(node: Node) -> Value:
    d, old = node.draft, sequence(node, 0)
    at = _place(node, 1, -1)
    if at is None or isinstance(old, RuntimeValue):
        old = as_runtime_value(d, old)
        place = node.input(1) if node.has(1) else d.constant(-1, DType.INT64)
        return RuntimeValue(d.add(SequenceErase(), old.operand, place), old.type)
    at = _inside(at, len(old.items))
    return Sequence_((*old.items[:at], *old.items[at + 1 :]), old.element)


def _length(node: Node) -> Value:
    old = sequence(node, 0)
    if isinstance(old, RuntimeValue):
        return node.draft.add(SequenceLength(), old.operand)
    return node.draft.constant(len(old.items), DType.INT64)


def _concatenated(node: Node) -> Value:
    old, axis, new = sequence(node, 0), node.integer("axis"), node.flag("new_axis")
    if isinstance(old, RuntimeValue):
        dtype, shape = entry_type(old)
        if not new or shape is None:
            return node.draft.add(SequenceJoin(dtype, shape, axis, new), old.operand)
        return along(node.draft, node.draft.add(SequenceJoin(dtype, shape, 0, new), old.operand), axis)
    if not old.items:
        raise ModelError("the sequence is empty, so there is nothing to concatenate")
    return node.draft.add(Pack(axis) if new else Concat(axis), *old.items)


def _size_of_each(node: Node) -> int | None:
    """The size of the parts if `split` is an unknown number of equal sizes, as in exported loops over rows."""
    made = node.draft.definer(node.input(1))
    size = node.draft.value(made.used[1]) if made is not None and isinstance(made.op, Fill) else None
    return None if size is None else int(size.reshape(-1)[0])


def _split(node: Node) -> Value:
    d, x = node.draft, node.input(0)
    axis = normalize_axis(node.integer("axis"), require_rank(d, x, 1))
    total, keep = d.type(x).shape[axis], node.flag("keepdims", default=True)
    sizes = node.value(1)
    if total is None or (node.has(1) and sizes is None):
        dims = list(d.type(x).shape)
        dims[axis] = _size_of_each(node) if node.has(1) else 1
        squeezed = not keep and not node.has(1)
        if squeezed:
            del dims[axis]
        operand = d.add(SplitToSequence(axis, squeezed), x, node.optional(1))
        return RuntimeValue(operand, ValueType("sequence", element=ValueType("tensor", d.type(x).dtype, tuple(dims))))
    if sizes is None:
        each = [1] * total
    elif sizes.ndim == 0:
        size = int(sizes)
        if size < 1:
            raise ModelError(f"split is {size}, expected at least 1")
        each = [min(size, total - at) for at in range(0, total, size)]
    else:
        each = [int(s) for s in sizes]
    d.steps.spend(10 * len(each), "splitting to a sequence")
    items = split(d, x, each, axis) if each else ()
    if sizes is None and not keep:
        items = tuple(d.add(Squeeze((axis,)), i) for i in items)
    return Sequence_(items, d.type(x).dtype)


def _mapped(node: Node) -> tuple[Value, ...]:
    """Apply a graph to each entry of a sequence, paired with those of other sequences of its length, or tensors."""
    d, body = node.draft, node.graph("body")
    values = [node.any(at) for at in range(len(node.inputs))]
    first = sequence(node, 0)
    if all(isinstance(value, int | Sequence_) for value in values) and isinstance(first, Sequence_):
        rows = []
        for at in range(len(first.items)):
            given = [value.items[at] if isinstance(value, Sequence_) else value for value in values]
            rows.append(node.enclosing.inline(body, given))
        columns = zip(*rows, strict=True) if rows else [()] * len(body.outputs)
        types = [None if o.type is None else o.type.dtype for o in body.outputs]
        return tuple(Sequence_(_tensors(c), t) for c, t in zip(columns, types, strict=True))
    containers = [as_runtime_value(d, value) if not isinstance(value, int) else value for value in values]
    steps = d.add(SequenceLength(), as_runtime_value(d, first).operand)
    found: list[ValueType] = []

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        given: list[Value] = []
        for value in containers:
            if isinstance(value, int):
                given.append(capture(d, inner, value))
            else:
                given.append(entry_at(inner, RuntimeValue(capture(d, inner, value.operand), value.type), at))
        results = scope.inline(body, given)
        found[:] = [type_of(inner, result) for result in results]
        grown = [inner.add(SequenceInsert(), s, operand_of(inner, r)) for s, r in zip(now, results, strict=True)]
        return go, grown, []

    begin = d.constant(np.array(True), DType.BOOL)
    empty = [d.add(SequenceOf()) for _ in body.outputs]
    last, _ = add_loop(node, steps, begin, empty, each)
    return tuple(
        RuntimeValue(operand, ValueType("sequence", element=kind)) for operand, kind in zip(last, found, strict=True)
    )


def _tensors(values: tuple[Value, ...]) -> tuple[int, ...]:
    found = tuple(value for value in values if isinstance(value, int))
    if len(found) != len(values):
        raise ModelError("the body returns a value that is not a tensor")
    return found


def _optional(node: Node) -> Value:
    found = node.any(0) if node.has(0) else None
    if isinstance(found, Optional_) or (isinstance(found, RuntimeValue) and found.type.kind == "optional"):
        raise ModelError("an optional of an optional is not supported")
    if found is None:
        said = node.value_type("type")
        if said is not None:
            return RuntimeValue(node.draft.add(SequenceOf()), ValueType("optional", element=said))
    return Optional_(found)


def _content(node: Node) -> Value:
    found = node.any(0)
    if isinstance(found, RuntimeValue) and found.type.kind == "optional":
        return entry_at(node.draft, found, node.draft.constant(0, DType.INT64))
    if not isinstance(found, Optional_):
        return found
    if found.content is None:
        raise ModelError("the optional is empty")
    return found.content


def _has_content(node: Node) -> Value:
    d = node.draft
    found = node.any(0) if node.has(0) else Optional_(None)
    if isinstance(found, RuntimeValue) and found.type.kind == "optional":
        return d.add(Reshape(()), d.add(Cast(DType.BOOL), d.add(SequenceLength(), found.operand)))
    there = not isinstance(found, Optional_) or found.content is not None
    return d.constant(there, DType.BOOL)


TABLE: dict[str, Importer] = {
    "ConcatFromSequence": _concatenated,
    "Optional": _optional,
    "OptionalGetElement": _content,
    "OptionalHasElement": _has_content,
    "SequenceAt": _at,
    "SequenceConstruct": lambda node: Sequence_(node.operands()),
    "SequenceEmpty": lambda node: Sequence_((), node.element_type("dtype", DType.FLOAT32)),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _mapped,
    "SplitToSequence": _split,
}
