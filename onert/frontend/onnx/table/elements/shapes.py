"""Constants, shapes, reshaping and casts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.onnx.building import (
    axes_of,
    binary,
    cast,
    concat,
    convert,
    dimension,
    ints,
    require_rank,
    reshape,
    reshape_by,
    shape_of,
)
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Branch, Fork, Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Fill, Range, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastArgs, BroadcastTo, Tile
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.lookup.spelling import ReadNumbers, SpellNumbers
from onert.ir.ops.reduction.reduce import Reduce, Reduction


def _constant(node: Node) -> int:
    d = node.draft
    for name in ("value", "sparse_value"):
        found = node.tensor(name)
        if found is not None:
            return d.constant(found[0], found[1])
    if node.has_attribute("value_float"):
        return d.constant(node.number("value_float"), DType.FLOAT32)
    if node.has_attribute("value_int"):
        return d.constant(node.integer("value_int"), DType.INT64)
    if node.has_attribute("value_floats"):
        return d.constant(node.numbers("value_floats") or (), DType.FLOAT32)
    if node.has_attribute("value_ints"):
        return d.constant(node.integers("value_ints") or (), DType.INT64)
    if node.has_attribute("value_string"):
        return d.constant(np.array(node.text("value_string").encode(), object), DType.STRING)
    if node.has_attribute("value_strings"):
        return d.constant(np.array([t.encode() for t in node.texts("value_strings")], object), DType.STRING)
    raise ModelError("has no value attribute")


def _converted(node: Node, to: DType) -> int:
    given = node.type(0).dtype
    if to is DType.STRING:
        return node.input(0) if given is DType.STRING else node.draft.add(SpellNumbers(), node.input(0))
    if given is DType.STRING:
        return node.draft.add(ReadNumbers(to), node.input(0))
    saturate, rounding = node.flag("saturate", default=True), node.text("round_mode", "up")
    return convert(node.draft, node.input(0), to, saturate=saturate, rounding=rounding)


def _shape(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    start, end, _ = slice(node.integer("start"), node.integer("end", rank)).indices(rank)
    whole = shape_of(d, x)
    if (start, end) == (0, rank):
        return whole
    return d.add(Gather(0), whole, ints(d, range(start, end)))


def _size(node: Node) -> int:
    d, x = node.draft, node.input(0)
    require_rank(d, x)
    if d.type(x).is_static:
        return d.constant(math.prod(s or 0 for s in d.type(x).shape), DType.INT64)
    return d.add(Reduce(Reduction.PROD), shape_of(d, x), ints(d, [0], DType.INT32))


def _reshape(node: Node) -> int:
    """A 0 copies the dimension of x at its index, unless `allowzero`; a -1 is inferred from the others."""
    d, x = node.draft, node.input(0)
    shape = node.draft.constant(node.integers("shape") or (), DType.INT64) if node.version < 5 else node.input(1)
    known = d.known_elements(shape)
    if known is None and not node.flag("allowzero"):
        shape = _zeros_replaced(d, x, shape)
    if node.flag("allowzero") or known is None:
        return d.add(Reshape(), x, shape) if known is None else reshape_by(d, x, shape)
    entries = list(known.reshape(-1))
    if 0 not in entries:
        return reshape_by(d, x, shape)
    rank = require_rank(d, x)
    if 0 in entries[rank:]:
        raise ModelError(f"the new shape {entries} has a 0 past the dimensions of {d.type(x)}")
    sizes = [d.type(x).shape[at] if v == 0 else v for at, v in enumerate(entries)]
    if None not in sizes:
        return reshape(d, x, sizes)
    if sizes.count(None) == 1 and None not in entries and all(v is None or v > 0 for v in sizes):
        return reshape(d, x, sizes)
    parts = [dimension(d, x, at) if v == 0 else d.add(Gather(0), shape, ints(d, [at])) for at, v in enumerate(entries)]
    return reshape_by(d, x, concat(d, parts))


def _zeros_replaced(d: Draft, x: int, shape: int) -> int:
    """A shape known only at run time, with its zeros replaced by x's dimensions at the same index."""
    count, rank = d.type(shape).shape[0] if d.type(shape).rank == 1 else None, require_rank(d, x)
    if count is None:
        if d.type(shape).rank != 1:
            return shape
        given = Expression(d, cast(d, shape, DType.INT64))
        dims = given.of(shape_of(d, x)).concat([given * 0], 0).take(given.size(0).arange(), 0)
        return given.equals(0).select(dims, given).operand
    own = concat(d, [shape_of(d, x), ints(d, [0] * count)]) if count > rank else shape_of(d, x)
    own = d.add(Gather(0), own, ints(d, range(count)))
    wide = cast(d, shape, DType.INT64)
    zero = d.add(Comparison(ComparisonKind.EQUAL), wide, d.constant(0, DType.INT64))
    return d.add(Select(), zero, own, wide)


