"""Integers stay within their extents, and a number of entries is trusted only if its extent allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.compiler.rewrite.counts.extents import Extent, Extents
from onert.ir import Constant, DType, Package, TensorType, evaluate
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import CountedWhere, FirstEntries
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.symbolic.instructions import instructions
from onert.ir.symbolic.trace import Trace

Array = np.ndarray[Any, Any]
_KINDS = (
    *(BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.MINIMUM, BinaryKind.MAXIMUM),
    *(BinaryKind.FLOOR_DIV, BinaryKind.DIV),
)


def _random(rng: np.random.Generator) -> tuple[Builder, list[int]]:
    """Random arithmetic on computed counts and small integers: scalars, and rows of three."""
    b = Builder()
    mask, small = b.input(TensorType(DType.BOOL, (9,))), b.input(TensorType(DType.INT32, (3,)))
    count = b.add(Cast(DType.INT32), b.add_many(CountedWhere(), mask)[1])
    some = b.add(Reduce(Reduction.SUM), b.add(Cast(DType.INT32), mask), b.constant(np.int32([0])))
    best = b.add(Cast(DType.INT32), b.add(ArgReduce(Extreme.MAX), small, b.constant(np.int32(0))))
    scalars = [count, some, best, b.constant(np.int32(rng.integers(-4, 9)))]
    rows = [b.add(Pack(0), *(scalars[int(i)] for i in rng.integers(0, 4, 3))), small]
    for _ in range(12):
        one, other = (scalars[int(i)] for i in rng.integers(0, len(scalars), 2))
        row = rows[int(rng.integers(0, len(rows)))]
        match int(rng.integers(0, 7)):
            case 0 | 1 | 2:
                kind = _KINDS[int(rng.integers(0, 5))]
                scalars.append(b.add(Binary(kind), one, other))
                rows.append(b.add(Binary(kind), row, one))
            case 3:
                divisor = b.constant(np.int32(rng.integers(1, 5)))
                scalars.append(b.add(Binary(_KINDS[int(rng.integers(5, 7))]), one, divisor))
            case 4:
                scalars.append(b.add(Gather(0), row, b.constant(np.int32(rng.integers(0, 3)))))
            case 5:
                kinds = (Reduction.SUM, Reduction.PROD, Reduction.MIN, Reduction.MAX)
                axes = b.constant(np.int32([0]))
                scalars.append(b.add(Reduce(kinds[int(rng.integers(0, 4))]), row, axes))
                chosen = b.add(Gather(0), mask, b.constant(np.int32(2)))
                scalars.append(b.add(Select(), chosen, one, other))
            case _:
                last = b.add(StridedSlice(begin_mask=1), row, *(b.constant(np.int32([i])) for i in (0, 2, 1)))
                rows.append(b.add(Concat(0), last, b.add(Reshape((1,)), one)))
    return b, [*scalars, *rows]


@pytest.mark.parametrize("seed", range(12))
def test_every_integer_is_within_its_extent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, operands = _random(rng)
    graph = b.subgraph(operands)
    types = {i: o.known for i, o in enumerate(graph.operands)}
    count = next(o.outputs[1] for o in graph.operations if isinstance(o.op, CountedWhere))
    extents = Extents(graph, types, {count: 9}, lambda _: {})
    found = {i: extents.of(i) for i in graph.outputs}
    assert all(cells is not None for cells in found.values())
    for at in range(20):
        mask = rng.random(9) < (at % 5) / 4
        known: dict[int, Any] = {i: o.data.array for i, o in enumerate(graph.operands) if o.data is not None}
        known |= {graph.inputs[0]: mask, graph.inputs[1]: rng.integers(-(1 << 31), 1 << 31, 3).astype(np.int32)}
        for operation in graph.operations:
            arrays = [known[i] for i in operation.used]
            with np.errstate(over="ignore"):
                known |= dict(
                    zip(operation.outputs, evaluate(operation.op, arrays, graph.types(operation)), strict=True)
                )
        for i, cells in found.items():
            for number, extent in zip(
                known[i].reshape(-1), np.broadcast_to(cells, known[i].shape).reshape(-1), strict=True
            ):
                assert extent.low <= number <= extent.high
                if extent.terms is not None:
                    assert number == extent.constant + sum(int(known[c]) * times for c, times in extent.terms)


def test_extents_of_sums_of_counts_do_not_depend_on_their_order() -> None:
    b = Builder()
    count = b.add_many(CountedWhere(), b.input(TensorType(DType.BOOL, (5,))))[1]
    rest = b.add(Binary(BinaryKind.SUB), b.constant(np.int64(5)), count)
    graph = b.subgraph([b.add(Binary(BinaryKind.ADD), rest, count), b.add(Binary(BinaryKind.ADD), count, count)])
    extents = Extents(graph, {i: o.known for i, o in enumerate(graph.operands)}, {count: 5}, lambda _: {})
    assert [extents.one(o) for o in graph.outputs] == [Extent(5, 5, (), 5), Extent(0, 10, ((count, 2),))]


def test_the_extent_of_a_length_times_any_integer_adds_no_condition_beyond_64_bits() -> None:
    trace = Trace((5,), (40,), ())
    b = Builder()
    free, length = b.input(TensorType(DType.INT64, ())), b.input(TensorType(DType.INT64, ()))
    graph = b.subgraph([b.add(Binary(BinaryKind.MUL), free, length)])
    types = {i: o.type for i, o in enumerate(graph.operands)}
    types[length] = types[length].with_data(Constant(np.array(trace.lengths[0], object)))
    (product,) = graph.outputs
    assert Extents(graph, types, {}, lambda _: {}).one(product) == Extent(-(1 << 63), (1 << 63) - 1)
    assert instructions(trace, tuple(trace.conditions)).registers is not None


@pytest.mark.parametrize("given", [-1, 5, 1 << 40])
def test_a_count_of_more_entries_than_there_are_is_rejected(given: int) -> None:
    b = Builder()
    x, count = b.input(TensorType(DType.FLOAT32, (4, 2)), "x"), b.input(TensorType(DType.INT64, ()), "count")
    first = b.add(FirstEntries(0), x, count)
    twice = b.add(Binary(BinaryKind.ADD), first, first)
    package = Package((b.model([b.add(Gather(0), twice, b.constant(np.int32([0])))]),), "counted")
    program = onert.compile(package, num_threads=1)
    assert all(step.backend == "llvm" for step in program.main.steps)
    execution, whole = onert.Execution(program), np.arange(8, dtype=np.float32).reshape(4, 2)
    with pytest.raises(onert.ExecutionError, match=f"{given} is more than there are, or negative"):
        execution.run([whole, np.int64(given)])
    (found,) = execution.run([whole, np.int64(1)]).values()
    np.testing.assert_array_equal(found, 2 * whole[:1])
