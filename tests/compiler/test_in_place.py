"""Claims about what is updated in place, and what is not because something reads it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from bundle.machines import needs_compiler

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
    """A table that is a variable, a row, and an index; the first result is the table's next value."""
    b = Builder()
    table, row, at = b.variable(TABLE, "table"), b.input(ROW, "row"), b.input(AT, "at")
    following, *outputs = body(b, table, row, at)
    b.update(table, following)
    return b.subgraph(outputs)


def _put(b: Builder, table: int, row: int, at: int) -> list[int]:
    made = b.add(PutRow(), table, row, at)
    return [made, b.add(ABS, made)]


def _read_before(b: Builder, table: int, row: int, at: int) -> list[int]:
    old = b.add(ABS, table)
    return [b.add(PutRow(), table, row, at), old]


def _read_behind(b: Builder, table: int, row: int, at: int) -> list[int]:
    """What reads the old table stands behind the update, and may come before it."""
    made = b.add(PutRow(), table, row, at)
    return [made, b.add(ABS, b.add(Reshape((8,)), table))]


def _through_views(b: Builder, table: int, row: int, at: int) -> list[int]:
    flat = b.add(Reshape((4, 1, 2)), table)
    made = b.add(PutRow(), flat, b.add(Reshape((1, 1, 2)), row), at)
    return [b.add(Reshape((4, 2)), made), b.add(ABS, made)]


