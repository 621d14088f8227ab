"""In-place assignment: a result is computed in its variable's memory unless something still reads the old value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import onert.flow as myelin
from flow.compiling import compiled
from onert.frontend.flow.resolve import ASSIGNING
from onert.frontend.flow.table.assignments import ASSIGNMENTS
from onert.ir import Array, ExecutionError

RNG = np.random.default_rng(12)
Build = Callable[[myelin.Builder, myelin.Variable, myelin.Variable], None]
Meaning = Callable[[Array, Array], Array]
N = 37


def _assigned(value: Callable[[myelin.Builder, myelin.Variable, myelin.Variable], myelin.Variable]) -> Build:
    def build(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
        f.assign(w, value(f, w, x))

    return build


def _intermediate_shown(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    """An intermediate between the old and the new value is an output too."""
    half = f.mul(w, 0.5)
    half.output = True
    f.assign(w, f.add(half, x))


def _read_elsewhere(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.assign(w, f.add(w, x))
    f.assign(w, f.mul(w, f.sum(f.square(w))))


def _twice(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.assign(w, f.add(w, x))
    f.assign(w, f.mul(w, w))


CASES: dict[str, tuple[Build, Meaning, bool]] = {
    "a step": (_assigned(lambda f, w, x: f.sub(w, f.mul(x, 0.5))), lambda w, x: w - x / 2, True),
    "another value": (_assigned(lambda f, w, x: f.matmul(x, f.t(x))), lambda w, x: x @ x.T, True),
    "an input": (_assigned(lambda f, w, x: x), lambda w, x: x, True),
    "a function of functions": (
        _assigned(lambda f, w, x: f.mul(f.tanh(w), f.sigmoid(f.add(w, f.exp(x))))),
        lambda w, x: np.tanh(w) / (1 + np.exp(-(w + np.exp(x)))),
        True,
    ),
    "two steps": (_twice, lambda w, x: (w + x) ** 2, True),
    "a sum of all": (_assigned(lambda f, w, x: f.add(w, f.sum(w))), lambda w, x: w + w.sum(), False),
    "a step and a sum of all": (_read_elsewhere, lambda w, x: (w + x) * ((w + x) ** 2).sum(), False),
    "a transpose": (_assigned(lambda f, w, x: f.add(f.t(w), x)), lambda w, x: w.T + x, False),
    "a product of itself": (_assigned(lambda f, w, x: f.matmul(w, x)), lambda w, x: w @ x, False),
    "a row of itself": (
        _assigned(lambda f, w, x: f.sub(w, f.slice(w, [0, 0], [1, N]))),
        lambda w, x: w - w[:1],
        False,
    ),
    "an output besides": (_intermediate_shown, lambda w, x: w / 2 + x, False),
}


def _two_runs(net: Any, w: Any, x: Any, given: Array, meaning: Meaning) -> Iterator[tuple[Array, Array]]:
    """The variable's value and the expected value after each of two runs of the cell `f`."""
    data, wanted = net.cell("f").instance(), np.asarray(net[w]).astype("f8")
    if x in net.cell("f"):
        data[x] = given
    for _ in range(2):
        data.compute()
        wanted = meaning(wanted, given.astype("f8"))
        yield np.asarray(net[w]), wanted


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_an_assignment_is_in_place_if_nothing_reads_the_old_value_later(case: str, threads: int) -> None:
    build, meaning, expected = CASES[case]
    flow = myelin.Flow()
    f = flow.define("f")
    start, given = (RNG.uniform(-1, 1, (N, N)).astype("f4") for _ in range(2))
    w = f.parameter("W", shape=[N, N], value=start)
    x = f.var("x", shape=[N, N])
    build(f, w, x)
    net = myelin.Compiler(num_threads=threads).compile(flow)
    cell = net.cell("f")
    assert bool(cell.compiled.in_place) is expected
    for held, wanted in _two_runs(net, w, x, given, meaning):
        scale = max(np.abs(wanted).max(), 1)
        np.testing.assert_allclose(held / scale, wanted / scale, rtol=0, atol=2e-6)


