"""StableHLO's operations whose function of two elements is a subgraph, their body.

If the body is a known function of its two inputs, the attribute `function` names it (a frontend recognises it), and
whole tensors are computed at once; otherwise the body runs for each pair of elements.

Source: the StableHLO specification; LiteRT's kernels stablehlo_{reduce_window,scatter}.cc.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Context, OnStored, Op, require
from onert.ir.ops.data_movement.reshape import require_one
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import Dim
from onert.ir.types import CallTypes, TensorType

from .body_functions import gives_second, pair_function, pair_order
from .shapes_and_elements import require_axes, require_numbers, require_shape
from .sliding import Sliding

Elements = tuple[Array, ...]


def _takes_pairs(types: Sequence[DType], results: Sequence[DType], graph: Any) -> str | None:
    """What is wrong with a body that should take elements of `types` and return `results`; None if nothing is."""
    given = [graph.type(i) for i in graph.inputs]
    made = [graph.type(o) for o in graph.outputs]
    if [t.dtype for t in given] != [*types] or [t.dtype for t in made] != [*results]:
        found, wanted = (
            ", ".join(d.text for d in side) for side in ([t.dtype for t in (*given, *made)], (*types, *results))
        )
        return f"the body's inputs and outputs are {found}, expected {wanted}"
    for t in (*given, *made):
        if shapes.num_elements(t.shape) not in (1, None):
            return f"the body has a tensor of {t}, expected single elements"
    return None


def _scalars(context: Context, body: int, elements: Sequence[Any], dtypes: Sequence[Any]) -> Elements:
    """The body's results for single elements."""
    return context.call(body, [np.array(e, d) for e, d in zip(elements, dtypes, strict=True)])


@frozen
class _Body(OnStored):
    """The common part of operations with a body."""

    body: int

    callees: ClassVar[tuple[str, ...]] = ("body",)

    def informed(self: Any, called: Sequence[Any]) -> Op:
        known = pair_function(called[0])
        informed: Op = self if known is None else evolve(self, function=known)
        return informed


def _require_defined(function: BinaryKind | None, x: TensorType) -> None:
    """Raises RuleError if a recognised function is not defined on elements of this type."""
    if function is not None:
        Binary(function).infer(TensorType(x.dtype), TensorType(x.dtype))


def _pairwise(context: Context, body: int, function: BinaryKind | None, a: Elements, b: Elements) -> Elements:
    """The body applied to elements at equal positions."""
    if function is not None:
        return tuple(Binary(function).evaluate(x, y) for x, y in zip(a, b, strict=True))
    out = tuple(np.empty_like(x) for x in a)
    dtypes = [x.dtype for x in (*a, *b)]
    for at in np.ndindex(a[0].shape):
        found = _scalars(context, body, [x[at] for x in (*a, *b)], dtypes)
        for result, element in zip(out, found, strict=True):
            result[at] = element.reshape(())
    return out


def _reduce_last(context: Context, op: Any, xs: Elements, initial: Elements) -> Elements:
    """Reduces the last axis to one element, starting from the initial one."""
    function = None if op.function is None else op.function.value.numpy
    if isinstance(function, np.ufunc):
        reduced = (
            function.reduce(x, axis=-1, dtype=x.dtype, initial=i.reshape(())[()])
            for x, i in zip(xs, initial, strict=True)
        )
        return tuple(np.asarray(r).astype(x.dtype) for r, x in zip(reduced, xs, strict=True))
    out: Elements = tuple(np.full(x.shape[:-1], i.reshape(())[()], x.dtype) for x, i in zip(xs, initial, strict=True))
    for at in range(xs[0].shape[-1]):
        out = _pairwise(context, op.body, op.function, out, tuple(x[..., at] for x in xs))
    return out


