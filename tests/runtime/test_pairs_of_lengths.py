"""Models with several lengths serve random combinations of them with few programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from length_models import opened, unrolled, weights

import onert
from onert.compiler.compiler import Compilation
from onert.compiler.recipes.recipe import Recipes
from onert.ir import DType, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.shape import broadcast
from onert.ir.symbolic.cases import Cases
from onert.ir.symbolic.sizes import are_broadcast, are_ones, are_same
from onert.ir.symbolic.trace import Trace

MOST_COMPILED = 2
Shapes = Callable[[int, int], list[tuple[int, ...]]]


def _attention(same: bool) -> Callable[[], Subgraphs]:
    """Queries and keys, each behind a layer: those of one sequence, or of two."""

    def made() -> Subgraphs:
        b = Builder()
        ends = [b.input(TensorType(DType.FLOAT32, (2, 4, 16)), name) for name in ("x" if same else "xy")]
        queries, keys = (b.add(BatchMatMul(), each, b.constant(weights(16, 16))) for each in (ends[0], ends[-1]))
        scores = b.add(BatchMatMul(adjoint_y=True), queries, keys)
        return b.model([b.add(BatchMatMul(), b.add(Softmax(), scores), keys)])

    return made


def _own_products() -> Subgraphs:
    """The products of a sequence's rows with each other."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4, 16)), "x")
    return b.model([b.add(Einsum("btc,bsc->bts"), x, x)])


def _pooled_channels() -> Subgraphs:
    """The maxima of windows of five rows; the images' width and channels are open."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 5, 4, 6)), "x")
    return b.model([b.add(Pool2D(Pooling.MAX, 5, 1), x)])


MODELS: dict[str, tuple[Callable[[], Subgraphs], Shapes]] = {
    "a batch of sequences": (_attention(same=True), lambda s, t: [(s, t, 16)]),
    "one step of recurrent layers": (unrolled, lambda s, _: [(1, s, 4)]),
    "products of rows with each other": (_own_products, lambda s, t: [(s, t, 16)]),
    "windows over open channels": (_pooled_channels, lambda s, t: [(1, 5, s, t)]),
    "queries and keys": (_attention(same=False), lambda s, t: [(2, s, 16), (2, t, 16)]),
}


@pytest.mark.parametrize(("model", "shapes"), MODELS.values(), ids=MODELS)
def test_few_programs_serve_random_pairs_of_lengths_with_the_bits_of_programs_for_them_alone(
    model: Callable[[], Subgraphs], shapes: Shapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, made, before = opened(model()), list[Any](), Compilation.compiled

    def counted(self: Compilation, *given: Any, **more: Any) -> Any:
        made.append(more)
        return before(self, *given, **more)

    execution = onert.Execution(onert.compile(package, num_threads=1))
    pairs = np.random.default_rng(0).integers(1, 60, (40, 2), endpoint=True).tolist()
    with monkeypatch.context() as patched:
        patched.setattr(Compilation, "compiled", counted)
        for pair in pairs:
            execution.run([weights(*shape) for shape in shapes(*pair)])
    assert len(made) <= MOST_COMPILED
    for pair in (*pairs[::10], (1, 50), (50, 1), (1, 1), (15, 16)):
        given = dict(zip("xy", (weights(*shape) for shape in shapes(*pair)), strict=False))
        wanted = {name: array.shape for name, array in given.items()}
        alone = onert.Execution(onert.compile(package, num_threads=1, input_shapes=wanted)).run(given)
        for name, found in execution.run(given).items():
            np.testing.assert_array_equal(found, alone[name], err_msg=str(pair))


def test_a_symbolic_size_is_broadcast_against_1_without_a_condition() -> None:
    trace = Trace([6, 1], [24, 24])
    n, m = trace.lengths
    assert broadcast([(m, 1), (1, n), (n,)]) == (m, n)
    assert not trace.conditions


def test_a_computation_has_a_result_for_each_case_and_a_number_that_says_where_it_applies() -> None:
    trace = Trace([20], [40], equal=(0,))
    (n,) = trace.lengths

    def kind() -> str:
        return "many" if n >= 16 else "several" if n > 1 else "one"

    found = Cases(trace).run(kind, lambda _: True)
    assert [result for result, _ in found] == ["many", "one", "several"]
    for length, expected in ((1, "one"), (2, "several"), (15, "several"), (16, "many"), (40, "many")):
        numbers = trace.at([length])
        assert numbers is not None
        assert [result for result, when in found if numbers[when.index]] == [expected]


def test_no_case_is_computed_for_a_sample_that_a_condition_made_meanwhile_rules_out() -> None:
    trace = Trace([20], [40], equal=(0,))
    (n,) = trace.lengths
    cases = Cases(trace)
    assert n > 3
    found = cases.run(lambda: "many" if n >= 16 else "several" if n > 3 else "few", lambda _: True)
    assert [result for result, _ in found] == ["many", "several"]


def test_a_computation_that_is_the_same_for_all_samples_keeps_its_conditions() -> None:
    trace = Trace([20], [40], equal=(0,))
    (n,) = trace.lengths
    assert Cases(trace).run(lambda: n < 100, lambda _: True) == [(True, None)]
    assert trace.at([99]) is not None
    assert trace.at([100]) is None


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (are_broadcast, (lambda n, m: ((n, 1), (n, 4))), True),
        (are_broadcast, (lambda n, m: ((n, 4), (n, 4))), False),
        (are_broadcast, (lambda n, m: ((1, 4), (n, 4))), True),
        (are_broadcast, (lambda n, m: ((4,), (n, 4))), True),
        (are_ones, (lambda n, m: ((1, 1),)), True),
        (are_ones, (lambda n, m: ((1, n),)), False),
        (are_same, (lambda n, m: (2 * n, n + n)), True),
        (are_same, (lambda n, m: (n, m)), False),
    ],
)
def test_sizes_are_compared_without_a_condition(function: Any, given: Any, expected: bool) -> None:
    trace = Trace([6, 6], [24, 24])
    assert function(*given(*trace.lengths)) == expected
    assert not trace.conditions


@frozen
class _Stub:
    """Stands for a program: its lengths."""

    lengths: tuple[int, ...]
    stretch: Any = None


@pytest.mark.parametrize(
    ("pairs", "counts"),
    [
        ([(1, 20), (1, 40), (1, 41), (1, 328), (1, 329), (1, 5264)], [1, 1, 2, 2, 3, 3]),  # a decoder's steps
        ([(20, 21), (40, 42), (41, 30), (164, 120), (300, 301)], [1, 1, 2, 2, 3]),  # pictures
        ([(20, 21), (41, 43), (164, 170)], [1, 2, 2]),
    ],
)
def test_a_length_that_grows_while_the_other_is_short_has_the_room_of_a_single_one(
    pairs: list[tuple[int, int]], counts: list[int]
) -> None:
    recipes, made = Recipes(((0, 1), (1, 2))), list[tuple[int, ...]]()
    longest = (20, 20)  # that of the first program

    def compiled(lengths: tuple[int, ...]) -> Any:
        made.append(lengths)
        return _Stub(lengths)

    for pair, count in zip(pairs, counts, strict=True):
        longest = (max(longest[0], pair[0]), max(longest[1], pair[1]))
        program: Any = recipes.program(pair, longest, compiled, lambda *_: None)
        assert program.lengths == pair
        assert len(made) == count
