"""Move tensors as bytes, before they are dequantised or after they are quantised, rather than as floats."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import DType, Op, Operand, Operation, Shape, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat, Split, SplitV
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor

from .scales import BYTES, dequantized, number, plain_binary, whole_in

_MOVING: tuple[type[Op], ...] = (Transpose, Reshape, Squeeze, ExpandDims, ResizeNearestNeighbor)
_MOST_STEPS = 16
"""The most element-wise functions between a move and the cast to bytes."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def move_bytes(subgraph: Subgraph) -> Subgraph:
    """Quantise before a transpose or a reshape rather than after it, and dequantise after it rather than before.

    Element-wise functions of one tensor and constants commute with operations that move elements. So bytes are moved
    instead of floats, and byte layers can read them directly.

        a = Transpose(x); b = Binary.DIV(a, s); ... y = Cast(f) as u8
            -->   b = Binary.DIV(x, s); ... q = Cast(f) as u8; y = Transpose(q)
        a = Binary.MUL(Cast(q), s); y = Transpose(a)
            -->   b = Transpose(q); y = Binary.MUL(Cast(b), s)

    Likewise for max pooling, because bytes have the same order, and for concatenating and splitting. Bytes that are
    dequantised and quantised again with the same scale are unchanged: multiplying and dividing by the scale is off by
    less than a half.
    """
    while True:
        for step in (_without_requantization, _quantized_first, _dequantized_last):
            found = step(subgraph)
            if found is not subgraph:
                break
        else:
            return subgraph
        subgraph = found


def _without_requantization(subgraph: Subgraph) -> Subgraph:
    edit, removed = Edit(subgraph), set[int]()
    for operation in subgraph.operations:
        if not isinstance(operation.op, Cast) or operation.op.to not in BYTES:
            continue
        (result,), source = operation.outputs, operation.used[0]
        is_read = result in subgraph.uses and result not in subgraph.kept
        if not is_read or not whole_in(subgraph, source, operation.op.to):
            continue
        summed = _first_operand(subgraph, _first_operand(subgraph, source))
        rounded, zero = summed, 0.0
        before = definer(subgraph, summed)
        if before is not None and plain_binary(before, BinaryKind.ADD):
            rounded, zero = before.used[0], number(subgraph, before.used[1]) or 0.0
        ratio = definer(subgraph, _first_operand(subgraph, rounded))
        if ratio is None or not plain_binary(ratio, BinaryKind.DIV):
            continue
        stored = dequantized(subgraph, ratio.used[0])
        if stored is None or (stored.scale, stored.zero) != (number(subgraph, ratio.used[1]), zero):
            continue
        same_type = subgraph.type(stored.operand) == subgraph.type(result) and stored.scale <= _LARGEST
        if same_type and stored.operand not in removed:
            removed.add(result)
            edit.redirect(result, stored.operand)
    return edit.done()


_LARGEST = 2.0**100
"""The largest scale whose products with bytes are surely finite."""


def _first_operand(subgraph: Subgraph, operand: int) -> int:
    """The first operand of the operation that defines `operand`."""
    return subgraph.operations[subgraph.definitions[operand]].used[0]


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
        if not _moves(subgraph, subgraph.operations[mover]) and not _are_increasing(subgraph, chain):
            continue
        _exchange(edit, mover, [subgraph.operations[i] for i in chain])
        for i in chain:
            edit.remove(i)
    return edit.done()


def _steps(subgraph: Subgraph, at: int) -> list[int] | None:
    """The chain of a move of floats, element-wise functions, and the cast to bytes at `at`; None if there is none."""
    operation = subgraph.operations[at]
    if not whole_in(subgraph, operation.used[0], subgraph.type(operation.outputs[0]).dtype):
        return None
    chain, current = [at], operation.used[0]
    while len(chain) < _MOST_STEPS:
        before = definer(subgraph, current)
        if before is None or only_user(subgraph, current) is None or subgraph.type(current).dtype is not DType.FLOAT32:
            return None
        place = subgraph.definitions[current]
        if _moves(subgraph, before) or _gathers(subgraph, before):
            return [place, *reversed(chain)]
        source = _argument(subgraph, before)
        if source is None:
            return None
        chain.append(place)
        current = source
    return None


def _moves(subgraph: Subgraph, operation: Operation) -> bool:
    return isinstance(operation.op, _MOVING) and all(subgraph.operands[i].is_constant for i in operation.used[1:])


