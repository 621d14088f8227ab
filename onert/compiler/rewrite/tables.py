"""Tables for length-dependent constants that kernels might round differently from `evaluate`.

Such a constant is mostly a function of positions, like rotary embeddings and relative positions. It is computed once
for every possible integer position of many lengths, and the run gathers what it needs. Its elements are then
bit-identical to those that constant folding produces in a program for one length.

    p = Range(0, length, 1); y = Cos(p * const)   -->   p = Range(0, length, 1); y = Gather(const', p)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir import (
    CallTypes,
    Constant,
    DType,
    OnertError,
    Op,
    Operand,
    Operation,
    Subgraph,
    TensorType,
)
from onert.ir.errors import MISHAPS
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.element_indices import ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, Range
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import ROUNDED_ONCE, Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.ops.reduction.reduce import Reduce
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import is_symbolic

from .edit import Edit
from .per_length import at_first, folded, require_known_sizes
from .shape_arithmetic import EXACT
from .tabled import (
    MOST_BYTES,
    Tabled,
    UnknownError,
    at_own_positions,
    by_entry,
    combined_positions,
    concatenated,
    evaluated,
    expanded,
    gathered,
    multiplied,
    of_length,
    of_range,
    of_zeros,
    packed,
    refused,
    reshaped,
    sliced,
    tiled,
    with_leading_ones,
)

_BY_ENTRY = (Pad, Reverse, ScatterElements, ScatterSlices, Slice)
"""Kinds that only move elements, and those of different positions alike."""


class Tables:
    """The tensors of a graph that lengths determine. `is_folded` says whether a program for one length would fold an
    operation on such types."""

    def __init__(self, subgraph: Subgraph, is_folded: Callable[[Op, CallTypes], bool]) -> None:
        self._subgraph = subgraph
        self._is_folded = is_folded
        self._producers: dict[int, tuple[int, CallTypes]] = {}
        self._folded: set[int] = set()
        self._tabled: dict[int, Tabled | None] = {}
        self._counting: dict[int, Any] = {}  # ranges from 0, and their limits
        self._inexact: dict[int, int] = {}  # tensors that kernels might compute differently, and their operations
        self._unknown: dict[int, int] = {}  # tensors that depend on lengths in an unknown way, and their operations

    def add(self, at: int, types: CallTypes) -> bool:
        """Record operation `at`. Returns whether its result may be a constant in a program for one length."""
        operation = self._subgraph.operations[at]
        exact = _is_exact(operation.op, types)
        inexact = self._inexact.keys() | self._unknown.keys()
        tabled = not exact or not inexact.isdisjoint(operation.used)
        if tabled and not self._would_fold(operation, types, exact and not self._is_read_inexactly(at)):
            return False
        for out in operation.outputs:
            self._producers[out] = at, types
        if tabled:
            if self._is_known(operation):
                self._inexact[operation.outputs[0]] = at
            elif not exact or not self._unknown.keys().isdisjoint(operation.used):
                self._unknown.update(dict.fromkeys(operation.outputs, at))
        return True

    def _is_read_inexactly(self, at: int) -> bool:
        """Whether kernels might differ in what a program for one length might compute from the result as a constant."""
        graph = self._subgraph
        run, known = set(graph.inputs), set(graph.operations[at].outputs)
        for operation in graph.operations:
            if not run.isdisjoint(operation.used):
                run.update(operation.outputs)
            elif not known.isdisjoint(operation.used):
                known.update(operation.outputs)
                inputs = (None if i is None else graph.type(i) for i in operation.inputs)
                if not _is_exact(operation.op, CallTypes(tuple(inputs), tuple(map(graph.type, operation.outputs)))):
                    return True
        return False

    def _is_known(self, operation: Operation) -> bool:
        """Determine how a result, and everything it is computed from, depends on positions; False if unknown."""
        pending, found = list(operation.outputs), set[int]()
        while pending:
            operand = pending.pop()
            if operand in self._producers and operand not in self._tabled and operand not in found:
                found.add(operand)
                pending += self._subgraph.operations[self._producers[operand][0]].used
        for operand in sorted(found, key=lambda each: self._producers[each][0]):
            at, types = self._producers[operand]
            self._tabled[operand] = self._found(self._subgraph.operations[at], types)
        return self._tabled[operation.outputs[0]] is not None

    def place(self, edit: Edit) -> None:
        """Replace operations that kernels might compute differently by gathers, or by constants that are computed for
        each length, if a remaining operation needs their results."""
        own = {operand for operand in self._inexact if self._root(operand) == operand}  # integers, computed as they are
        replaced = {at for operand, at in (self._inexact | self._unknown).items() if operand not in own}
        remaining = [operation for at, operation in enumerate(self._subgraph.operations) if at not in replaced]
        needed = {i for operation in remaining for i in operation.used} | set(self._subgraph.kept)
        needed |= {root for i in needed & self._inexact.keys() if (root := self._root(i)) is not None}
        made: dict[int, list[Operation]] = {at: [] for at in replaced}
        for operand, at in self._inexact.items():
            if operand in needed and at in replaced:
                made[at] += self._gathered(edit, operand)
        unknown = [operand for operand in self._unknown if operand in needed]
        constants = folded(self._subgraph, unknown, self._producers)
        require_known_sizes(self._subgraph, remaining, constants)
        for operation in constants:
            made[self._unknown[operation.outputs[0]]].append(operation)
        for at, operations in made.items():
            edit.replace(at, *operations)

    def _root(self, operand: int) -> int | None:
        tabled = self._tabled[operand]
        return None if tabled is None else tabled.root

    def _would_fold(self, operation: Operation, types: CallTypes, now: bool) -> bool:
        """Whether a program for one length would fold an operation and everything that it depends on: for every length
        that the trace is for, or just for the lengths of `now`.
        """
        known = set[int]() if now else self._folded
        if not self._is_folded(operation.op, at_first(types) if now else types):
            return False
        pending = list(operation.used)
        while pending:
            operand = pending.pop()
            producer = None if operand in known else self._producers.get(operand)
            if producer is not None:
                before = self._subgraph.operations[producer[0]]
                if not self._is_folded(before.op, at_first(producer[1]) if now else producer[1]):
                    return False
                known.add(operand)
                pending += before.used
        return True

    def _found(self, operation: Operation, types: CallTypes) -> Tabled | None:
        """The table of a result as a function of positions; None if unknown."""
        try:
            found = self._table_of(operation, types)
            return expanded(found, types.output) if found.table.nbytes <= MOST_BYTES else None
        except (OnertError, *MISHAPS):
            return None

    def _table_of(self, operation: Operation, types: CallTypes) -> Tabled:
        op, output = operation.op, types.output
        if len(operation.outputs) != 1 or any(t is not None and t.quantization for t in (*types.inputs, output)):
            raise UnknownError
        if isinstance(op, Range):
            return of_range(self._range_root(operation.outputs[0], types), types)
        if isinstance(op, Fill):
            value = self._operand_table(operation, types, 1).table
            return Tabled(None, 0, (), value.reshape((1,) * output.rank))
        first = self._operand_table(operation, types, 0)
        if isinstance(op, Select) and not op.rows and (first.table == first.table.flat[0]).all():
            return with_leading_ones(
                self._operand_table(operation, types, 1 if first.table.flat[0] else 2), output.rank
            )
        if isinstance(op, ExpandDims | Reshape | Squeeze):
            return reshaped(first, static(types.input(0).shape), static(output.shape))
        if isinstance(op, BroadcastTo):
            return with_leading_ones(first, output.rank)
        if isinstance(op, Transpose):
            order = [normalize_axis(axis, output.rank) for axis in sv.integers(types.input(1), "permutation") or ()]
            return evolve(
                first, axes=tuple(order.index(axis) for axis in first.axes), table=np.transpose(first.table, order)
            )
        if isinstance(op, StridedSlice):
            return sliced(op, first, types)
        if isinstance(op, Tile):
            return tiled(first, types)
        present = (at for at, t in enumerate(types.inputs) if at and t is not None)
        operands = [first, *(self._operand_table(operation, types, at) for at in present)]
        if isinstance(op, Gather):
            return gathered(op, operands, types)
        if isinstance(op, Concat):
            return concatenated(op, operands, types)
        if isinstance(op, Pack):
            return packed(op, operands, types)
        if isinstance(op, BatchMatMul):
            return multiplied(op, operands, types)
        if isinstance(op, FullyConnected):
            return of_zeros(op, operands, types)
        if isinstance(op, ScatterSlices) and operands[1].root is not None and self._is_counting(operands[1].root):
            return at_own_positions(op, operands, types)
        if isinstance(op, _BY_ENTRY) or (isinstance(op, Einsum) and not _sums(op)):
            return by_entry(op, operands, types)
        if not isinstance(op, Binary | Cast | Comparison | Select | Unary):
            raise UnknownError
        operands = [with_leading_ones(each, output.rank) for each in operands]
        if isinstance(op, Binary) and len({(each.root, each.axes) for each in operands if each.root is not None}) > 1:
            return combined_positions(operation.outputs[0], op, operands)
        return evaluated(op, operands, types)

    def _range_root(self, operand: int, types: CallTypes) -> int:
        """A range from 0, or the first one with as many elements, whatever their type."""
        limit = types.input(1).data
        if limit is None or not _counts_from_0(types):
            return operand
        number = limit.array.item()
        found = next((each for each, other in self._counting.items() if are_same(other, number)), operand)
        self._counting[found] = number
        return found

    def _is_counting(self, root: int) -> bool:
        """Whether a root's elements are the positions along its only axis."""
        at, types = self._producers.get(root, (-1, None))
        return types is not None and isinstance(self._subgraph.operations[at].op, Range) and _counts_from_0(types)

    def _operand_table(self, operation: Operation, types: CallTypes, at: int) -> Tabled:
        """The table of an operand; a constant depends on no position, and a length is a position itself."""
        operand, data = operation.inputs[at], types.input(at).data
        if data is None:
            return self._tabled[-1 if operand is None else operand] or refused()
        if data.is_symbolic:
            assert operand is not None
            return of_length(operand, types.input(at))
        return Tabled(None, 0, (), data.array)

    def _gathered(self, edit: Edit, operand: int) -> list[Operation]:
        """Operations that compute a tensor from its table."""
        tabled, type_ = self._tabled[operand], self._subgraph.type(operand)
        assert tabled is not None
        operations: list[Operation] = []

        def add(op: Op, inputs: Sequence[int], dtype: DType, shape: Sequence[int]) -> int:
            out = edit.operand(Operand(TensorType(dtype, tuple(shape))))
            operations.append(Operation(op, tuple(inputs), (out,)))
            return out

        dims: tuple[int, ...] = ()
        rest = [axis for axis in range(tabled.table.ndim) if axis not in tabled.axes]
        order = (*tabled.axes, *rest)
        rows = np.transpose(tabled.table, order)
        if tabled.root is None:
            found = edit.constant(tabled.table)
        else:
            places, index = self._subgraph.type(tabled.root), tabled.root
            dtype, dims = places.dtype, static(places.shape)
            if len(dims) != len(tabled.axes):
                dims = (1,)
                index = add(Reshape(dims), (index,), dtype, dims)
            if dtype not in (DType.INT32, DType.INT64):
                dtype = DType.INT32
                index = add(Cast(dtype), (index,), dtype, dims)
            if tabled.low:
                low = edit.constant(np.array(tabled.low, dtype.numpy))
                index = add(Binary(BinaryKind.SUB), (index, low), dtype, dims)
            rows = np.ascontiguousarray(rows.reshape(len(rows), *rows.shape[len(dims) :]))
            found = add(Gather(), (edit.constant(rows), index), type_.dtype, (*dims, *rows.shape[1:]))
        if order != tuple(range(len(order))):
            inverse = np.argsort(order).astype(np.int32)
            moved = [(*dims, *rows.shape[1:])[axis] for axis in inverse]
            found = add(Transpose(), (found, edit.constant(inverse)), type_.dtype, moved)
        shape = edit.operand(Operand(TensorType(DType.INT32, (type_.rank,)), data=_dims(static(type_.shape))))
        add(BroadcastTo(), (found, shape), type_.dtype, static(type_.shape))
        return [*operations[:-1], evolve(operations[-1], outputs=(operand,))]


