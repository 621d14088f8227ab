"""Element-wise operations around row reductions as a single kernel: layer norms and the like, in any formulation."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from attrs import define, field, frozen

from onert.ir import DType, Operation, Shape, Subgraph
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of
from onert.ir.shape import static
from onert.ir.symbolic.sizes import are_ones, are_same_shapes
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.kernels.arithmetic.expression import Const, Expr, Leaf
from onert_llvm.kernels.elementwise.elementwise import Reach
from onert_llvm.kernels.reduction.fused_rows import Number, RowChain, Total
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.elementwise.op_to_expression import expression, reach_of, real

from . import float_reduce_softmax_norm
from .block import FOLDS

_MOST, _MOST_TENSORS, _LEAST = 24, 6, 3
"""The most operations of a chain, the most tensors that it reads, and the fewest operations for which it pays."""

_LIGHT = (
    UnaryKind.ABS,
    UnaryKind.NEG,
    UnaryKind.SQUARE,
    UnaryKind.RELU,
    UnaryKind.RELU6,
    UnaryKind.RELU_N1_TO_1,
    UnaryKind.RELU_0_TO_1,
)
"""Functions that are cheap enough to be recomputed rather than stored."""


@frozen
class _Domain(Value):
    """Rows as a reduction sees them: those of a tensor along its last `axes`."""

    shape: Shape
    axes: int

    @property
    def width(self) -> int:
        """The number of elements of a row."""
        return math.prod(static(self.shape[-self.axes :]))

    def _flat(self, own: Shape) -> Shape | None:
        """A tensor's shape with the axes of rows merged; None if it has only a part of a row."""
        padded = (1,) * (len(self.shape) - len(own)) + own
        outer, inner = padded[: -self.axes], padded[-self.axes :]
        if are_same_shapes(inner, self.shape[-self.axes :]):
            return (*outer, self.width)
        return (*outer, 1) if are_ones(inner) else None

    def reach(self, subgraph: Subgraph, operand: int) -> Reach | None:
        """How a tensor broadcasts to the rows (a single element must be constant); None if chains cannot read it."""
        own = subgraph.type(operand).shape
        if are_same_shapes(own, self.numbers) and not subgraph.operands[operand].is_constant:
            return Reach.COLUMN
        flat, whole = self._flat(own), self._flat(self.shape)
        found = None if flat is None or whole is None else reach_of(flat, whole)
        return None if found is Reach.SCALAR and not subgraph.operands[operand].is_constant else found

    @property
    def numbers(self) -> Shape:
        """The shape with one element per row."""
        return (*self.shape[: -self.axes], *(1,) * self.axes)


def chains(subgraph: Subgraph, operations: Sequence[int], chained: Collection[int]) -> Iterator[tuple[int, ...]]:
    """The operations of each chain, from a row reduction to the only result that others read.

    `chained` are the element-wise operations that loops can run.
    """
    taken: set[int] = set()
    for position, at in enumerate(operations):
        domain = None if at in taken else _reduced(subgraph, subgraph.operations[at])
        if domain is None:
            continue
        free = [later for later in operations[position:] if later not in taken]
        grown = _grown(subgraph, free, chained, domain)
        found = next(filter(None, (_ending(subgraph, grown, last, domain) for last in reversed(grown))), None)
        if found is not None:
            taken.update(found)
            yield found


def _reduced(subgraph: Subgraph, operation: Operation) -> _Domain | None:
    """The rows that an operation reduces to one number each; None if it is not such a reduction."""
    op = operation.op
    if not isinstance(op, Reduce) or op.kind not in FOLDS or not op.keep_dims:
        return None
    x, axes = (subgraph.operands[i] for i in operation.used)
    shape = x.type.shape
    if x.type.dtype is not DType.FLOAT32 or axes.data is None or 0 in shape or None in shape:
        return None
    found = tuple(axes_of(axes.data.array, len(shape)))
    if not 0 < len(found) < len(shape) or found != tuple(range(len(shape) - len(found), len(shape))):
        return None
    domain = _Domain(shape, len(found))
    return None if domain.width == 1 else domain


def _grown(subgraph: Subgraph, operations: Sequence[int], chained: Collection[int], domain: _Domain) -> list[int]:
    """The first operation and those that depend on it, row by row."""
    found = [operations[0]]
    made = set(subgraph.operations[operations[0]].outputs)
    for at in operations[1:]:
        operation = subgraph.operations[at]
        if made.isdisjoint(operation.used) or len(found) == _MOST:
            continue
        if _reduced(subgraph, operation) == domain or (at in chained and _fits(subgraph, operation, domain)):
            found.append(at)
            made.update(operation.outputs)
    return found