def _axes(node: Node, since: int) -> tuple[int, ...] | None:
    """The axes, an attribute before opset `since` and an input from it on; None if they are absent."""
    if node.version < since:
        return node.integers("axes")
    return tuple(int(a) for a in node.constant(1, "axes").reshape(-1)) if node.has(1) else None


def _dynamic_axis_count(node: Node) -> int | None:
    """The number of axes if they are known only at run time; None otherwise."""
    if node.version < 13 or not node.has(1) or node.value(1) is not None:
        return None
    count = node.type(1).shape[0] if node.type(1).rank == 1 else None
    if count is None:
        raise ModelError("neither the axes (input 1) nor their number is constant, which is not supported")
    return count


_MOST_OPEN = 3
"""The most dimensions known only at run time: all that follows is built for every combination."""


def _squeeze(node: Node) -> int | Fork:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    if _dynamic_axis_count(node) is not None:
        return without_axes(d, x, node.input(1))
    axes = _axes(node, 13)
    if axes is None:
        shape = d.type(x).shape
        axes = tuple(i for i, s in enumerate(shape) if s == 1)
        open_ = [i for i, s in enumerate(shape) if s is None]
        if len(open_) > _MOST_OPEN:
            raise ModelError(f"has input {d.type(x)} and no axes, expected at most {_MOST_OPEN} unknown dimensions")
        if open_:
            return _fork_on_sizes(d, x, axes, open_)
    return d.add(Squeeze(axes_of(axes, rank)), x) if axes else x


def _fork_on_sizes(d: Draft, x: int, axes: Sequence[int], open_: Sequence[int]) -> Fork:
    """Squeeze the `axes`, and those of the `open_` ones, known only at run time, that are 1."""
    first, *others = open_
    one = d.add(Comparison(ComparisonKind.EQUAL), dimension(d, x, first), ints(d, [1]))

    def without(gone: Sequence[int]) -> Branch:
        def made(inner: Draft) -> tuple[int, ...] | Fork:
            given = capture(d, inner, x)
            if others:
                return _fork_on_sizes(inner, given, gone, others)
            return (inner.add(Squeeze(tuple(sorted(gone))), given) if gone else given,)

        return made

    return Fork(d.add(Reshape(()), one), (without((*axes, first)), without(axes)))


def without_axes(d: Draft, x: int, axes: int) -> int:
    """Remove dimensions of size 1; the axes are known only at run time, but their number is known."""
    return d.add(Reshape(), x, _remaining_dims(d, shape_of(d, x), axes, require_rank(d, x)))


def _remaining_dims(d: Draft, shape: int, axes: int, rank: int) -> int:
    """A shape without the dimensions of some axes, which are marked with 0; the indices of nonzero entries are kept.

    All dimensions are incremented first, so that a dimension of 0 is kept.
    """
    places = binary(d, BinaryKind.FLOOR_MOD, cast(d, axes, DType.INT64), d.constant(rank, DType.INT64))
    count = d.type(axes).shape[0] or 0
    one = d.constant(1, DType.INT64)
    marked = d.add(ScatterElements(), binary(d, BinaryKind.ADD, shape, one), places, ints(d, [0] * count))
    kept = d.add(Reshape((rank - count,)), d.add(Where(), marked))
    return d.add(Gather(0), shape, kept)


def _unsqueeze(node: Node) -> int:
    d, x = node.draft, node.input(0)
    count = _dynamic_axis_count(node)
    if count is not None:
        rank = require_rank(d, x) + count
        places = binary(d, BinaryKind.FLOOR_MOD, cast(d, node.input(1), DType.INT64), d.constant(rank, DType.INT64))
        marked = d.add(ScatterElements(), ints(d, [1] * rank), places, ints(d, [0] * count))
        kept = d.add(Reshape((rank - count,)), d.add(Where(), marked))
        return d.add(Reshape(), x, d.add(ScatterElements(), ints(d, [1] * rank), kept, shape_of(d, x)))
    axes = _axes(node, 13)
    if axes is None:
        raise ModelError("has no axes")
    for axis in sorted(axes_of(axes, require_rank(d, x) + len(axes))):
        x = d.add(ExpandDims(), x, d.constant(axis, DType.INT32))
    return x


