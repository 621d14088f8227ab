"""Chains of element-wise operations in float32 as one loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, Op
from onert_llvm.kernels.elementwise import Elementwise, Reach
from onert_llvm.kernels.expression import Apply, Const, Expr, Leaf, leaves

from .builder import Lowering
from .command import Slot
from .expressions import expression, spread, supported

WIDE = 1024
"""Elements that a row has at least where rows do not matter."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not run an operation as an element-wise loop; None where it does."""
    if not supported(op, types):
        return "it has no native form for these element types"
    whole = types.output.shape
    if 0 in whole:
        return "a tensor has no elements"
    for t in types.inputs:
        if t is not None and spread(t.shape, whole) is None:
            return "its operands broadcast in a way that has no native form"
    return None


def lower_elementwise(lowering: Lowering, operations: Sequence[int]) -> None:
    """The group as one kernel: the tree of all its operations over the tensors it reads."""
    trees: dict[int, Expr] = {}
    slots: dict[str, Slot] = {}
    reaches: dict[str, Reach] = {}
    reads: list[int] = []
    result = lowering.operation(operations[-1]).outputs[0]
    whole = lowering.shape(result)

    def leaf(operand: int) -> Expr:
        how = spread(lowering.shape(operand), whole)
        assert how is not None
        if how is Reach.SCALAR and lowering.subgraph.operands[operand].is_constant:
            return Const(float(lowering.elements(operand).reshape(())))
        name = f"x{operand}"
        reaches[name] = how
        slots[name] = lowering.operand(operand)
        reads.append(operand)
        return Leaf(name)

    for at in operations:
        operation = lowering.operation(at)
        args = [trees[i] if i in trees else leaf(i) for i in operation.used]
        trees[operation.outputs[0]] = expression(operation.op, args)
    rows, width = matrix(whole, flat=all(how in (Reach.FULL, Reach.SCALAR) for how in reaches.values()))
    number = {name: f"i{at}" for at, name in enumerate(reaches)}
    tree = _renamed(trees[result], number)
    slots = {number[name]: slot for name, slot in slots.items()}
    steps = {Reach.FULL: width, Reach.ROW: 0, Reach.COLUMN: 1, Reach.SCALAR: 0}
    slots |= {f"{number[name]}_step": steps[how] for name, how in reaches.items()}
    slots |= {"out": lowering.operand(result), "out_step": width, "width": width}
    by_number = {number[name]: how for name, how in reaches.items()}
    algorithm = Elementwise(tree, tuple(by_number[name] for name in leaves(tree)))
    lowering.emit(operations[0], algorithm, slots, rows, reads, (result,), rows * width * len(operations))


def matrix(shape: tuple[int, ...], flat: bool) -> tuple[int, int]:
    """Rows and width of the results: the last dimension, and where rows do not matter as many more as fill a tile."""
    width, at = (shape[-1], len(shape) - 1) if shape else (1, 0)
    while flat and at > 0 and width < WIDE:
        at -= 1
        width *= shape[at]
    return int(np.prod(shape[:at], dtype=np.int64)), width


def _renamed(tree: Expr, number: dict[str, str]) -> Expr:
    """The tree with its leaves numbered, so that equal chains of different tensors are one kernel."""
    if isinstance(tree, Leaf):
        return Leaf(number[tree.name])
    if isinstance(tree, Const):
        return tree
    return Apply(tree.fn, tuple(_renamed(a, number) for a in tree.args))