def _halves(xs: Sequence[TensorType], name: str) -> tuple[Sequence[TensorType], Sequence[TensorType]]:
    """Operands, and as many initial elements; raises RuleError unless the operands have one shape."""
    count = len(xs) // 2
    require(
        count >= 1 and len(xs) == 2 * count,
        f"{name} has {len(xs)} operands, expected as many initial elements as tensors",
    )
    operands, initial = xs[:count], xs[count:]
    for x, i in zip(operands, initial, strict=True):
        require(i.dtype is x.dtype, f"an initial element is {i.dtype.text}, expected {x.dtype.text}")
        require(not x.dtype.is_handle, f"{name} is not defined on elements of type {x.dtype.text}")
        require_one(i, "an initial element")
        require(
            shapes.compatible(x.shape, operands[0].shape), f"operands are {x} and {operands[0]}, expected one shape"
        )
    return operands, initial


@frozen
class _Reduction(_Body):
    """Operations whose body combines elements: it takes an accumulator and an element per tensor."""

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        types = [caller.type(i).dtype for i in inputs if i is not None]
        return _takes_pairs(types, types[: len(types) // 2], called[0])


@frozen
class HloReduce(_Reduction):
    """Reduces tensors along some dimensions with a function.

    - `xs`: one or more tensors of one shape, then the initial element for each of them

    The results have the other dimensions. The body takes an accumulator for each tensor, then an element of each, and
    returns the new accumulators.
    """

    dimensions: tuple[int, ...]
    function: BinaryKind | None = None

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        operands, _ = _halves(xs, "HloReduce")
        require_axes(self.dimensions, operands[0].rank, "dimensions")
        for x in operands:
            _require_defined(self.function, x)
        return tuple(
            x.result(tuple(d for axis, d in enumerate(x.shape) if axis not in self.dimensions)) for x in operands
        )

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> Elements:
        count = len(xs) // 2
        rest = [axis for axis in range(xs[0].ndim) if axis not in self.dimensions]
        kept = [xs[0].shape[axis] for axis in rest]
        length = math.prod(xs[0].shape[axis] for axis in self.dimensions)
        rows = tuple(x.transpose(*rest, *self.dimensions).reshape(*kept, length) for x in xs[:count])
        return _reduce_last(context, self, rows, xs[count:])


@frozen
class HloReduceWindow(_Reduction):
    """Reduces each window of tensors with a function.

    - `xs`: one or more tensors of one shape, then the initial element for each of them, which is also used for padding
      at the edges and between elements

    Attributes, per dimension: the window's size (`dimensions`), and how it slides. The body is as in HloReduce.
    """

    dimensions: tuple[int, ...]
    sliding: Sliding
    function: BinaryKind | None = None

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        operands, _ = _halves(xs, "HloReduceWindow")
        rank = operands[0].rank
        for x in operands:
            _require_defined(self.function, x)
        require_numbers(self.dimensions, rank, "window_dimensions", 1)
        self.sliding.check(rank, "base_dilations", "window_dilations")
        return tuple(x.result(tuple(self._size(axis, d) for axis, d in enumerate(x.shape))) for x in operands)

    def _size(self, axis: int, size: Dim) -> Dim:
        require_shape((self.sliding.padded(axis, size),), "the padded shape")
        return self.sliding.places(axis, size, self.dimensions[axis])

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> Elements:
        count = len(xs) // 2
        result = [self._size(axis, d) or 0 for axis, d in enumerate(xs[0].shape)]
        windows = tuple(self._windows(x, i, result) for x, i in zip(xs[:count], xs[count:], strict=True))
        return _reduce_last(context, self, windows, xs[count:])

    def _windows(self, x: Array, initial: Array, result: Sequence[int]) -> Array:
        """The elements of each window along a last axis."""
        if not math.prod(result):
            return np.zeros((*result, 0), x.dtype)
        require_shape((*result, math.prod(self.dimensions)), "all windows together")
        return self.sliding.windows(x, initial, self.dimensions).reshape(*result, -1)


@frozen
class HloScatter(_Body):
    """`x` with updates scattered to the positions given by indices, combined by a function of element and update.

    - `x`: any
    - `indices`: integers; vectors along `index_vector_dim` (or each index by itself if that is the rank) are positions
    - `updates`: of x's type; `update_window_dims` are the dimensions of a window, the others those of `indices`

    A window has the dimensions of `x` except `inserted_window_dims`. Element i of a vector is a position along
    dimension `scatter_dims_to_operand_dims[i]`. Elements out of bounds are ignored. `replaces` says that the body
    returns the update itself.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    function: BinaryKind | None = None
    replaces: bool = False

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        require(indices.dtype.is_integer, f"indices hold {indices.dtype.text}, expected integers")
        require(updates.dtype is x.dtype, f"updates hold {updates.dtype.text}, expected {x.dtype.text}")
        require(not x.dtype.is_handle, f"HloScatter is not defined on elements of type {x.dtype.text}")
        _require_defined(self.function, x)
        depth = index_depth(indices, self.index_vector_dim, self.scatter_dims_to_operand_dims)
        require_axes(self.update_window_dims, updates.rank, "update_window_dims")
        require_axes(self.inserted_window_dims, x.rank, "inserted_window_dims")
        require_axes(self.scatter_dims_to_operand_dims, x.rank, "scatter_dims_to_operand_dims")
        window = x.rank - len(self.inserted_window_dims)
        require(
            window == len(self.update_window_dims),
            f"a window has {window} dimensions, {len(self.update_window_dims)} are named",
        )
        batch = tuple(d for axis, d in enumerate(updates.shape) if axis not in self.update_window_dims)
        wanted = tuple(d for axis, d in enumerate(indices.shape) if axis != self.index_vector_dim)
        require(shapes.compatible(batch, wanted), f"updates {updates} do not fit indices {indices} of {depth}")
        kept = [d for axis, d in enumerate(x.shape) if axis not in self.inserted_window_dims]
        for axis, size in zip(sorted(self.update_window_dims), kept, strict=True):
            part = updates.shape[axis]
            require(
                part is None or size is None or part <= size, f"a window of {part} is larger than a dimension of {size}"
            )
        return x.result(x.shape)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        first = inputs[0] if inputs else None
        if first is None:
            return "the operand is absent"
        dtype = caller.type(first).dtype
        return _takes_pairs((dtype, dtype), (dtype,), called[0])

    def informed(self, called: Sequence[Any]) -> Op:
        return evolve(self, replaces=True) if gives_second(called[0]) else super().informed(called)

    def evaluate_in(self, context: Context, types: CallTypes, x: Array, indices: Array, updates: Array) -> Array:
        places, inside = self._places(x, indices, updates)
        at = tuple(p[inside] for p in places)
        given = updates[inside]
        out = x.copy()
        if self.replaces:
            out[at] = given
            return out
        function = None if self.function is None else self.function.value.numpy
        if isinstance(function, np.ufunc):
            function.at(out, at, given)
            return out
        for update, *place in zip(given, *at, strict=True):
            (found,) = _pairwise(context, self.body, self.function, (out[(*place, ...)],), (np.asarray(update),))
            out[tuple(place)] = found.reshape(())
        return out

    def _places(self, x: Array, indices: Array, updates: Array) -> tuple[list[Array], Array]:
        """Each update's position along each dimension of `x`, and whether it is in bounds; in the shape of updates."""
        vectors = index_vectors(indices, self.index_vector_dim)
        window = sorted(self.update_window_dims)
        batch = [axis for axis in range(updates.ndim) if axis not in window]
        spread = [1] * updates.ndim
        for axis in batch:
            spread[axis] = updates.shape[axis]
        kept = iter(window)
        places = []
        for axis in range(x.ndim):
            place = np.zeros(updates.shape, np.int64)
            if axis in self.scatter_dims_to_operand_dims:
                at = self.scatter_dims_to_operand_dims.index(axis)
                place += vectors[..., at].reshape(spread)
            if axis not in self.inserted_window_dims:
                along = next(kept)
                place += np.arange(updates.shape[along]).reshape([-1 if a == along else 1 for a in range(updates.ndim)])
            places.append(place)
        inside = np.ones(updates.shape, np.bool_)
        for axis, place in enumerate(places):
            inside &= (place >= 0) & (place < x.shape[axis])
        return places, inside


def index_depth(indices: TensorType, index_vector_dim: int, named: Sequence[int]) -> Dim:
    """The length of index vectors. Raises RuleError unless they index as many dimensions as the attribute names."""
    require(
        0 <= index_vector_dim <= indices.rank, f"index_vector_dim is {index_vector_dim}, expected 0 to {indices.rank}"
    )
    depth = 1 if index_vector_dim == indices.rank else indices.shape[index_vector_dim]
    require(depth in (None, len(named)), f"index vectors have {depth} elements, {len(named)} dimensions are named")
    return depth


def index_vectors(indices: Array, index_vector_dim: int) -> Array:
    """The index vectors along a last axis, as int64."""
    wide = indices[..., None] if index_vector_dim == indices.ndim else indices
    return np.moveaxis(wide, index_vector_dim, -1).astype(np.int64)


@frozen
class HloSort(_Body):
    """Sorts tensors of one shape together along a dimension.

    - `xs`: any

    The body receives the elements of the first tensor at two positions, then of the second, and so on; it returns
    whether the first position comes before the second. The sort is stable. `descending` says that the body compares
    the first tensor's elements with `>` (False: with `<`); None for any other body.
    """

    dimension: int
    descending: bool | None = None

    def infer(self, *xs: TensorType) -> tuple[TensorType, ...]:
        require(bool(xs), "HloSort has no operands, expected at least one")
        require_axes((self.dimension,), xs[0].rank, "dimension")
        for x in xs:
            require(shapes.compatible(x.shape, xs[0].shape), f"operands are {x} and {xs[0]}, expected one shape")
        return tuple(x.result(x.shape) for x in xs)

    def check_subgraphs(
        self, caller: Any, inputs: Sequence[int | None], outputs: Sequence[int], called: Sequence[Any]
    ) -> str | None:
        types = [caller.type(i).dtype for i in inputs if i is not None for _ in range(2)]
        return _takes_pairs(types, (DType.BOOL,), called[0])

    def informed(self, called: Sequence[Any]) -> Op:
        return evolve(self, descending=pair_order(called[0]))

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> Elements:
        rows = [np.moveaxis(x, self.dimension, -1) for x in xs]
        order = np.empty(rows[0].shape, np.int64)
        for at in np.ndindex(rows[0].shape[:-1]):
            order[at] = self._order(context, [row[at] for row in rows])
        sorted_rows = (np.take_along_axis(row, order, -1) for row in rows)
        return tuple(np.ascontiguousarray(np.moveaxis(row, -1, self.dimension)) for row in sorted_rows)

    def _order(self, context: Context, rows: Sequence[Array]) -> Sequence[int] | Array:
        if self.descending is False and rows[0].dtype.kind in "iub":
            return np.argsort(rows[0], kind="stable")
        dtypes = [row.dtype for row in rows for _ in range(2)]

        def before(a: int, b: int) -> bool:
            if self.descending is not None:
                return bool(rows[0][a] > rows[0][b] if self.descending else rows[0][a] < rows[0][b])
            elements = itertools.chain.from_iterable((row[a], row[b]) for row in rows)
            return bool(_scalars(context, self.body, list(elements), dtypes)[0].reshape(()))

        def compare(a: int, b: int) -> int:
            return -1 if before(a, b) else 1 if before(b, a) else 0

        return sorted(range(len(rows[0])), key=cmp_to_key(compare))