def _counts_from_0(types: CallTypes) -> bool:
    """Whether a range starts at 0 and increases by 1."""
    start, delta = (types.input(at).data for at in (0, 2))
    return all(d is not None and d.array.item() == value for d, value in ((start, 0), (delta, 1)))


def _sums(op: Einsum) -> bool:
    """Whether elements are sums, or products of more than two numbers, which may be rounded in another order."""
    operands, _, result = op.equation.replace(" ", "").partition("->")
    return operands.count(",") != 1 or not set(operands) <= {*result, ","}


def _is_exact(op: Op, types: CallTypes) -> bool:
    """Whether kernels are bit-identical to `evaluate`."""
    if not any(t is not None and t.dtype.is_float for t in (*types.inputs, *types.outputs)):
        return True  # integers never differ
    if isinstance(op, Interpolate):
        return op.interpolation is Interpolation.NEAREST  # moves elements
    rounds = isinstance(op, Binary | Unary | Reduce) and not types.output.dtype.is_integer
    once = isinstance(op, Binary) and op.kind in ROUNDED_ONCE and op.activation is Activation.NONE
    return isinstance(op, EXACT) and (once or not rounds)


def _dims(shape: tuple[int, ...]) -> Constant:
    return Constant(np.array(shape, object if any(map(is_symbolic, shape)) else np.int32))
