"""Chains of element-wise operations as a single loop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import frozen

from onert.ir import CallTypes, Op
from onert.ir.ops.elementwise.select import Select
from onert.ir.symbolic.sizes import are_same, is_broadcast
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Leaf, checked, leaves
from onert_llvm.kernels.elementwise.elementwise import Elementwise
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS

from .op_to_expression import expression, rule_of, supported

WIDE = 1024
"""The least number of elements in a row if the division into rows does not matter."""

_PIECE = 1 << 12
"""The number of elements of a row in a work tile if rows are long."""

MOST_OPERANDS = 16
"""The most inputs of one operation. A loop reads them all at once, and the tree that adds them is as deep."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not run an operation as an element-wise loop; None if it does."""
    if not supported(op, types):
        return "it has no native form for these element types"
    if len(types.inputs) > MOST_OPERANDS:
        return f"it has {len(types.inputs)} inputs, more than the {MOST_OPERANDS} that one loop can read"
    return None


@frozen
class _Operand(Value):
    """A tensor that a loop reads: its name in the tree and its strides along the result's axes, in elements."""

    name: str
    operand: int
    strides: tuple[int, ...]


def lower_elementwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """The group as one kernel: the tree of all its operations on the tensors that it reads."""
    trees: dict[int, Expr] = {}
    found: dict[tuple[int, tuple[int, ...]], _Operand] = {}
    result = lowering.operation(operations[-1]).outputs[0]
    whole = lowering.shape(result)

    def leaf(operand: int, shape: tuple[int, ...]) -> Expr:
        kind = KINDS[lowering.type(operand).dtype]
        data = lowering.subgraph.operands[operand].data
        if data is not None and math.prod(shape) == 1 and not data.is_symbolic:
            return Const(lowering.elements(operand).reshape(()).item(), kind)
        key = (operand, shape)
        if key not in found:
            found[key] = _Operand(f"i{len(found)}", operand, _strides(shape, whole))
        return Leaf(found[key].name, kind)

    for at in operations:
        operation = lowering.operation(at)
        shapes = operand_shapes(operation.op, [lowering.shape(i) for i in operation.used])
        args = [trees[i] if i in trees else leaf(i, shape) for i, shape in zip(operation.used, shapes, strict=True)]
        trees[operation.outputs[0]] = expression(operation.op, args, lowering.subgraph.types(operation))
    tree, names = _numbered(trees[result])
    operands = [(names[o.name], o) for o in found.values() if o.name in names]
    _emit(lowering, operations, tree, operands, result)


def operand_shapes(op: Op, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The shapes in which operands broadcast: a condition that selects rows gets trailing dimensions of 1."""
    if isinstance(op, Select) and op.rows and len(shapes[0]) == 1 and len(shapes[1]) > 1:
        return [shapes[0] + (1,) * (len(shapes[1]) - 1), *shapes[1:]]
    return list(shapes)


def _strides(own: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """A dense tensor's strides when it broadcasts to the result: 0 where it repeats."""
    padded = (1,) * (len(whole) - len(own)) + own
    steps = [math.prod(padded[i + 1 :]) for i in range(len(padded))]
    each = zip(padded, whole, steps, strict=True)
    return tuple(0 if are_same(d, 1) or is_broadcast(d, wanted) else step for d, wanted, step in each)


def _emit(
    lowering: Lowering,
    operations: Sequence[int],
    tree: Expr,
    operands: Sequence[tuple[str, _Operand]],
    result: int,
) -> None:
    axes = _axes(lowering.shape(result), [o.strides for _, o in operands])
    (width, inner), outer = axes[-1], axes[:-1] or [(1, (0,) * len(operands))]
    wide = {name: step == 1 for (name, _), step in zip(operands, inner, strict=True)}
    slots: dict[str, Slot] = {"out": lowering.operand(result), "width": width}
    rows = math.prod([size for size, _ in outer])
    tiles, cut = rows, hint(width) > 2 * _PIECE
    if cut:
        slots |= {"piece": _PIECE, "pieces": -(-width // _PIECE)}
        tiles = rows * -(-width // _PIECE)
    slots |= {f"size{i}": size for i, (size, _) in enumerate(outer) if i}
    for at, (name, operand) in enumerate(operands):
        slots[name] = lowering.operand(operand.operand)
        slots |= {f"{name}_step{i}": steps[at] for i, (_, steps) in enumerate(outer)}
    if checked(tree):  # such an operation is never part of a chain
        operation = lowering.operation(operations[0])
        slots["report"] = lowering.check(
            operations[0], rule_of(operation.op, lowering.subgraph.types(operation)) or "{}"
        )
    algorithm = Elementwise(tree, tuple(wide[name] for name in leaves(tree)), len(outer), cut)
    reads = tuple(dict.fromkeys(o.operand for _, o in operands))
    lowering.emit(operations[0], algorithm, slots, tiles, reads, (result,), rows * width * len(operations))


def _axes(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]]:
    """The result's axes with the strides of all operands, without axes of size 1; axes that continue one another are
    merged.

    The last one has only strides of 0 and 1: operands are dense.
    """
    found: list[tuple[int, tuple[int, ...]]] = []
    for at, size in enumerate(shape):
        if size == 1:
            continue
        steps = tuple(s[at] for s in strides)
        if found and all(o == i * size for o, i in zip(found[-1][1], steps, strict=True)):
            size *= found.pop()[0]
        found.append((size, steps))
    return found or [(1, (0,) * len(strides))]


def matrix(shape: tuple[int, ...], flat: bool) -> tuple[int, int]:
    """The rows and width of the results: the last dimension, or with `flat` as many more as fill a tile."""
    width, at = (shape[-1], len(shape) - 1) if shape else (1, 0)
    while flat and at > 0 and width < WIDE:
        at -= 1
        width *= shape[at]
    return math.prod(shape[:at]), width


def map_elements(lowering: Lowering, at: int, algorithm: Algorithm, own: Mapping[str, Slot] | None = None) -> None:
    """Emit a kernel on every element of an operation's first operand: rows `x` of `width`, and its `own` slots."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    rows, width = matrix(lowering.shape(target), flat=True)
    slots: dict[str, Slot] = {"width": width, **(own or {})}
    lowering.run(at, algorithm, rows, {"x": source}, {"out": target}, slots, rows * width)


def _numbered(tree: Expr) -> tuple[Expr, dict[str, str]]:
    """The tree with its leaves numbered in order of use, so that equal chains on different tensors share a kernel; and
    the new name of each old one.
    """
    names = {name: f"i{at}" for at, name in enumerate(leaves(tree))}
    return _renamed(tree, names), names


def _renamed(tree: Expr, names: dict[str, str]) -> Expr:
    if isinstance(tree, Leaf):
        return Leaf(names[tree.name], tree.kind)
    if isinstance(tree, Const):
        return tree
    return Apply(tree.fn, tuple(_renamed(a, names) for a in tree.args), tree.kind)
