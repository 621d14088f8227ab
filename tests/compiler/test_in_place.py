"""What is updated in place, and what is copied because something still reads the old value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from bundle.machines import needs_compiler
from length_models import opened

import onert
from onert.compiler.passes.copy_outputs import copy_outputs
from onert.compiler.passes.update_in_place import update_in_place
from onert.compiler.state.in_place import decide
from onert.ir import Array, DType, Package, Subgraph, Subgraphs, TensorType, evaluate
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicUpdateSlice

TABLE, ROW, AT = (
    TensorType(kind, shape) for kind, shape in ((DType.FLOAT32, (4, 2)), (DType.FLOAT32, (1, 2)), (DType.INT32, ()))
)
ADD, ABS = Binary(BinaryKind.ADD), Unary(UnaryKind.ABS)


def _graph(body: Callable[[Builder, int, int, int], list[int]]) -> Subgraph:
    """A table that is a variable, a row, and an index; the body's first result is the table's next value."""
    b = Builder()
    table, row, at = b.variable(TABLE, "table"), b.input(ROW, "row"), b.input(AT, "at")
    following, *outputs = body(b, table, row, at)
    b.update(table, following)
    return b.subgraph(outputs)


def _put(b: Builder, table: int, row: int, at: int) -> list[int]:
    result = b.add(PutRow(), table, row, at)
    return [result, b.add(ABS, result)]


def _read_before(b: Builder, table: int, row: int, at: int) -> list[int]:
    old = b.add(ABS, table)
    return [b.add(PutRow(), table, row, at), old]


def _read_behind(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The old table is read by an operation listed after the update, which may run before it."""
    result = b.add(PutRow(), table, row, at)
    return [result, b.add(ABS, b.add(Reshape((8,)), table))]


def _through_views(b: Builder, table: int, row: int, at: int) -> list[int]:
    flat = b.add(Reshape((4, 1, 2)), table)
    result = b.add(PutRow(), flat, b.add(Reshape((1, 1, 2)), row), at)
    return [b.add(Reshape((4, 2)), result), b.add(ABS, result)]


def _read_with_result(b: Builder, table: int, row: int, at: int) -> list[int]:
    """One operation reads both the old table and the new one."""
    result = b.add(PutRow(), table, row, at)
    return [result, b.add(ADD, result, table)]