def test_the_value_of_an_in_place_assignment_takes_no_memory() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    w = f.parameter("W", shape=[1000])
    f.assign(w, f.add(f.mul(w, 0.9), f.var("x", shape=[1000])))
    data = compiled(flow).cell("f").compiled
    assert data.layout.size == 4032  # x alone


def test_adding_a_product_to_a_variable_in_place_gives_the_right_sum() -> None:
    """Also if the sum is fused into the product."""
    flow = myelin.Flow()
    f = flow.define("f")
    start, a, b = (RNG.standard_normal(shape).astype("f4") for shape in ((40, 50), (40, 300), (300, 50)))
    w = f.parameter("W", shape=[40, 50], value=start)
    x, y = f.var("x", shape=[40, 300]), f.var("y", shape=[300, 50])
    f.assign(w, f.add(w, f.matmul(x, y)))
    net = myelin.Compiler(num_threads=2).compile(flow)
    data = net.cell("f").instance()
    data[x], data[y] = a, b
    data.compute()
    np.testing.assert_allclose(net[w], start + a @ b, rtol=1e-4, atol=1e-4)


def test_operations_are_not_merged_across_an_assignment() -> None:
    """Operations that read the same variable are merged, but not across an assignment to it."""
    flow = myelin.Flow()
    f = flow.define("f")
    w = f.parameter("W", shape=[4], value=np.arange(4, dtype="f4"))
    f.neg(w, name="before")
    product = f.matmul(f.reshape(w, [1, 4]), np.eye(4, dtype="f4"))
    f.assign(w, f.add(w, 1.0))
    f.neg(w, name="after")
    f.add(product, f.reshape(w, [1, 4]), name="both")
    data = compiled(flow).cell("f").instance()
    data.compute()
    assert list(data["f/before"]) == [0, -1, -2, -3]
    assert list(data["f/after"]) == [-1, -2, -3, -4]
    assert list(data["f/both"]) == [1, 3, 5, 7]


def test_an_assignment_is_ordered_after_the_operations_it_depends_on() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    w = f.parameter("W", shape=[2], value=np.ones(2, "f4"))
    f.assign(w, f.mul(w, 3.0))
    f.func.ops.reverse()  # type: ignore[union-attr]
    net = compiled(flow)
    net.cell("f").instance().compute()
    assert list(net[w]) == [3, 3]


def test_the_file_reader_and_the_table_list_the_same_assigning_operations() -> None:
    assert ASSIGNMENTS.keys() == ASSIGNING


ROWS = np.array([[3], [5], [-1], [3]], "i4")
Rows = Callable[[myelin.Builder, myelin.Variable, myelin.Variable], None]