def flattened(d: Draft, x: int, axis: int) -> int:
    """The operand as a matrix, with the dimensions before and from the axis on flattened."""
    shape = d.type(x).shape
    front, back = (None if None in s else math.prod(v or 0 for v in s) for s in (shape[:axis], shape[axis:]))
    if (front is not None or back is not None) and 0 not in (front, back):
        return reshape(d, x, (front, back))
    whole = shape_of(d, x)
    sides = [
        d.add(Reduce(Reduction.PROD, keep_dims=True), d.add(Gather(0), whole, ints(d, part)), ints(d, [0], DType.INT32))
        for part in (range(axis), range(axis, len(shape)))
    ]
    return d.add(Reshape(), x, concat(d, sides))


def _flatten(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank, axis = require_rank(d, x), node.integer("axis", 1)
    if not -rank <= axis <= rank:
        raise ModelError(f"axis is {axis}, expected {-rank} to {rank}")
    return flattened(d, x, axis + rank if axis < 0 else axis)


def expanded(d: Draft, x: int, shape: int) -> int:
    """The operand broadcast with a shape, bidirectionally."""
    known, own = d.known_elements(shape), d.type(x).shape
    if known is not None:
        wanted = [None if v is None else int(v) for v in known.reshape(-1)]
        padded = [*(1,) * (len(wanted) - len(own)), *own]
        wanted = [*(1,) * (len(padded) - len(wanted)), *wanted]
        both = [_broadcast_dim(a, b) for a, b in zip(padded, wanted, strict=True)]
        if None not in both:
            return d.add(BroadcastTo(), x, ints(d, [v for v in both if v is not None]))
        out = d.add(BroadcastTo(), x, d.add(BroadcastArgs(), shape_of(d, x), cast(d, shape, DType.INT64)))
        d.declare(out, d.type(out).with_shape(tuple(both)))  # keep the known parts of the shape
        return out
    whole = cast(d, shape, DType.INT64)
    return d.add(BroadcastTo(), x, d.add(BroadcastArgs(), shape_of(d, x), whole))


def _broadcast_dim(a: int | None, b: int | None) -> int | None:
    """The dimension that two dimensions broadcast to; None if it is unknown."""
    if a == 1:
        return b
    if b == 1 or a == b:
        return a
    return None if a is None and b is None else b if a is None else a


def _tile(node: Node) -> int:
    d = node.draft
    if node.version >= 6:
        return d.add(Tile(), node.input(0), node.input(1))
    raise ModelError("is from an opset before 6, which is not supported")


def _constant_of_shape(node: Node) -> int:
    d = node.draft
    given = node.tensor("value")
    value = d.constant(0.0, DType.FLOAT32) if given is None else d.constant(given[0].reshape(()), given[1])
    return d.add(Fill(), node.input(0), value)


def _range(node: Node) -> int:
    """Empty if the step leads away from the limit."""
    d = node.draft
    start, limit, step = (reshape(d, i, ()) for i in node.operands())
    if not all(d.type(i).dtype.is_integer or d.type(i).dtype.is_float for i in (start, limit, step)):
        raise ModelError(f"has inputs {d.type(start)}, {d.type(limit)} and {d.type(step)}, expected numbers")
    values = [d.value(i) for i in (start, limit, step)]
    if all(v is not None for v in values):
        a, b, s = (v.item() for v in values if v is not None)
        if s == 0:
            raise ModelError("the step is 0")
        if (b - a) * s <= 0:
            return d.constant(np.zeros(0, d.type(start).dtype.numpy), d.type(start).dtype)
    return d.add(Range(may_be_empty=True), start, limit, step)


def _eye_like(node: Node) -> int:
    d, x = node.draft, node.input(0)
    type_ = d.type(x)
    if require_rank(d, x) != 2:
        raise ModelError(f"has input {type_}, expected a matrix")
    dtype = node.element_type("dtype", type_.dtype)
    if not type_.is_static:
        given = Expression(d, x)
        rows, columns = (given.size(axis).arange() for axis in (0, 1))
        return (rows.unsqueeze(1) + node.integer("k")).equals(columns).cast(dtype).operand
    high, wide = (s or 0 for s in type_.shape)
    d.memory.spend(high * wide * 8, "an identity matrix")
    return d.constant(np.eye(high, wide, node.integer("k")).astype(dtype.numpy), dtype)


TABLE: dict[str, Importer] = {
    "Cast": lambda node: _converted(node, node.element_type("to")),
    "CastLike": lambda node: _converted(node, node.type(1).dtype),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Expand": lambda node: expanded(node.draft, node.input(0), node.input(1)),
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Identity": lambda node: node.any(0),
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Unsqueeze": _unsqueeze,
}