def _read_with_result(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The old table and the new one are read by one operation."""
    made = b.add(PutRow(), table, row, at)
    return [made, b.add(ADD, made, table)]


def _of_itself(b: Builder, table: int, row: int, at: int) -> list[int]:
    """What is put is made of the table, and read before it is changed."""
    return [b.add(PutRow(), table, b.add(ADD, row, b.add(PutRow(), row, row, b.constant(np.int32(0)))), at), row]


def _other_end(b: Builder, table: int, row: int, at: int) -> list[int]:
    """What is put is lost: the next value is another."""
    return [b.add(ABS, table), b.add(PutRow(), table, row, at)]


def _branches(b: Builder, table: int, row: int, at: int) -> list[int]:
    """Two updates of the old table."""
    return [b.add(PutRow(), table, row, at), b.add(PutRow(), table, b.add(ABS, row), at)]


def _given_back(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The next value is an output too."""
    made = b.add(PutRow(), table, row, at)
    return [made, made]


def _beside(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The next value is updated further, for an output alone."""
    following = b.add(ABS, table)
    return [following, b.add(ABS, b.add(PutRow(), following, row, at))]


def _crossed(b: Builder, table: int, row: int, at: int) -> list[int]:
    """Another variable takes what is put, and is read when it is made."""
    other = b.variable(TABLE, "other")
    made = b.add(PutRow(), table, row, at)
    b.update(other, made)
    return [b.add(ABS, other), b.add(ADD, made, other)]


def _scattered(b: Builder, table: int, row: int, at: int) -> list[int]:
    """The same row twice, and once more added to it."""
    place = b.add(Reshape((1, 1)), at)
    first = b.add(ScatterSlices(), table, b.add(Concat(0), place, place), b.add(Concat(0), row, row))
    made = b.add(ScatterSlices(Combination.ADD), first, place, row)
    return [made, b.add(ABS, made)]


def _scattered_widely(b: Builder, table: int, row: int, at: int) -> list[int]:
    """As many rows as there are: what they overwrite is the whole table."""
    rows, places = (b.add(Concat(0), *[i] * 4) for i in (row, b.add(Reshape((1, 1)), at)))
    return [b.add(ScatterSlices(), table, places, rows), row]


IN_PLACE = [_put, _read_before, _read_behind, _through_views, _of_itself, _branches, _scattered]
COPIED = [_read_with_result, _other_end, _given_back, _beside, _crossed, _scattered_widely]


@pytest.mark.parametrize("body", [*IN_PLACE, *COPIED], ids=lambda body: body.__name__)
def test_the_last_to_touch_a_variable_is_in_place(body: Callable[..., list[int]]) -> None:
    graph = update_in_place(copy_outputs(_graph(body)))
    found = decide(graph)
    update = graph.state[-1]
    assert (found.roots.get(update.source) == update.variable) is (body in IN_PLACE)


def _by_meaning(graph: Subgraph, runs: Sequence[Sequence[Array]]) -> list[Array]:
    """The results of runs, operation by operation."""
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
def test_results_are_those_that_the_operations_mean(
    body: Callable[..., list[int]], executor: str, backends: tuple[str, ...]
) -> None:
    rows = np.random.default_rng(0).standard_normal((6, 1, 2)).astype(np.float32)
    runs = [(row, np.array(number % 4, np.int32)) for number, row in enumerate(rows)]
    package = Package((Subgraphs((_graph(body),)),))
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2, backends=backends))
    found = [array for run in runs for array in execution.run(run).values()]
    assert all(map(np.array_equal, _by_meaning(_graph(body), runs), found))


def test_what_runs_as_one_after_an_update_reads_a_copy() -> None:
    """A chain of operations runs where its last one stands: behind the update, although its first one reads the old
    table."""

    def body(b: Builder, table: int, row: int, at: int) -> list[int]:
        old = b.add(ABS, table)
        made = b.add(PutRow(), table, row, at)
        return [made, b.add(ADD, old, made)]

    graph = _graph(body)
    execution = onert.Execution(onert.compile(Package((Subgraphs((graph,)),)), num_threads=1))
    row = np.float32([[-3, 4]])
    assert next(iter(execution.run([row, np.int32(1)]).values())).tolist() == [[0, 0], [-3, 4], [0, 0], [0, 0]]
    assert next(iter(execution.run([row, np.int32(1)]).values())).tolist() == [[0, 0], [0, 8], [0, 0], [0, 0]]


def test_a_result_in_the_arena_is_updated_where_it_lies() -> None:
    b = Builder()
    x, row = b.input(TABLE, "x"), b.input(ROW, "row")
    made = b.add(ABS, x)
    for number in range(3):
        made = b.add(PutRow(), made, row, b.constant(np.int32(number)))
    graph = b.subgraph([b.add(ABS, made)])
    program = onert.compile(Package((Subgraphs((graph,)),)), num_threads=1)
    (arena,) = program.memory_plan.values()
    assert arena.size == 64
    found = onert.Execution(program).run([-np.ones((4, 2), np.float32), np.float32([[2, 3]])])
    assert next(iter(found.values())).tolist() == [[2, 3], [2, 3], [2, 3], [1, 1]]


@pytest.mark.parametrize("combination", Combination)
@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_slices_are_scattered_where_the_tensor_lies(
    combination: Combination, executor: str, backends: tuple[str, ...]
) -> None:
    b = Builder()
    x, rows = b.input(TABLE, "x"), b.input(TensorType(DType.FLOAT32, (3, 2)), "rows")
    places = b.constant(np.int64([[1], [3], [1]]))
    made = b.add(ScatterSlices(combination), b.add(ABS, x), places, rows)
    again = b.add(ScatterSlices(combination), made, places, rows)
    graph = b.subgraph([b.add(ABS, again)])
    program = onert.compile(Package((Subgraphs((graph,)),)), executor=executor, num_threads=2, backends=backends)
    (arena,) = program.memory_plan.values()
    assert arena.size == 64
    inputs = [-np.ones((4, 2), np.float32), np.float32([[2, 3], [4, 5], [-7, 0.5]])]
    found = onert.Execution(program).run(inputs)
    np.testing.assert_array_equal(next(iter(found.values())), *_by_meaning(graph, [inputs]))


def test_what_reads_a_tensor_behind_a_scatter_sees_the_old_one() -> None:
    b = Builder()
    x, row = b.input(TABLE, "x"), b.input(ROW, "row")
    made = b.add(ABS, x)
    put = b.add(ScatterSlices(), made, b.constant(np.int64([[2]])), row)
    graph = b.subgraph([b.add(ADD, put, made)])
    program = onert.compile(Package((Subgraphs((graph,)),)), num_threads=1)
    inputs = [-np.ones((4, 2), np.float32), np.float32([[2, 3]])]
    np.testing.assert_array_equal(
        next(iter(onert.Execution(program).run(inputs).values())), *_by_meaning(graph, [inputs])
    )


def test_an_update_that_breaks_its_rule_has_changed_nothing() -> None:
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
    """Rows that are added to a variable, and a sum of all that it holds."""
    b = Builder()
    table, rows = b.variable(TABLE, "table"), b.input(TensorType(DType.FLOAT32, (2, 2)), "rows")
    places = b.input(TensorType(DType.INT64, (2, 1)), "places")
    made = b.add(ScatterSlices(Combination.ADD), table, places, rows)
    b.update(table, made)
    return Package((Subgraphs((b.subgraph([b.add(ABS, made)]),)),), "adding")


_FAILING = ([0, 4], [4, 0], [0, -1], [-1, 0], [0, 1 << 40])
"""Places of which one is outside: the other row is added before that is known, or after it."""


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_rows_added_before_an_index_that_is_outside_are_taken_back(executor: str, backends: tuple[str, ...]) -> None:
    execution = onert.Execution(onert.compile(_adding(), executor=executor, num_threads=2, backends=backends))
    rows = np.float32([[1, 2], [3, 4]])
    execution.run([rows, np.int64([[3], [3]])])
    for places in _FAILING:
        with pytest.raises(onert.ExecutionError, match="outside of dimension 0 of 4"):
            execution.run([rows, np.int64(places).reshape(2, 1)])
    found = next(iter(execution.run([rows, np.int64([[0], [3]])]).values()))
    assert found.tolist() == [[1, 2], [0, 0], [0, 0], [7, 10]]


@needs_compiler
def test_a_bundle_takes_back_rows_added_before_an_index_that_is_outside(tmp_path: Path) -> None:
    onert.bundle(_adding(), tmp_path)
    loaded = onert.load_bundle(tmp_path)
    rows = np.float32([[1, 2], [3, 4]])
    loaded.run({"rows": rows, "places": np.int64([[3], [3]])})
    for places in _FAILING:
        with pytest.raises(onert.ExecutionError, match="error code"):
            loaded.run({"rows": rows, "places": np.int64(places).reshape(2, 1)})
    found = next(iter(loaded.run({"rows": rows, "places": np.int64([[0], [3]])}).values()))
    assert found.tolist() == [[1, 2], [0, 0], [0, 0], [7, 10]]


def test_a_number_alone_is_updated_without_saying_where() -> None:
    b = Builder()
    x, update = (b.input(TensorType(DType.FLOAT32, ()), name) for name in ("x", "update"))
    package = Package((Subgraphs((b.subgraph([b.add(HloDynamicUpdateSlice(), x, update)]),)),), "m")
    execution = onert.Execution(onert.compile(package, num_threads=1))
    assert execution.run([np.float32(1), np.float32(2)]).popitem()[1] == 2


def _flat_ends(b: Builder, x: int) -> list[int]:
    """An input in another shape, and a result in another shape that is an output."""
    made = b.add(ABS, b.add(Reshape((8,)), x))
    return [b.add(Reshape((2, 4)), made), b.add(Reshape((8, 1)), made), b.add(ADD, made, made)]


def _copied_end(b: Builder, x: int) -> list[int]:
    """What is an output as well as the input, or as another output, is copied."""
    made = b.add(ABS, x)
    return [b.add(Reshape((8,)), x), made, b.add(Reshape((8,)), made)]


def _updated(b: Builder, x: int) -> list[int]:
    """What is updated afterwards lies where the update does, not in the output that holds what it was."""
    made = b.add(ABS, x)
    row, at = b.constant(np.float32([[1, 2]])), b.constant(np.int32(1))
    return [b.add(Reshape((8,)), made), b.add(Reshape((2, 4)), b.add(PutRow(), made, row, at))]


@pytest.mark.parametrize(("body", "count"), [(_flat_ends, 2), (_copied_end, 0), (_updated, 2)])
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_other_shapes_of_inputs_and_outputs_are_no_copies(
    body: Callable[[Builder, int], list[int]], count: int, executor: str
) -> None:
    b = Builder()
    graph = b.subgraph(body(b, b.input(TABLE, "x")))
    assert len(decide(graph).roots) == count
    x = np.random.default_rng(0).standard_normal((2, *TABLE.shape)).astype(np.float32)
    execution = onert.Execution(onert.compile(Package((Subgraphs((graph,)),)), executor=executor, num_threads=2))
    found = [array for each in x for array in execution.run([each]).values()]
    assert all(map(np.array_equal, _by_meaning(graph, [[each] for each in x]), found))