def _fits(subgraph: Subgraph, operation: Operation, domain: _Domain) -> bool:
    """Whether an element-wise operation works on whole rows, or on one number per row."""
    types = subgraph.types(operation)
    if not real(operation.op, types):
        return False
    reaches = [domain.reach(subgraph, i) for i in operation.used]
    if None in reaches:
        return False
    if types.output.shape == domain.shape:
        return True
    return types.output.shape == domain.numbers and all(r in (Reach.COLUMN, Reach.SCALAR) for r in reaches)


def _ending(subgraph: Subgraph, grown: Sequence[int], last: int, domain: _Domain) -> tuple[int, ...] | None:
    """The operations that `last` needs, if nothing else reads their results; else None."""
    result = subgraph.operations[last].outputs[0]
    if subgraph.type(result).shape != domain.shape:
        return None
    needed: set[int] = set()
    open_ = [last]
    while open_:
        at = open_.pop()
        needed.add(at)
        made_by = (subgraph.definitions.get(i) for i in subgraph.operations[at].used)
        open_ += [i for i in made_by if i is not None and i in grown and i not in needed]
    found = tuple(at for at in grown if at in needed)
    inner = [subgraph.operations[at].outputs[0] for at in found if at != last]
    read = {i for at in found for i in subgraph.operations[at].used} - set(inner)
    plain = found[0] == grown[0] and len(found) >= _LEAST and len(read) <= _MOST_TENSORS
    private = all(i not in subgraph.kept and needed.issuperset(subgraph.uses.get(i, ())) for i in inner)
    return found if plain and private and not _again(subgraph, found, domain) else None


def _again(subgraph: Subgraph, found: Sequence[int], domain: _Domain) -> bool:
    """Whether a costly function of every element would be computed in more than one step."""
    steps: dict[int, set[int]] = {}
    for at in reversed(found):
        operation = subgraph.operations[at]
        result = operation.outputs[0]
        own = steps.get(result, {at}) if subgraph.type(result).shape == domain.shape else {at}
        costly = isinstance(operation.op, Unary) and operation.op.kind not in _LIGHT
        if costly and len(own) > 1:
            return True
        for i in operation.used:
            steps.setdefault(i, set()).update(own)
    return False


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower a reduction, or a chain that begins with one."""
    if len(operations) == 1:
        float_reduce_softmax_norm.lower(lowering, operations)
        return
    first, last = (lowering.operation(operations[i]) for i in (0, -1))
    result = last.outputs[0]
    domain = _reduced(lowering.subgraph, first)
    assert domain is not None
    chain = _Chain(lowering, domain)
    for at in operations:
        chain.take(at)
    full, wide, narrow = map(chain.names, (Reach.FULL, Reach.ROW, Reach.COLUMN))
    algorithm = RowChain(tuple(chain.steps), chain.trees[result], full, wide, narrow, tuple(chain.numbers))
    width, rows = domain.width, lowering.type(result).nbytes // (4 * domain.width)
    slots = {"width": width, "share": 1.0 / width, **chain.numbers}
    reads = {name: i for i, (name, _) in chain.read.items()}
    lowering.run(operations[0], algorithm, rows, reads, {"out": result}, slots, rows * width * len(operations))


@define
class _Chain:
    """The operations so far: trees by operand, and the tensors that these read."""

    lowering: Lowering
    domain: _Domain
    steps: list[Total | Number] = field(factory=list)
    trees: dict[int, Expr] = field(factory=dict)
    read: dict[int, tuple[str, Reach]] = field(factory=dict)
    numbers: dict[str, float] = field(factory=dict)
    """Those that lengths determine, by name: the task has them."""

    def names(self, reach: Reach) -> tuple[str, ...]:
        return tuple(name for name, own in self.read.values() if own is reach)

    def take(self, at: int) -> None:
        """Add an operation."""
        operation = self.lowering.operation(at)
        op, result = operation.op, operation.outputs[0]
        if isinstance(op, Reduce):
            terms = self._tree(operation.used[0])
            self._number(result, Total(FOLDS[op.kind], terms, op.kind is Reduction.MEAN))
            return
        types = self.lowering.subgraph.types(operation)
        tree = expression(op, [self._tree(i) for i in operation.used], types)
        if static(types.output.shape) == self.domain.shape:
            self.trees[result] = tree
        else:
            self._number(result, Number(tree))

    def _number(self, result: int, step: Total | Number) -> None:
        self.trees[result] = Leaf(f"s{len(self.steps)}")
        self.steps.append(step)

    def _tree(self, operand: int) -> Expr:
        if operand in self.trees:
            return self.trees[operand]
        reach = self.domain.reach(self.lowering.subgraph, operand)
        if reach is Reach.SCALAR:
            return self._given(self.lowering.elements(operand).item())
        assert reach is not None
        name, _ = self.read.setdefault(operand, (f"x{len(self.read)}", reach))
        return Leaf(name)

    def _given(self, number: float) -> Expr:
        if not is_symbolic(number):
            return Const(float(number))
        name = f"n{len(self.numbers)}"
        self.numbers[name] = 1.0 * number
        return Leaf(name)
