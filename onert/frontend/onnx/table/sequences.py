"""Sequences and optionals, of which it is known what is in them: they are gone when the graph is made."""

from __future__ import annotations

from onert.frontend.onnx.building import require_rank
from onert.frontend.onnx.node import Importer, Node, Optional_, Sequence_, Value
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import Squeeze
from onert.ir.shape import normalize_axis


def sequence(node: Node, index: int) -> Sequence_:
    found = node.any(index)
    if isinstance(found, Optional_) and isinstance(found.content, Sequence_):
        return found.content
    if not isinstance(found, Sequence_):
        raise ModelError(f"input {index} is a tensor, expected a sequence")
    return found


def _place(node: Node, index: int, count: int, default: int) -> int:
    """A position from -count to count - 1 (to count where something is put in)."""
    if not node.has(index):
        return default
    return int(node.constant(index, "position").reshape(-1)[0])


def _construct(node: Node) -> Value:
    return Sequence_(node.operands())


def _empty(node: Node) -> Value:
    return Sequence_((), node.element_type("dtype", DType.FLOAT32))


def _insert(node: Node) -> Value:
    old = sequence(node, 0)
    count = len(old.items)
    at = _place(node, 2, count, count)
    if not -count <= at <= count:
        raise ModelError(f"position {at} is outside of a sequence of {count}")
    at = at + count if at < 0 else at
    return Sequence_((*old.items[:at], node.input(1), *old.items[at:]))


def _at(node: Node) -> Value:
    old = sequence(node, 0)
    return old.items[_inside(_place(node, 1, len(old.items), -1), len(old.items))]


def _inside(at: int, count: int) -> int:
    if not -count <= at < count:
        raise ModelError(f"position {at} is outside of a sequence of {count}")
    return at % count


def _erase(node: Node) -> Value:
    old = sequence(node, 0)
    at = _inside(_place(node, 1, len(old.items), -1), len(old.items))
    return Sequence_((*old.items[:at], *old.items[at + 1 :]), old.element)


def _length(node: Node) -> Value:
    return node.draft.constant(len(sequence(node, 0).items), DType.INT64)


def _concatenated(node: Node) -> Value:
    items, axis = sequence(node, 0).items, node.integer("axis")
    if not items:
        raise ModelError("the sequence is empty, there is nothing to join")
    return node.draft.add(Pack(axis) if node.flag("new_axis") else Concat(axis), *items)


def _split(node: Node) -> Value:
    d, x = node.draft, node.input(0)
    axis = normalize_axis(node.integer("axis"), require_rank(d, x, 1))
    total = d.type(x).shape[axis]
    sizes = node.constant(1, "split") if node.has(1) else None
    if total is None:
        raise ModelError(f"dimension {axis} of {d.type(x)} is not known, expected one that can be split")
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
    if sizes is None and not node.flag("keepdims", default=True):
        items = tuple(d.add(Squeeze((axis,)), i) for i in items)
    return Sequence_(items, d.type(x).dtype)


def _optional(node: Node) -> Value:
    found = node.any(0) if node.has(0) else None
    if isinstance(found, Optional_):
        raise ModelError("an optional of an optional is not supported")
    return Optional_(found)


def _content(node: Node) -> Value:
    found = node.any(0)
    if not isinstance(found, Optional_):
        return found
    if found.content is None:
        raise ModelError("there is nothing in the optional")
    return found.content


def _has_content(node: Node) -> Value:
    found = node.any(0) if node.has(0) else Optional_(None)
    there = not isinstance(found, Optional_) or found.content is not None
    return node.draft.constant(there, DType.BOOL)


_IMPORTERS: dict[str, Importer] = {
    "ConcatFromSequence": _concatenated,
    "Optional": _optional,
    "OptionalGetElement": _content,
    "OptionalHasElement": _has_content,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
