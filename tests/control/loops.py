"""Models with loops and branches, built from subgraphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.ir import DType, Op, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import If, While
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

ONE = TensorType(DType.INT32, ())
ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
LESS = Comparison(ComparisonKind.LESS)


def floats(*shape: int | None) -> TensorType:
    return TensorType(DType.FLOAT32, shape)


def loop(
    types: list[TensorType], body: Callable[[Builder, list[int]], list[int]], limit: int | None = None
) -> tuple[Subgraph, Subgraph, Subgraph]:
    """A model of one loop over all its inputs, which runs while the first is below the second, or below `limit`."""
    top = Builder()
    results = top.add_many(While(1, 2, tuple(types)), *(top.input(t) for t in types))
    condition = Builder("condition")
    given = [condition.input(t) for t in types]
    bound = given[1] if limit is None else condition.constant(np.int32(limit))
    goes_on = condition.add(LESS, given[0], bound)
    inner = Builder("body")
    return (
        top.subgraph(results),
        condition.subgraph([goes_on]),
        inner.subgraph(body(inner, [inner.input(t) for t in types])),
    )


def one_more(b: Builder, x: int, step: int = 1) -> int:
    return b.add(ADD, x, b.constant(np.int32(step)))


def fibonacci() -> tuple[Subgraph, ...]:
    """for i < n: a, b = b, a + b. A round's results become different operands in the next round."""

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, first, second = given
        return [one_more(b, i), n, second, b.add(ADD, first, second)]

    return loop([ONE, ONE, floats(3), floats(3)], body)


def running_sums(rows: int, width: int | None = 5) -> tuple[Subgraph, ...]:
    """for i < n: total += x[i]; sums[i] = total. The list is updated the way TensorFlow's converter writes it."""

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, x, total, sums = given
        following = one_more(b, i)
        total = b.add(ADD, b.add(Gather(axis=0), x, i), total)
        one = b.constant(np.int32([1]))
        before = b.add(Concat(0), b.add(Reshape(), i, one), b.constant(np.int32([-1])))
        after = b.add(Concat(0), b.add(Reshape(), following, one), b.constant(np.int32([0])))
        first = b.add(Slice(), sums, b.constant(np.int32([0, 0])), before)
        rest = b.add(Slice(), sums, after, b.constant(np.int32([-1, -1])))
        row = b.add(ExpandDims(), total, b.constant(np.int32(0)))
        return [following, n, x, total, b.add(Concat(0), first, row, rest)]

    return loop([ONE, ONE, floats(rows, width), floats(width), floats(rows, width)], body)


def collatz() -> tuple[Subgraph, ...]:
    """for i < n: x = x * 2 if x < 100 else x - 90. A branch in a loop."""
    top, condition, _ = loop([ONE, ONE, ONE], lambda b, given: given)
    body = Builder("body")
    i, n, x = (body.input(ONE) for _ in range(3))
    small = body.add(LESS, x, body.constant(np.int32(100)))
    body_graph = body.subgraph([one_more(body, i), n, body.add(If(3, 4, (ONE,)), small, x)])
    return top, condition, body_graph, by_constant(MUL, 2), by_constant(ADD, -90)


def triangle() -> tuple[Subgraph, ...]:
    """for i < n: (for j < i: total += 1). A loop in a loop."""
    top, condition, _ = loop([ONE, ONE, ONE], lambda b, given: given)
    body = Builder("body")
    i, n, total = (body.input(ONE) for _ in range(3))
    zero = body.constant(np.int32(0))
    inner = body.add_many(While(3, 4, (ONE, ONE, ONE)), zero, i, total)
    outer = body.subgraph([one_more(body, i), n, inner[2]])
    _, inner_condition, inner_body = loop([ONE, ONE, ONE], lambda b, g: [one_more(b, g[0]), g[1], one_more(b, g[2])])
    return top, condition, outer, inner_condition, inner_body


def by_constant(op: Op, value: int) -> Subgraph:
    """x op value."""
    b = Builder()
    return b.subgraph([b.add(op, b.input(ONE, "x"), b.constant(np.int32(value)))])


def search(limit: int) -> tuple[Subgraph, ...]:
    """i = 0; while i < limit: found = (i == wanted); i += 1; if found: break. The results are i and found."""
    flag = TensorType(DType.BOOL, ())
    types = (ONE, flag, ONE)
    top = Builder()
    wanted = top.input(ONE, "wanted")
    start, no = top.constant(np.int32(0)), top.constant(np.bool_(False))
    i, found, _ = top.add_many(While(1, 2, types), start, no, wanted)
    condition = Builder("condition")
    given = [condition.input(t) for t in types]
    goes_on = condition.add(LESS, given[0], condition.constant(np.int32(limit)))
    condition_graph = condition.subgraph([condition.add(If(3, 4, (flag,)), goes_on, given[1])])
    body = Builder("body")
    given = [body.input(t) for t in types]
    equal = body.add(Comparison(ComparisonKind.EQUAL), given[0], given[2])
    body_graph = body.subgraph([one_more(body, given[0]), equal, given[2]])
    opposite, never = Builder("opposite"), Builder("never")
    opposite_graph = opposite.subgraph([opposite.add(Unary(UnaryKind.LOGICAL_NOT), opposite.input(flag))])
    never.input(flag)
    return (
        top.subgraph([i, found]),
        condition_graph,
        body_graph,
        opposite_graph,
        never.subgraph([never.constant(np.bool_(False))]),
    )


def doublings(rounds: int) -> tuple[Subgraph, ...]:
    """for i < rounds: x = 1; while x < 8: x += x; total += x. A loop without a counter in a counted loop."""
    _, condition, _ = loop([ONE, ONE], lambda b, given: given, rounds)
    top = Builder()
    start = top.input(ONE, "start")
    body = Builder("body")
    i, total = body.input(ONE), body.input(ONE)
    doubled = body.add(While(3, 4, (ONE,)), body.constant(np.int32(1)))
    body_graph = body.subgraph([one_more(body, i), body.add(ADD, total, doubled)])
    _, inner_condition, inner_body = loop([ONE], lambda b, g: [b.add(ADD, g[0], g[0])], 8)
    results = top.add_many(While(1, 2, (ONE, ONE)), top.constant(np.int32(0)), start)
    return top.subgraph([results[1]]), condition, body_graph, inner_condition, inner_body