def _added(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.assign_add_scatter(w, f.const(ROWS), x)


def _from_its_own_rows(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.assign_add_scatter(w, f.const(ROWS), f.mul(f.gather(w, f.const(abs(ROWS))), x))


def _scattered_first(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.assign(w, f.add(f.scatter(f.const(ROWS), x, w.shape), w))


def _twice_added(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    _added(f, w, x)
    f.assign_add_scatter(w, f.const(ROWS[:2]), f.sum(x, 0), batch=0, pooled=True)


def _read_before(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    f.neg(w, name="before")
    _added(f, w, x)


def _through_a_view(f: myelin.Builder, w: myelin.Variable, x: myelin.Variable) -> None:
    places = np.concatenate([np.zeros_like(ROWS), abs(ROWS)], 1)
    f.assign_add_scatter(w, f.const(ROWS), f.gather(f.reshape(w, [1, N, 4]), f.const(places)))


def _plus(*rows: tuple[int, float]) -> Meaning:
    def meaning(w: Array, x: Array) -> Array:
        found = w.copy()
        for at, row in enumerate((3, 5, 0, 3)):
            found[row] += x[at] * (at != 2)
        for row, factor in rows:
            found[row] += factor * x.sum(0)
        return found

    return meaning


def _plus_own(w: Array, x: Array) -> Array:
    found = w.copy()
    for at in (0, 1, 3):
        found[ROWS[at, 0]] += w[ROWS[at, 0]] * x[at]
    return found


ADDED: dict[str, tuple[Rows, Meaning, bool]] = {
    "rows": (_added, _plus(), True),
    "rows made of the variable's": (_from_its_own_rows, _plus_own, True),
    "scattered rows in a sum": (_scattered_first, _plus(), True),
    "rows of two operations": (_twice_added, _plus((3, 1), (5, 1)), True),
    "a variable that something else reads": (_read_before, _plus(), False),
    "rows of a view": (_through_a_view, lambda w, x: _plus_own(w, np.ones_like(x)), False),
}


@pytest.mark.parametrize("case", ADDED)
def test_rows_are_scatter_added_in_place(case: str) -> None:
    """No temporary of the variable's size is allocated unless something else reads the variable."""
    build, meaning, expected = ADDED[case]
    flow = myelin.Flow()
    f = flow.define("f")
    start, given = RNG.uniform(-1, 1, (N, 4)).astype("f4"), RNG.uniform(-1, 1, (4, 4)).astype("f4")
    w, x = f.parameter("W", shape=[N, 4], value=start), f.var("x", shape=[4, 4])
    build(f, w, x)
    net = compiled(flow)
    cell = net.cell("f")
    assert [step.kernel for step in cell.compiled.steps][-1] == "AssignAddScatter"
    assert bool(cell.compiled.in_place) is expected
    assert any(field.type.nbytes >= start.nbytes for field in cell.compiled.layout.fields.values()) is not expected
    for held, wanted in _two_runs(net, w, x, given, meaning):
        np.testing.assert_allclose(held, wanted, rtol=1e-5, atol=1e-5)


def test_a_scatter_index_out_of_range_is_an_error() -> None:
    flow = myelin.Flow()
    f = flow.define("f")
    w, rows = f.parameter("W", shape=[N, 4]), f.var("rows", "int32", [1, 1])
    f.assign_add_scatter(w, rows, np.ones((1, 4), "f4"))
    net = compiled(flow)
    data = net.cell("f").instance()
    data[rows] = N
    with pytest.raises(ExecutionError, match=f"index {N} is outside of dimension 0 of {N}"):
        data.compute()
    assert not np.asarray(net[w]).any()


def test_the_gradient_of_an_embedding_table_is_scatter_added() -> None:
    """The gradients of both lookups accumulate in one tensor, the only one of the table's size."""
    flow = myelin.Flow()
    f = flow.define("f")
    start = RNG.standard_normal((1000, 3)).astype("f4")
    table = f.parameter("table", shape=[1000, 3], value=start)
    one, bag = f.var("one", "int32", [4, 1]), f.var("bag", "int32", [3, 1])
    f.add(f.sum(f.square(f.gather(table, one))), f.sum(f.square(f.gather_sum(table, bag))), name="loss")
    f.func.backprop = True  # type: ignore[union-attr]
    net = compiled(flow)
    data, back = net.cell("f").instance(), net.cell("gradients/f").instance()
    ones, bags = np.array([3, 5, 3, 9], "i4"), np.array([3, 7, 8], "i4")
    data[one], data[bag] = ones[:, None], bags[:, None]
    data.compute()
    back["gradients/f/primal"], back["gradients/f/d_loss:0"] = data, 1.0
    back.compute()
    expected = np.zeros((1000, 3))
    np.add.at(expected, ones, 2 * start[ones])
    np.add.at(expected, bags, 2 * start[bags].sum(0))
    np.testing.assert_allclose(np.asarray(back["gradients/f/d_table"]), expected, rtol=1e-5)
    fields = net.cell("gradients/f").compiled.layout.fields
    assert [name for name, field in fields.items() if field.type.nbytes >= start.nbytes] == ["gradients/f/d_table"]