def _of_itself(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The row is added to an update of itself before it is put into the table."""
    return [b.add(PutRow(), table, b.add(ADD, row, b.add(PutRow(), row, row, b.constant(np.int32(0)))), at), row]


def _other_end(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The updated table is only an output; the next value is another tensor."""
    return [b.add(ABS, table), b.add(PutRow(), table, row, at)]


def _branches(b: Builder, table: int, row: int, at: int) -> list[int]:
    """Two updates of the old table, one of which is an output."""
    return [b.add(PutRow(), table, row, at), b.add(PutRow(), table, b.add(ABS, row), at)]


def _given_back(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The next value is also an output."""
    result = b.add(PutRow(), table, row, at)
    return [result, result]


def _beside(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The next value is updated once more, only for an output."""
    following = b.add(ABS, table)
    return [following, b.add(ABS, b.add(PutRow(), following, row, at))]


def _crossed(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The update is the next value of another variable, which is read after the update."""
    other = b.variable(TABLE, "other")
    result = b.add(PutRow(), table, row, at)
    b.update(other, result)
    return [b.add(ABS, other), b.add(ADD, result, other)]


def _scattered(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The same row is written twice, and once more added."""
    place = b.add(Reshape((1, 1)), at)
    first = b.add(ScatterSlices(), table, b.add(Concat(0), place, place), b.add(Concat(0), row, row))
    result = b.add(ScatterSlices(Combination.ADD), first, place, row)
    return [result, b.add(ABS, result)]


def _scattered_widely(b: Builder, table: int, row: int, at: int) -> list[int]:
    """As many rows as the table has, so the record of overwritten elements would be as large as the table."""
    rows, places = (b.add(Concat(0), *[i] * 4) for i in (row, b.add(Reshape((1, 1)), at)))
    return [b.add(ScatterSlices(), table, places, rows), row]


IN_PLACE = [_put, _read_before, _read_behind, _through_views, _of_itself, _branches, _scattered]
COPIED = [_read_with_result, _other_end, _given_back, _beside, _crossed, _scattered_widely]


@pytest.mark.parametrize("body", [*IN_PLACE, *COPIED], ids=lambda body: body.__name__)
def test_an_update_is_in_place_if_nothing_reads_the_old_value_later(body: Callable[..., list[int]]) -> None:
    graph = update_in_place(copy_outputs(_graph(body)))
    found = decide(graph)
    update = graph.state[-1]
    assert (found.roots.get(update.source) == update.variable) is (body in IN_PLACE)


def _by_meaning(graph: Subgraph, runs: Sequence[Sequence[Array]]) -> list[Array]:
    """The results of all runs, evaluated operation by operation."""
    state = {i: np.zeros(TABLE.shape, np.float32) for i, operand in enumerate(graph.operands) if operand.variable}
    found = []
    for inputs in runs:
        known = {i: operand.data.array for i, operand in enumerate(graph.operands) if operand.data is not None}
        known |= state | dict(zip(graph.inputs, inputs, strict=True))
        for operation in graph.operations:
            results = evaluate(operation.op, [known[i] for i in operation.used], graph.types(operation))
            known |= dict(zip(operation.outputs, results, strict=True))
        state |= {update.variable: known[update.source] for update in graph.state}
        found += [known[o] for o in graph.outputs]
    return found


@pytest.mark.parametrize("body", [*IN_PLACE, *COPIED], ids=lambda body: body.__name__)
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_updates_in_place_do_not_change_results(
    body: Callable[..., list[int]], executor: str, backends: tuple[str, ...]
) -> None:
    rows = np.random.default_rng(0).standard_normal((6, 1, 2)).astype(np.float32)
    runs = [(row, np.array(number % 4, np.int32)) for number, row in enumerate(rows)]
    package = Package((Subgraphs((_graph(body),)),))
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2, backends=backends))
    found = [array for run in runs for array in execution.run(run).values()]
    assert all(map(np.array_equal, _by_meaning(_graph(body), runs), found))


def test_operations_fused_and_run_after_an_update_read_a_copy() -> None:
    """A fused chain runs at the position of its last operation: after the update, although its first one reads the old
    table."""

    def body(b: Builder, table: int, row: int, at: int) -> list[int]:
        old = b.add(ABS, table)
        result = b.add(PutRow(), table, row, at)
        return [result, b.add(ADD, old, result)]

    graph = _graph(body)
    execution = onert.Execution(onert.compile(Package((Subgraphs((graph,)),)), num_threads=1))
    row = np.float32([[-3, 4]])
    assert next(iter(execution.run([row, np.int32(1)]).values())).tolist() == [[0, 0], [-3, 4], [0, 0], [0, 0]]
    assert next(iter(execution.run([row, np.int32(1)]).values())).tolist() == [[0, 0], [0, 8], [0, 0], [0, 0]]


def test_a_result_in_the_arena_is_updated_in_place() -> None:
    b = Builder()
    x, row = b.input(TABLE, "x"), b.input(ROW, "row")
    result = b.add(ABS, x)
    for number in range(3):
        result = b.add(PutRow(), result, row, b.constant(np.int32(number)))
    graph = b.subgraph([b.add(ABS, result)])
    program = onert.compile(Package((Subgraphs((graph,)),)), num_threads=1)
    (arena,) = program.memory_plan.values()
    assert arena.size == 64
    found = onert.Execution(program).run([-np.ones((4, 2), np.float32), np.float32([[2, 3]])])
    assert next(iter(found.values())).tolist() == [[2, 3], [2, 3], [2, 3], [1, 1]]


@pytest.mark.parametrize("combination", Combination)
@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_slices_are_scattered_in_place(combination: Combination, executor: str, backends: tuple[str, ...]) -> None:
    b = Builder()
    x, rows = b.input(TABLE, "x"), b.input(TensorType(DType.FLOAT32, (3, 2)), "rows")
    places = b.constant(np.int64([[1], [3], [1]]))
    result = b.add(ScatterSlices(combination), b.add(ABS, x), places, rows)
    twice = b.add(ScatterSlices(combination), result, places, rows)
    graph = b.subgraph([b.add(ABS, twice)])
    program = onert.compile(Package((Subgraphs((graph,)),)), executor=executor, num_threads=2, backends=backends)
    (arena,) = program.memory_plan.values()
    assert arena.size == 64
    inputs = [-np.ones((4, 2), np.float32), np.float32([[2, 3], [4, 5], [-7, 0.5]])]
    found = onert.Execution(program).run(inputs)
    np.testing.assert_array_equal(next(iter(found.values())), *_by_meaning(graph, [inputs]))


def test_a_reader_of_the_old_tensor_after_a_scatter_sees_the_old_values() -> None:
    b = Builder()
    x, row = b.input(TABLE, "x"), b.input(ROW, "row")
    result = b.add(ABS, x)
    put = b.add(ScatterSlices(), result, b.constant(np.int64([[2]])), row)
    graph = b.subgraph([b.add(ADD, put, result)])
    program = onert.compile(Package((Subgraphs((graph,)),)), num_threads=1)
    inputs = [-np.ones((4, 2), np.float32), np.float32([[2, 3]])]
    np.testing.assert_array_equal(
        next(iter(onert.Execution(program).run(inputs).values())), *_by_meaning(graph, [inputs])
    )


def test_an_update_with_an_invalid_index_changes_nothing() -> None:
    for backends in ((), ("reference",)):
        execution = onert.Execution(onert.compile(Package((Subgraphs((_graph(_put),)),)), backends=backends))
        row = np.float32([[1, 2]])
        execution.run([row, np.int32(3)])
        for index in (4, -1):
            with pytest.raises(onert.ExecutionError, match=f"index {index} "):
                execution.run([row, np.int32(index)])
        found = next(iter(execution.run([row, np.int32(0)]).values()))
        assert found.tolist() == [[1, 2], [0, 0], [0, 0], [1, 2]]


def _adding() -> Package:
    """Rows are added to a variable, which is returned."""
    b = Builder()
    table, rows = b.variable(TABLE, "table"), b.input(TensorType(DType.FLOAT32, (2, 2)), "rows")
    places = b.input(TensorType(DType.INT64, (2, 1)), "places")
    result = b.add(ScatterSlices(Combination.ADD), table, places, rows)
    b.update(table, result)
    return Package((Subgraphs((b.subgraph([b.add(ABS, result)]),)),), "adding")


_FAILING = ([0, 4], [4, 0], [0, -1], [-1, 0], [0, 1 << 40])
"""Pairs of indices, one of them out of range: the other row is added before or after that is detected."""


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_rows_added_before_an_index_out_of_range_are_restored(executor: str, backends: tuple[str, ...]) -> None:
    execution = onert.Execution(onert.compile(_adding(), executor=executor, num_threads=2, backends=backends))
    rows = np.float32([[1, 2], [3, 4]])
    execution.run([rows, np.int64([[3], [3]])])
    for places in _FAILING:
        with pytest.raises(onert.ExecutionError, match="outside of dimension 0 of 4"):
            execution.run([rows, np.int64(places).reshape(2, 1)])
    found = next(iter(execution.run([rows, np.int64([[0], [3]])]).values()))
    assert found.tolist() == [[1, 2], [0, 0], [0, 0], [7, 10]]


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_rows_of_any_number_added_to_a_table_of_any_length_are_restored(executor: str) -> None:
    """In memory that is input and output at once, as that of a cache: large enough to be used in place."""
    b, width = Builder(), 4096
    types = (DType.FLOAT32, (8, width)), (DType.INT64, (2, 1)), (DType.FLOAT32, (2, width))
    x, places, rows = (b.input(TensorType(*each), name) for each, name in zip(types, ("x", "at", "rows"), strict=True))
    package = opened(b.model([b.add(ScatterSlices(Combination.ADD), x, places, rows)]))
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2))
    for length, count in ((8, 2), (9, 3), (12, 6), (31, 1), (7, 3), (9, 2)):
        table = np.zeros((length, width), np.float32)
        given = [table.copy(), np.arange(count)[:, None], np.full((count, width), length, np.float32)]
        (expected,) = execution.run(given).values()
        np.testing.assert_array_equal(
            expected, np.repeat(np.float32([length, 0]), [count, length - count])[:, None] + given[0]
        )
        for name, array in zip(("x", "at", "rows"), (table, *given[1:]), strict=True):
            execution.set_input(name, array)
        execution.set_output(0, table)
        execution.execute()
        np.testing.assert_array_equal(table, expected)
        given[1][-1] = length
        with pytest.raises(onert.ExecutionError, match=rf"index {length} is outside of dimension 0( of {length})?$"):
            execution.execute()
        np.testing.assert_array_equal(table, expected)
    assert execution.program.stretch is not None


