"""Cutting a tensor of known shape to its first entries: nothing needs inferring, and the result is never larger."""

from __future__ import annotations

from collections.abc import Sequence as Row

from onert.backend.kernel import Sequence
from onert.backend.tensor import Tensor, Tensors
from onert.ir import Context, Operation, RuleError
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.shape import normalize_axis


def chains(sequence: Sequence, tensors: Tensors) -> list[tuple[int, ...]]:
    """The operations of a sequence, those that cut one tensor of known shape along several axes together."""
    graph, found = sequence.subgraph, list[tuple[int, ...]]()
    for at in sequence.operations:
        first, before = (graph.operations[found[-1][i]] if found else None for i in (0, -1))
        if first and before and is_cut(first, tensors) and _follows(sequence, before, graph.operations[at], tensors):
            found[-1] = (*found[-1], at)
        else:
            found.append((at,))
    return found


def is_cut(operation: Operation, tensors: Tensors) -> bool:
    """Whether an operation cuts a tensor of known shape."""
    return isinstance(operation.op, FirstEntries) and not any(tensors[i].dynamic for i in operation.used)


def _follows(sequence: Sequence, before: Operation, operation: Operation, tensors: Tensors) -> bool:
    """Whether an operation cuts what another one cut, which nothing else uses."""
    between, graph = before.outputs[0], sequence.subgraph
    alone = len(graph.uses.get(between, ())) == 1 and between not in sequence.outputs and between not in graph.kept
    cuts = isinstance(operation.op, FirstEntries) and not tensors[operation.used[1]].dynamic
    return cuts and alone and operation.used[0] == between


class Cut:
    """A call that cuts a tensor along one or more axes."""

    __slots__ = ("_axes", "_context", "_counts", "_fixed", "_per_byte", "_result", "_x")

    def __init__(
        self, operations: Row[Operation], tensors: Tensors, context: Context, fixed: int, per_byte: int
    ) -> None:
        """The work of a run is `fixed` and that of moved bytes."""
        first = operations[0].used[0]
        self._x, self._result = tensors[first], tensors[operations[-1].outputs[0]]
        self._counts: list[Tensor] = [tensors[operation.used[1]] for operation in operations]
        rank = tensors[first].type.rank
        self._axes = [normalize_axis(o.op.axis, rank) for o in operations if isinstance(o.op, FirstEntries)]
        self._context = context
        self._fixed, self._per_byte = fixed, per_byte

    def __call__(self) -> None:
        whole, result, context = self._x.array, self._result, self._context
        index = [slice(None)] * whole.ndim
        for axis, tensor in zip(self._axes, self._counts, strict=True):
            count, most = tensor.array.item(), whole.shape[axis]  # reads the count only once
            if not 0 <= count <= most:
                raise RuleError(f"count is {count}, expected 0 to the dimension, {most}")
            index[axis] = slice(count)
        found = whole[(*index,)].copy()
        moved = found.nbytes + whole.nbytes
        context.hold(found.nbytes - result.held, moved)
        context.spend(self._fixed + self._per_byte * moved)
        result.assign(found)
