"""Join many small operations of a kind whose results are concatenated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import Operand, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.reduction.reduce import Reduce, axes_of

FEWEST = 4
"""How many siblings make joining worthwhile."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def join_siblings(subgraph: Subgraph) -> Subgraph:
    """Join equal operations whose results are concatenated along the last axis into one operation.

    These are gathers of columns of one tensor by constant indices, and reductions of rows of the same width. Results
    are bit-identical, because each row is reduced as before. Converted feature preprocessing has such graphs.

        y = Concat(Gather(x, [0]), Gather(x, [2]), ...)      -->   y = Concat(Gather(x, [0, 2, ...]))
        y = Concat(Reduce(a, [1]), Reduce(b, [1]), ...)      -->   c = Concat(a, b, ...)
                                                                   y = Concat(Reduce(Reshape(c), [2]))
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        if not isinstance(operation.op, Concat) or operation.op.activation is not Activation.NONE:
            continue
        result = subgraph.type(operation.outputs[0])
        if len(operation.used) < FEWEST or not result.ranked or operation.op.axis not in (-1, result.rank - 1):
            continue
        inputs: list[int] = []
        for kind, group in groupby(operation.used, key=lambda operand: _kind(subgraph, at, operand)):
            siblings = list(group)
            join = _JOINED[type(kind[0])] if isinstance(kind, tuple) and len(siblings) >= FEWEST else None
            inputs += siblings if join is None else [join(edit, at, siblings)]
        if len(inputs) < len(operation.used):
            edit.replace(at, evolve(operation, inputs=tuple(inputs)))
    return edit.done()


def _kind(subgraph: Subgraph, at: int, operand: int) -> Hashable:
    """A key that siblings share: a tuple that begins with the operation; for any other operand, its number."""
    producer = definer(subgraph, operand)
    if producer is None or only_user(subgraph, operand) != at or subgraph.type(operand).quantization is not None:
        return operand
    types = subgraph.types(producer)
    if not isinstance(producer.op, Gather | Reduce) or not all(t is not None and t.ranked for t in types.inputs):
        return operand
    if isinstance(producer.op, Gather):
        x, indices = types.input(0), types.input(1)
        fits = producer.op.batch_dims == 0 and producer.op.axis in (-1, x.rank - 1) and indices.rank == 1
        return (producer.op, producer.used[0], indices.dtype) if fits and indices.value is not None else operand
    x, axes = types.input(0), types.input(1).value
    fits = producer.op.keep_dims and axes is not None and axes_of(axes, x.rank) == (x.rank - 1,)
    fits = fits and x.shape[-1] is not None and 0 not in x.shape and list(x.shape).count(None) <= 1
    return (producer.op, x.shape, x.dtype) if fits and x.quantization is None else operand


def _picked(edit: Edit, at: int, siblings: Sequence[int]) -> int:
    subgraph = edit.subgraph
    gathers = [subgraph.operations[subgraph.definitions[each]] for each in siblings]
    values = [subgraph.types(each).input(1).value for each in gathers]
    indices = np.concatenate([value for value in values if value is not None])
    chosen = edit.constant(indices, subgraph.type(gathers[0].used[1]).dtype)
    return _result(edit, at, siblings, evolve(gathers[0], inputs=(gathers[0].used[0], chosen)))


def _reduced(edit: Edit, at: int, siblings: Sequence[int]) -> int:
    subgraph, count = edit.subgraph, len(siblings)
    reductions = [subgraph.operations[subgraph.definitions[each]] for each in siblings]
    x = subgraph.type(reductions[0].used[0])
    width = x.shape[-1] or 0
    concatenated = edit.operand(Operand(evolve(x, shape=(*x.shape[:-1], count * width), data=None)))
    stacked = edit.operand(Operand(evolve(x, shape=(*x.shape[:-1], count, width), data=None)))
    sizes = tuple(-1 if each is None else each for each in (*x.shape[:-1], count, width))
    edit.insert(
        at,
        Operation(
            Concat(x.rank - 1), tuple(each.used[0] for each in reductions), (concatenated,), reductions[0].location
        ),
    )
    edit.insert(at, Operation(Reshape(sizes), (concatenated,), (stacked,), reductions[0].location))
    axes, op = edit.constant(np.array([x.rank], np.int32)), reductions[0].op
    assert isinstance(op, Reduce)
    reduction = evolve(reductions[0], op=evolve(op, keep_dims=False), inputs=(stacked, axes))
    return _result(edit, at, siblings, reduction)


def _result(edit: Edit, at: int, siblings: Sequence[int], operation: Operation) -> int:
    """The operand that replaces the siblings' results, computed by an operation inserted before operation `at`."""
    types = [edit.subgraph.type(each) for each in siblings]
    width = sum(each.shape[-1] or 0 for each in types)
    found = edit.operand(Operand(evolve(types[0], shape=(*types[0].shape[:-1], width), data=None)))
    edit.insert(at, evolve(operation, outputs=(found,)))
    return found


_JOINED = {Gather: _picked, Reduce: _reduced}