@needs_compiler
def test_a_bundle_restores_rows_added_before_an_index_out_of_range(tmp_path: Path) -> None:
    onert.bundle(_adding(), tmp_path)
    loaded = onert.load_bundle(tmp_path)
    rows = np.float32([[1, 2], [3, 4]])
    loaded.run({"rows": rows, "places": np.int64([[3], [3]])})
    for places in _FAILING:
        with pytest.raises(onert.ExecutionError, match="error code"):
            loaded.run({"rows": rows, "places": np.int64(places).reshape(2, 1)})
    found = next(iter(loaded.run({"rows": rows, "places": np.int64([[0], [3]])}).values()))
    assert found.tolist() == [[1, 2], [0, 0], [0, 0], [7, 10]]


def test_a_scalar_is_updated_without_indices() -> None:
    b = Builder()
    x, update = (b.input(TensorType(DType.FLOAT32, ()), name) for name in ("x", "update"))
    package = Package((Subgraphs((b.subgraph([b.add(HloDynamicUpdateSlice(), x, update)]),)),), "m")
    execution = onert.Execution(onert.compile(package, num_threads=1))
    assert execution.run([np.float32(1), np.float32(2)]).popitem()[1] == 2


def _flat_ends(b: Builder, x: int) -> list[int]:
    """An input that is reshaped first, and a result that is an output in two other shapes."""
    result = b.add(ABS, b.add(Reshape((8,)), x))
    return [b.add(Reshape((2, 4)), result), b.add(Reshape((8, 1)), result), b.add(ADD, result, result)]


