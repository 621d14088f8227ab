"""What is computed from constants is computed once for all programs that use it, and is freed with the last of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.process import derived_arrays
from onert.ir.process.derived_arrays import derived


class _Counted:
    """Doubles an array, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, source: Array) -> Array:
        self.calls += 1
        doubled: Array = 2 * source
        return doubled


@pytest.fixture
def twice() -> _Counted:
    return _Counted()


def _entries(source: Array) -> int:
    """How many arrays computed from a source are in use; other tests' arrays may be freed at any time."""
    return sum(found.source() is source for found in tuple(derived_arrays._known.values()))


def test_an_array_in_use_is_found_again(twice: _Counted) -> None:
    source = np.arange(6.0)
    first, again = (derived(source, "twice", lambda: twice(source)) for _ in range(2))
    assert np.shares_memory(first, again)
    np.testing.assert_array_equal(again, 2 * source)
    assert twice.calls == 1


def test_views_of_a_larger_array_are_found_again(twice: _Counted) -> None:
    source, room = np.arange(6.0).reshape(2, 3), np.zeros(64)
    room[5:11].reshape(2, 3)[...] = source

    def make() -> Array:
        twice(source)
        return room[5:11].reshape(2, 3)

    first, again = (derived(source, "placed", make) for _ in range(2))
    np.testing.assert_array_equal(again, source)
    assert np.shares_memory(first, again)
    assert twice.calls == 1


@pytest.mark.parametrize(
    "other", [lambda a: a[::-1], lambda a: a.reshape(3, 2), lambda a: a[:3], lambda a: a.view(np.int64)]
)
def test_other_views_of_a_source_are_other_sources(other: object, twice: _Counted) -> None:
    assert callable(other)
    source = np.arange(6.0)
    view = other(source)
    kept = [derived(each, "twice", lambda each=each: twice(each)) for each in (source, view)]
    np.testing.assert_array_equal(kept[1], 2 * view)
    assert twice.calls == 2


def test_other_ways_of_computing_are_other_arrays(twice: _Counted) -> None:
    source = np.arange(6.0)
    kept = [derived(source, how, lambda: twice(source)) for how in ("a", "b")]
    assert twice.calls == 2
    assert not np.shares_memory(*kept)


def test_nothing_is_kept_of_an_array_that_nothing_uses(twice: _Counted) -> None:
    source = np.arange(6.0)
    made = derived(source, "twice", lambda: twice(source))
    assert _entries(source) == 1
    del made
    assert _entries(source) == 0
    derived(source, "twice", lambda: twice(source))
    assert twice.calls == 2


def test_a_view_of_the_source_is_no_array_of_its_own() -> None:
    source = np.arange(6.0)
    view = derived(source, "reversed", lambda: source[::-1])
    np.testing.assert_array_equal(view, source[::-1])
    assert _entries(source) == 0


def test_an_array_of_columns_is_computed_each_time(twice: _Counted) -> None:
    source = np.arange(6.0).reshape(2, 3)
    kept = [derived(source, "columns", lambda: np.asfortranarray(twice(source))) for _ in range(2)]
    np.testing.assert_array_equal(kept[1], 2 * source)
    assert twice.calls == 2


def test_another_source_at_the_same_address_is_another_source(twice: _Counted) -> None:
    room = bytearray(48)
    kept = []
    for value in (1.0, 2.0):
        source = np.frombuffer(room, np.float64)
        source[...] = value
        kept.append(derived(source, "twice", lambda source=source: twice(source)))
        del source
    np.testing.assert_array_equal(kept, [[2.0] * 6, [4.0] * 6])


def test_steps_are_found_again_although_the_array_between_is_gone(twice: _Counted) -> None:
    source = np.arange(6.0)

    def in_two_steps() -> Array:
        between = derived(source, "first", lambda: twice(source))
        return derived(between, "second", lambda: twice(between))

    first = in_two_steps()
    again = in_two_steps()
    assert np.shares_memory(first, again)
    assert twice.calls == 3  # the array between is computed again


def _scaled(b: Builder, x: int, weights: int) -> int:
    """A layer with factors before it, which are folded into its weights."""
    factors = b.constant(np.linspace(0.5, 1.5, 160, dtype=np.float32))
    return b.add(FullyConnected(), b.add(Binary(BinaryKind.MUL), x, factors), weights)


def _turned(b: Builder, x: int, weights: int) -> int:
    """A product with transposed weights."""
    turned = b.add(Transpose(), weights, b.constant(np.array([1, 0], np.int32)))
    return b.add(BatchMatMul(), x, turned)


@pytest.mark.parametrize("views", [lambda a: (a[:3], a[3:]), lambda a: (a, a.view(np.int64))])
def test_views_of_a_derived_array_are_different_sources(views: Callable[[Array], list[Array]], twice: _Counted) -> None:
    source = np.arange(6.0)
    between = derived(source, "first", lambda: twice(source))
    for view in views(between):
        np.testing.assert_array_equal(derived(view, "second", lambda view=view: twice(view)), 2 * view)
    kept = [derived(view, "second", lambda view=view: twice(view)) for view in views(between)]
    for made, view in zip(kept, views(between), strict=True):
        np.testing.assert_array_equal(made, 2 * view)


@pytest.mark.parametrize("layer", [_scaled, _turned])
def test_programs_for_different_lengths_share_weights(layer: Callable[[Builder, int, int], int]) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 160)), "x")
    weights = np.random.default_rng(0).normal(size=(200, 160)).astype(np.float32)
    program = onert.compile(onert.Package((b.model([layer(b, x, b.constant(weights))]),)))
    programs = [program.specialize({0: (rows, 160)}) for rows in (1, 7, 30)]
    found = [
        operand.data.array
        for each in programs
        for operand in each.main.subgraph.operands
        if operand.data is not None and operand.type.shape in (weights.shape, weights.shape[::-1])
    ]
    assert len(found) == len(programs)
    assert all(np.shares_memory(found[0], other) for other in found)
    assert not np.shares_memory(found[0], weights)


def test_factors_folded_into_the_same_weights_stay_apart() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3, 32)), "x")
    random = np.random.default_rng(0)
    weights, first, second, rows = (random.normal(size=s).astype(np.float32) for s in ((48, 32), (32,), (32,), (3, 32)))
    shared = b.constant(weights)
    ends = [b.add(FullyConnected(), b.add(Binary(BinaryKind.MUL), x, b.constant(f)), shared) for f in (first, second)]
    found = onert.Execution(onert.compile(onert.Package((b.model(ends),)))).run([rows])
    for result, factors in zip(found.values(), (first, second), strict=True):
        np.testing.assert_allclose(result, (rows * factors) @ weights.T, rtol=1e-5, atol=1e-5)