def _gathers(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether the operation concatenates or max-pools dequantised bytes."""
    op = operation.op
    joins = isinstance(op, Concat) and op.activation is Activation.NONE
    return (joins or _is_max_pool(op)) and all(dequantized(subgraph, i) is not None for i in operation.used)


def _is_max_pool(op: Op) -> bool:
    return isinstance(op, Pool2D) and op.kind is Pooling.MAX and op.activation is Activation.NONE


_INCREASING = (BinaryKind.ADD, BinaryKind.MAXIMUM, BinaryKind.MINIMUM)


def _are_increasing(subgraph: Subgraph, chain: Sequence[int]) -> bool:
    """Whether the element-wise functions are monotonically increasing."""

    def is_increasing(operation: Operation) -> bool:
        if isinstance(operation.op, Cast) or operation.op == Unary(UnaryKind.ROUND):
            return True
        if any(plain_binary(operation, kind) for kind in _INCREASING):
            return True
        scale = number(subgraph, operation.used[-1])
        return plain_binary(operation, BinaryKind.DIV) and scale is not None and scale > 0

    return all(is_increasing(subgraph.operations[i]) for i in chain)


def _argument(subgraph: Subgraph, operation: Operation) -> int | None:
    """The only non-constant operand of an element-wise operation; None for any other operation."""
    if isinstance(operation.op, Unary):
        return operation.used[0]
    if not isinstance(operation.op, Binary):
        return None
    shape = subgraph.type(operation.outputs[0]).shape
    found = [i for i in operation.used if number(subgraph, i) is None]
    return found[0] if len(found) == 1 and subgraph.type(found[0]).shape == shape else None


def _exchange(edit: Edit, mover: int, chain: list[Operation]) -> None:
    """Put the element-wise functions in the place of the move, and the move after them."""
    subgraph = edit.subgraph
    moving = subgraph.operations[mover]
    sources = moving.used if isinstance(moving.op, Concat) else moving.used[:1]
    operations, results = [], list[int]()
    for source in sources:
        moved, current = moving.outputs[0], source
        for operation in chain:
            result = _shaped(edit, operation.outputs[0], subgraph.type(source).shape)
            inputs = tuple(current if i == moved else i for i in operation.inputs)
            operations.append(evolve(operation, inputs=inputs, outputs=(result,)))
            moved, current = operation.outputs[0], result
        results.append(current)
    last = evolve(moving, inputs=(*results, *moving.inputs[len(sources) :]), outputs=chain[-1].outputs)
    edit.replace(mover, *operations, last)


def _shaped(edit: Edit, operand: int, shape: Shape) -> int:
    type_ = edit.subgraph.type(operand)
    return edit.operand(Operand(evolve(type_, shape=shape, data=None)))


_DATA: dict[type[Op], int] = {Split: 1, SplitV: 0}
"""Operations that split a tensor, and the position of that operand."""


def _dequantized_last(subgraph: Subgraph) -> Subgraph:
    edit, touched = Edit(subgraph), set[int]()
    for at, operation in enumerate(subgraph.operations):
        place = _DATA.get(type(operation.op), 0)
        if not (_moves(subgraph, operation) or _is_max_pool(operation.op) or type(operation.op) in _DATA):
            continue
        if only_user(subgraph, operation.used[place]) != at:
            continue
        source = dequantized(subgraph, operation.used[place])
        if source is None or not touched.isdisjoint((at, *source.steps)):
            continue
        steps = source.steps
        if any(only_user(subgraph, subgraph.operations[i].outputs[0]) is None for i in steps[1:]):
            continue
        touched |= {at, *steps}
        shapes = [subgraph.type(result).shape for result in operation.outputs]
        moved = tuple(_shaped(edit, source.operand, shape) for shape in shapes)
        moved_inputs = tuple(source.operand if i == place else x for i, x in enumerate(operation.inputs))
        operations = [evolve(operation, inputs=moved_inputs, outputs=moved)]
        for current, shape, result in zip(moved, shapes, operation.outputs, strict=True):
            old = source.operand
            for i in reversed(steps):
                step = subgraph.operations[i]
                output = result if i == steps[0] else _shaped(edit, step.outputs[0], shape)
                inputs = tuple(current if j == old else j for j in step.inputs)
                operations.append(evolve(step, inputs=inputs, outputs=(output,)))
                old, current = step.outputs[0], output
        for i in steps:
            edit.remove(i)
        edit.replace(at, *operations)
    return edit.done()