def _copied_end(b: Builder, x: int) -> list[int]:
    """An input that is an output too, or a tensor that is two outputs, is copied."""
    result = b.add(ABS, x)
    return [b.add(Reshape((8,)), x), result, b.add(Reshape((8,)), result)]


def _updated(b: Builder, x: int) -> list[int]:
    """A tensor that is updated later is stored with its update, not in the output that has its old value."""
    result = b.add(ABS, x)
    row, at = b.constant(np.float32([[1, 2]])), b.constant(np.int32(1))
    return [b.add(Reshape((8,)), result), b.add(Reshape((2, 4)), b.add(PutRow(), result, row, at))]


@pytest.mark.parametrize(("body", "count"), [(_flat_ends, 2), (_copied_end, 0), (_updated, 2)])
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_reshaping_inputs_and_outputs_does_not_copy_them(
    body: Callable[[Builder, int], list[int]], count: int, executor: str
) -> None:
    b = Builder()
    graph = b.subgraph(body(b, b.input(TABLE, "x")))
    assert len(decide(graph).roots) == count
    x = np.random.default_rng(0).standard_normal((2, *TABLE.shape)).astype(np.float32)
    execution = onert.Execution(onert.compile(Package((Subgraphs((graph,)),)), executor=executor, num_threads=2))
    found = [array for each in x for array in execution.run([each]).values()]
    assert all(map(np.array_equal, _by_meaning(graph, [[each] for each in x]), found))
