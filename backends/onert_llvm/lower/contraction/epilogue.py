"""The operations that follow an anchor in its group, as the epilogue of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from attrs import evolve, frozen

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Area, Pointer, Slot
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn, Kind, Leaf
from onert_llvm.kernels.contraction.epilogue import ACC, BOUNDED, HIGH, LOW, RESIDUAL, Epilogue
from onert_llvm.kernels.elementwise.elementwise import Reach
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise.op_to_expression import activated, expression, reach_of

from .conv_geometry import Plane


@frozen
class EpilogueTask(Value):
    """An epilogue, the slots it adds, the tensors it reads, and where the results are stored.

    That is the operand that the whole group computes, or scratch memory in `accesses`.
    """

    epilogue: Epilogue
    slots: dict[str, Slot]
    reads: tuple[int, ...]
    place: Pointer
    writes: tuple[int, ...]
    accesses: tuple[Access, ...] = ()

    @property
    def result(self) -> int:
        """The operand that the group computes."""
        return self.writes[0]

    def after(self, sums: Access, width: int) -> EpilogueTask:
        """The epilogue of products to which earlier `sums`, in rows of `width` columns, are added first."""
        slots: dict[str, Slot] = {_EARLIER: sums.pointer, f"{_EARLIER}_stride": width}
        epilogue = evolve(self.epilogue, tree=_with_earlier(self.epilogue.tree))
        touched = (*self.accesses, evolve(sums, write=False))
        return evolve(self, epilogue=epilogue, slots={**self.slots, **slots}, accesses=touched)

    def from_column(self, column: int) -> EpilogueTask:
        """The epilogue of the results from a column on."""
        slots = {n: _moved(v, 4 * column) if isinstance(v, Pointer) else v for n, v in self.slots.items()}
        return evolve(self, slots=slots, place=_moved(self.place, 4 * column))

    def parameterized(self, depth: int) -> EpilogueTask:
        """The epilogue with bounds and residual in the task, so that layers that differ only in these share a kernel.

        Unchanged if the tree does more, or if it has no bounds and so few terms that clamping would cost time.
        """
        inner, low, high = _unbounded(self.epilogue.tree)
        given = _added(inner, self.epilogue.matrices)
        asked = low > -inf and high < inf
        if (inner != ACC and given is None) or not (asked or depth >= _MANY_TERMS):
            return self
        slots: dict[str, Slot] = {LOW: low, HIGH: high, RESIDUAL: 0, f"{RESIDUAL}_stride": 0}
        if given is not None:
            slots |= {RESIDUAL: self.slots[given], f"{RESIDUAL}_stride": self.slots[f"{given}_stride"]}
        slots |= {name: slot for name, slot in self.slots.items() if name == "bias"}
        epilogue = Epilogue(BOUNDED, self.epilogue.bias, (), (LOW, HIGH), True)
        return evolve(self, epilogue=epilogue, slots=slots)

    def repeatable(self, lowering: Lowering) -> bool:
        """Whether all of its vectors are constants."""
        vectors = self._vectors().values()
        return all(p.area is Area.OPERAND and lowering.subgraph.operands[p.index].is_constant for p in vectors)

    @property
    def even(self) -> bool:
        """Whether it treats all columns the same."""
        return not self._vectors()

    def repeated(self, lowering: Lowering, times: int) -> EpilogueTask:
        """The epilogue for rows that are several of the present ones side by side."""
        vectors = self._vectors() if times > 1 else {}
        tiled = {
            n: lowering.constant(np.tile(lowering.elements(p.index).reshape(-1), times)) for n, p in vectors.items()
        }
        return evolve(self, slots={**self.slots, **tiled})

    def side_by_side(self, lowering: Lowering, times: int) -> EpilogueTask:
        """The same, where the epilogue may also read matrices."""
        strides = {f"{name}_stride" for name in self.epilogue.matrices}
        wide = {name: slot * times for name, slot in self.slots.items() if name in strides and isinstance(slot, int)}
        found = self.repeated(lowering, times)
        return evolve(found, slots={**found.slots, **wide})

    def _vectors(self) -> dict[str, Pointer]:
        """The slots that point to an element for each column."""
        names = (*(("bias",) if self.epilogue.bias else ()), *self.epilogue.columns)
        found = {name: self.slots[name] for name in names}
        return {name: slot for name, slot in found.items() if isinstance(slot, Pointer)}


@frozen
class Windows(Value):
    """A convolution without its filters: its windows over the image at `source`, what it reads, and its epilogue."""

    operation: int
    geometry: Plane
    source: Pointer
    reads: Sequence[int]
    after: EpilogueTask

    def scratch(self, lowering: Lowering, nbytes: int) -> Access:
        """Scratch memory besides that for the results."""
        *_, found = lowering.scratch(*(access.nbytes for access in self.after.accesses), nbytes)
        return found


_EARLIER = "earlier"
"""The slot of the matrix of sums that a product continues."""

_MANY_TERMS = 64
"""For sums of this many terms, the cost of clamping is not measurable."""


def _unbounded(tree: Expr) -> tuple[Expr, float, float]:
    """A tree without its outermost clamp, and the bounds of that."""
    found = {Fn.MIN: inf, Fn.MAX: -inf}
    for fn in found:
        if isinstance(tree, Apply) and tree.fn is fn and isinstance(tree.args[0], Const):
            found[fn], tree = float(tree.args[0].value), tree.args[1]
    return tree, found[Fn.MAX], found[Fn.MIN]


def _added(tree: Expr, matrices: Sequence[str]) -> str | None:
    """The matrix that a tree adds to the accumulator, if that is all it does."""
    if isinstance(tree, Apply) and tree.fn is Fn.ADD and ACC in tree.args:
        return next((e.name for e in tree.args if isinstance(e, Leaf) and e.name in matrices), None)
    return None


def _with_earlier(tree: Expr) -> Expr:
    """The tree with the sum of the accumulator and the earlier sums in place of the accumulator."""
    if tree == ACC:
        return Apply(Fn.ADD, (ACC, Leaf(_EARLIER)))
    return evolve(tree, args=tuple(map(_with_earlier, tree.args))) if isinstance(tree, Apply) else tree


def _moved(pointer: Pointer, nbytes: int) -> Pointer:
    return evolve(pointer, offset=pointer.offset + nbytes)


def epilogue_task(
    lowering: Lowering, operations: Sequence[int], activation: Activation, bias: int | None, width: int
) -> EpilogueTask:
    """The epilogue of an anchor (the first operation) whose results have `width` columns."""
    tree = activated(ACC, activation)
    assert tree is not None
    current = lowering.operation(operations[0]).outputs[0]
    trees: dict[int, Expr] = {current: tree}
    slots: dict[str, Slot] = {}
    columns: list[str] = []
    numbers: dict[str, float] = {}
    names: dict[int, str] = {}

    def leaf(operand: int, result: int) -> Expr:
        """An operand from outside: a number, a vector with an element per column, or a matrix like the results."""
        how = reach_of(lowering.shape(operand), lowering.shape(result))
        name = names.get(operand, f"x{len(names)}")
        if how is Reach.SCALAR and lowering.subgraph.operands[operand].is_constant:
            number = lowering.elements(operand).item()
            if not is_symbolic(number):
                return Const(float(number))
            numbers[name] = 1.0 * number  # the task has it, because lengths determine it
        elif name not in slots:
            slots[name] = lowering.operand(operand)
            if how is Reach.ROW:
                columns.append(name)
            else:
                slots[f"{name}_stride"] = width
        names[operand] = name
        return Leaf(name)

    if bias is not None:
        slots["bias"] = lowering.operand(bias)
    for at in operations[1:]:
        operation = lowering.operation(at)
        current = operation.outputs[0]
        args = [trees[i] if i in trees else leaf(i, current) for i in operation.used]
        trees[current] = expression(operation.op, args, lowering.subgraph.types(operation))
    read = (*(() if bias is None else (bias,)), *names)
    reads = tuple(i for i in read if not lowering.subgraph.operands[i].is_constant)
    epilogue = Epilogue(trees[current], bias is not None, tuple(columns), tuple(numbers))
    return EpilogueTask(epilogue, {**slots, **numbers}, reads, lowering.operand(current), (current,))


_KEPT = (-128.0, -1.0, 0.0, 0.5, 1.0, 127.0, 255.0)
"""Numbers that are common in trees: they stay in the code."""


def with_number_slots(after: EpilogueTask) -> EpilogueTask:
    """The epilogue with its numbers in the task, so that layers that differ only in these share a kernel."""
    names: dict[float, str] = {}

    def renamed(tree: Expr) -> Expr:
        if isinstance(tree, Const) and tree.kind is Kind.F32 and tree.value not in _KEPT:
            return Leaf(names.setdefault(float(tree.value), f"number{len(names)}"))
        if isinstance(tree, Apply):
            return Apply(tree.fn, tuple(renamed(a) for a in tree.args), tree.kind)
        return tree

    tree = renamed(after.epilogue.tree)
    epilogue = evolve(after.epilogue, tree=tree, numbers=(*after.epilogue.numbers, *names.values()))
    return evolve(after, epilogue=epilogue, slots={**after.slots, **{name: value for value, name in names.items()}})
