"""Merge DepthToSpace and SpaceToDepth with the transposes around them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from attrs import define, evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import Operand, Operation, Subgraph
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.layout import DepthToSpace, SpaceToDepth, Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.shape import normalize_axis, static

from .merge_transposes import permutation

_MOST_WAYS, _LEAST_ROW = 8, 8
"""The most parts that a row is interleaved from or split into, and the shortest such part."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def merge_blocks(subgraph: Subgraph) -> Subgraph:
    """Merge a DepthToSpace or a SpaceToDepth and the transposes around it into one transpose.

    Gathers that exchange two parts of the channels are merged too. Rows must stay whole, or be interleaved from or
    split into a few. Unused operations are left to `remove_dead`.

        a = Transpose(x of f32[1, 3, 4, 16], [0, 2, 3, 1]); b = SpaceToDepth(a, 2); y = Transpose(b, [0, 3, 1, 2])
            -->   a = Reshape(x) to [1, 3, 2, 2, 8, 2]; b = Transpose(a, [0, 3, 5, 1, 2, 4]); y = Reshape(b)
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        user = only_user(subgraph, operation.outputs[0]) if operation.outputs else None
        if user is not None and isinstance(subgraph.operations[user].op, _MOVES):
            continue
        chain = _chain(subgraph, operation)
        if len(chain) < 2 or not any(isinstance(each.op, DepthToSpace | SpaceToDepth) for each in chain):
            continue
        x = chain[0].used[0]
        type_, shape = subgraph.type(x), subgraph.type(operation.outputs[0]).shape
        if not type_.is_static or not subgraph.type(operation.outputs[0]).is_static or 0 in shape:
            continue
        parts = _Parts.of(static(type_.shape))
        if not all(parts.moved(subgraph, each) for each in chain) or not parts.by_rows():
            continue
        order = [parts.source.index(part) for dimension in parts.dimensions for part in dimension]
        sizes = [parts.sizes[part] for part in parts.source]
        permuted = tuple(sizes[i] for i in order)
        split, moved = (edit.operand(Operand(evolve(type_, shape=s))) for s in (tuple(sizes), permuted))
        edit.replace(
            at,
            evolve(operation, op=Reshape(tuple(sizes)), inputs=(x,), outputs=(split,)),
            evolve(
                operation, op=Transpose(), inputs=(split, edit.constant(np.array(order, np.int32))), outputs=(moved,)
            ),
            evolve(operation, op=Reshape(static(shape)), inputs=(moved,)),
        )
    return edit.done()


_MOVES = (Transpose, Gather, DepthToSpace, SpaceToDepth)


def _chain(subgraph: Subgraph, last: Operation) -> Sequence[Operation]:
    """The chain of moves that ends with an operation, each the only reader of the one before."""
    found: list[Operation] = []
    operation: Operation | None = last
    while operation is not None and isinstance(operation.op, _MOVES):
        if subgraph.type(operation.used[0]).quantization != subgraph.type(last.outputs[0]).quantization:
            break  # per-channel scales would have to move along
        found.insert(0, operation)
        is_only_user = only_user(subgraph, operation.used[0]) is not None
        operation = definer(subgraph, operation.used[0]) if is_only_user else None
    return found


@define
class _Parts:
    """The parts of the dimensions of `source` that form each dimension of the moved tensor, outermost first."""

    sizes: list[int]
    source: list[int]
    dimensions: list[list[int]]

    @classmethod
    def of(cls, shape: Sequence[int]) -> _Parts:
        return cls(list(shape), list(range(len(shape))), [[i] for i in range(len(shape))])

    def moved(self, subgraph: Subgraph, operation: Operation) -> bool:
        """Move the parts as an operation does; False if that is unknown, or would split a part unevenly."""
        op, dimensions = operation.op, self.dimensions
        if isinstance(op, Transpose):
            order = permutation(subgraph, operation)
            self.dimensions = dimensions if order is None else [dimensions[i] for i in order]
            return order is not None
        if isinstance(op, Gather):
            axis, inner = normalize_axis(op.axis, len(dimensions)), _exchanged_part(subgraph, operation)
            found = None if not inner or op.batch_dims else self._split(dimensions[axis], inner)
            if found is not None:
                dimensions[axis] = found[1] + found[0]
            return found is not None
        assert isinstance(op, DepthToSpace | SpaceToDepth)
        (n, h, w, c), block = dimensions, op.block_size
        if isinstance(op, SpaceToDepth):
            down, across = self._split(h, block), self._split(w, block)
            if down is not None and across is not None:
                self.dimensions = [n, down[0], across[0], down[1] + across[1] + c]
                return True
            return False
        rest = prod(self.sizes[i] for i in c) // (block * block)
        rows = self._split(c, block * rest)
        columns = None if rows is None else self._split(rows[1], rest)
        if rows is None or columns is None:
            return False
        self.dimensions = [n, h + rows[0], w + columns[0], columns[1]]
        return True

    def _split(self, dimension: list[int], inner: int) -> tuple[list[int], list[int]] | None:
        """A dimension split into its outer parts and inner parts of `inner` elements; None if no even split exists."""
        for at in reversed(range(len(dimension))):
            part = dimension[at]
            if inner == 1:
                return dimension[: at + 1], dimension[at + 1 :]
            if inner < self.sizes[part]:
                if self.sizes[part] % inner:
                    return None
                self.sizes[part] //= inner
                self.sizes.append(inner)
                new = len(self.sizes) - 1
                self.source.insert(self.source.index(part) + 1, new)
                return dimension[: at + 1], [new, *dimension[at + 1 :]]
            if inner % self.sizes[part]:
                return None
            inner //= self.sizes[part]
        return ([], dimension) if inner == 1 else None

    def by_rows(self) -> bool:
        """Whether the transpose moves rows: they are contiguous on both sides, or interleaved on one from a few."""
        before = [part for part in self.source if self.sizes[part] > 1]
        after = [part for dimension in self.dimensions for part in dimension if self.sizes[part] > 1]
        if len(before) < 2 or before[-1] == after[-1]:
            return True
        few, row = (after[-1], before[-1]) if after[-2] == before[-1] else (before[-1], after[-1])
        adjacent = after[-2] == before[-1] or before[-2] == after[-1]
        return adjacent and self.sizes[few] <= _MOST_WAYS and self.sizes[row] >= _LEAST_ROW


def _exchanged_part(subgraph: Subgraph, operation: Operation) -> int:
    """The size of the inner one of two parts that a gather exchanges; 0 if it does something else."""
    order = subgraph.operands[operation.used[1]].known.value
    if order is None or order.ndim != 1 or order.size < 2:
        return 0
    inner = int(order[1])
    if inner < 1 or order.size % inner:
        return 0
    return inner if np.array_equal(order, np.arange(order.size).reshape(-1, inner).T.reshape(-1)) else 0
