"""Tensors are moved as the bytes that they become or were, not as floats."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import DType, Op, Operand, Operation, Shape, Subgraph
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary

from .scales import BYTES, dequantized, number, whole_in

_MOVING: tuple[type[Op], ...] = (Transpose, Reshape, Squeeze, ExpandDims)
_MOST_STEPS = 16
"""Functions of elements between what is moved and the bytes that it becomes."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def move_bytes(subgraph: Subgraph) -> Subgraph:
    """Quantise before a transpose or a reshape rather than behind it, and dequantise behind it rather than before.

    Functions of single elements with constants commute with what moves elements. So bytes are moved instead of floats,
    and layers that multiply bytes meet them.

        a = Transpose(x); b = Binary.DIV(a, s); ... y = Cast(f) as u8
            -->   b = Binary.DIV(x, s); ... q = Cast(f) as u8; y = Transpose(q)
        a = Binary.MUL(Cast(q), s); y = Transpose(a)
            -->   b = Transpose(q); y = Binary.MUL(Cast(b), s)
    """
    while True:
        found = _quantized_first(subgraph)
        if found is subgraph:
            found = _dequantized_last(subgraph)
        if found is subgraph:
            return subgraph
        subgraph = found


def _quantized_first(subgraph: Subgraph) -> Subgraph:
    edit, touched = Edit(subgraph), set[int]()
    for at, operation in enumerate(subgraph.operations):
        if not isinstance(operation.op, Cast) or operation.op.to not in BYTES:
            continue
        steps = _steps(subgraph, at)
        if steps is None or not touched.isdisjoint(steps):
            continue
        touched |= set(steps)
        mover, *chain = steps
        _exchange(edit, mover, [subgraph.operations[i] for i in chain])
        for i in chain:
            edit.remove(i)
    return edit.done()


def _steps(subgraph: Subgraph, at: int) -> list[int] | None:
    """What moves floats, and the functions of elements behind it up to the bytes of operation `at`, in order."""
    operation = subgraph.operations[at]
    if not whole_in(subgraph, operation.used[0], subgraph.type(operation.outputs[0]).dtype):
        return None
    chain, current = [at], operation.used[0]
    while len(chain) < _MOST_STEPS:
        before = definer(subgraph, current)
        if before is None or only_user(subgraph, current) is None or subgraph.type(current).dtype is not DType.FLOAT32:
            return None
        place = subgraph.definitions[current]
        if _moves(subgraph, before):
            return [place, *reversed(chain)]
        source = _argument(subgraph, before)
        if source is None:
            return None
        chain.append(place)
        current = source
    return None


def _moves(subgraph: Subgraph, operation: Operation) -> bool:
    return isinstance(operation.op, _MOVING) and all(subgraph.operands[i].is_constant for i in operation.used[1:])


def _argument(subgraph: Subgraph, operation: Operation) -> int | None:
    """The operand that an operation is a function of element by element; None where it is none of just that."""
    if isinstance(operation.op, Unary):
        return operation.used[0]
    if not isinstance(operation.op, Binary):
        return None
    shape = subgraph.type(operation.outputs[0]).shape
    found = [i for i in operation.used if number(subgraph, i) is None]
    return found[0] if len(found) == 1 and subgraph.type(found[0]).shape == shape else None


def _exchange(edit: Edit, mover: int, chain: list[Operation]) -> None:
    """The functions of elements where the tensor was moved, and behind them what moves it."""
    subgraph = edit.subgraph
    moving = subgraph.operations[mover]
    source, moved = moving.inputs[0], moving.outputs[0]
    assert source is not None
    shape, current = subgraph.type(source).shape, source
    written = []
    for operation in chain:
        result = _shaped(edit, operation.outputs[0], shape)
        inputs = tuple(current if i == moved else i for i in operation.inputs)
        written.append(evolve(operation, inputs=inputs, outputs=(result,)))
        moved, current = operation.outputs[0], result
    last = evolve(moving, inputs=(current, *moving.inputs[1:]), outputs=chain[-1].outputs)
    edit.replace(mover, *written, last)


def _shaped(edit: Edit, operand: int, shape: Shape) -> int:
    type_ = edit.subgraph.type(operand)
    return edit.operand(Operand(evolve(type_, shape=shape, data=None)))


def _dequantized_last(subgraph: Subgraph) -> Subgraph:
    edit, touched = Edit(subgraph), set[int]()
    for at, operation in enumerate(subgraph.operations):
        if not _moves(subgraph, operation) or only_user(subgraph, operation.used[0]) != at:
            continue
        source = dequantized(subgraph, operation.used[0])
        if source is None or not touched.isdisjoint((at, *source.steps)):
            continue
        steps = source.steps
        if any(only_user(subgraph, subgraph.operations[i].outputs[0]) is None for i in steps[1:]):
            continue
        touched |= {at, *steps}
        result = subgraph.type(operation.outputs[0])
        current = _shaped(edit, source.operand, result.shape)
        written = [evolve(operation, inputs=(source.operand, *operation.inputs[1:]), outputs=(current,))]
        old = source.operand
        for i in reversed(steps):
            step = subgraph.operations[i]
            last = i == steps[0]
            made = operation.outputs[0] if last else _shaped(edit, step.outputs[0], result.shape)
            inputs = tuple(current if j == old else j for j in step.inputs)
            written.append(evolve(step, inputs=inputs, outputs=(made,)))
            old, current = step.outputs[0], made
            edit.remove(i)
        edit.replace(at, *written)
    return edit.done()
