"""Recipes generate programs for new lengths that equal programs compiled for these lengths alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from compilations import compilations
from length_counts import branched
from length_models import LENGTHS, MODELS, found, interpolated, opened, pooled, weights
from length_positions import mixed

import onert
from onert.compiler.legalize.vision_audio.interpolation import SameElements
from onert.compiler.recipes.recipe import MOST, MOST_UNUSED, Recipes
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor
from onert.ir.shape import broadcast
from onert.ir.symbolic.instructions import instructions
from onert.ir.symbolic.trace import Trace, decided, hint, largest, maximum, minimum

FOUND = ("found", found, lambda n: [(1, 6, n, 3)])


@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in (*MODELS, FOUND)])
def test_a_new_length_has_the_bits_of_a_program_compiled_for_it_alone(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]]
) -> None:
    package = Package((model(),), "made")
    program, evaluated = onert.compile(package), onert.compile(package, backends=("reference",))
    for n in LENGTHS:
        given = {name: weights(*shape) for name, shape in zip("xy", shapes(n), strict=False)}
        alone = onert.compile(package, input_shapes={name: array.shape for name, array in given.items()})
        expected = onert.Execution(alone).run(given)
        wanted = dict(enumerate(shapes(n)))
        execution = onert.Execution(program.specialize(wanted))
        slow = onert.Execution(evaluated.specialize(wanted)).run(given)
        found = execution.run(given)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
            size = max(1.0, np.abs(slow[name]).max(initial=0))  # differences of sums are as large as their terms allow
            np.testing.assert_allclose(found[name], slow[name], rtol=1e-4, atol=1e-5 * size)


def _with_shape_output() -> Subgraphs:
    """A model that outputs its input's shape, which is a constant once the length is known."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    return b.model([b.add(ShapeOf(), x), b.add(Binary(BinaryKind.ADD), x, x)])


def _conditional() -> Subgraphs:
    """Convolutions in one branch, whose kernels differ between widths."""
    b, then, otherwise = Builder(), Builder("then"), Builder("otherwise")
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    total = b.add(Reduce(Reduction.SUM), x, b.constant(np.int32([0, 1, 2, 3])))
    positive = b.add(Comparison(ComparisonKind.GREATER), total, b.constant(np.float32(0)))
    type_ = TensorType(DType.FLOAT32, (1, 6, None, 3))
    rows = then.input(type_)
    for stride, count in ((2, 16), (2, 32), (1, 3)):
        channels = then.type(rows).shape[3] or 0
        rows = then.add(Conv2D(Padding.SAME, 1, stride), rows, then.constant(weights(count, 1, 3, channels)))
    rows = then.add(
        ResizeNearestNeighbor(),
        rows,
        then.add(Slice(), then.add(ShapeOf(DType.INT32), 0), *(then.constant(np.int32([each])) for each in (1, 2))),
    )
    negative = otherwise.add(Unary(UnaryKind.NEG), otherwise.input(type_))
    graphs = b.subgraph([b.add(If(1, 2, (type_,)), positive, x)]), then.subgraph([rows]), otherwise.subgraph([negative])
    return Subgraphs(graphs)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        *((model, (1, 6, None, 3)) for model in (pooled, found, _with_shape_output, _conditional)),
        *((interpolated(how, 1.7, (1, 2)), (1, 6, None, 3)) for how in Interpolation),
        (branched, (None, 3)),
    ],
)
def test_only_few_of_many_lengths_are_compiled(
    model: Callable[[], Subgraphs], shape: tuple[int | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compilations(monkeypatch)
    execution = onert.Execution(onert.compile(Package((model(),), "made")))
    for n in range(8, 72):
        given = tuple(n if size is None else size for size in shape)
        execution.set_input_shape(0, given)
        assert execution.run([np.ones(given, np.float32)])
    assert len(compiled) <= 8


@pytest.mark.parametrize(("layers", "is_quick"), [(0, True), (2, False)])
def test_constants_that_take_long_to_evaluate_are_compiled_for_each_length(layers: int, is_quick: bool) -> None:
    package = opened(mixed(layers)())
    execution = onert.Execution(onert.compile(package))
    for n in (3, 20, 21, 22):
        x = weights(n, 4)
        (found,) = execution.run([x]).values()
        (expected,) = onert.Execution(onert.compile(package, input_shapes={0: x.shape})).run([x]).values()
        np.testing.assert_array_equal(found, expected)
    assert (execution.program.stretch is not None) is is_quick


def test_new_recipes_are_made_for_ever_larger_ranges_as_lengths_keep_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = onert.Execution(onert.compile(opened(pooled())))
    execution.run([weights(1, 6, 5, 3)])
    made = compilations(monkeypatch)
    for length in (8, 40, 300, 1000, 15000, 20000, 200000):  # 4, 8, 16 and 32 times the longest one so far
        for n in (length, length + 2):
            execution.run([weights(1, 6, n, 3)])
    assert made == [{"symbolic": True}] * 4


def test_a_trace_gives_the_numbers_of_other_lengths_while_its_conditions_hold() -> None:
    trace = Trace([6], [24])
    (n,) = trace.lengths
    blocks: Any = -(-n // 4)
    assert (bool(n > 3), bool(blocks == 2)) == (True, True)
    for length, expected in ((5, 2), (8, 2), (3, None), (9, None)):
        numbers = trace.at([length])
        assert (None if numbers is None else numbers[blocks.index]) == expected


@pytest.mark.parametrize(
    ("use", "same"),
    [
        (lambda n: [0] * n, False),
        (lambda n: repr([n]), False),
        (lambda n: bool(n > 100), True),
        (range, False),
        (lambda n: f"{n} rows", True),
        (lambda n: hint(n) > 5, True),
        (lambda n: {n: 1}[n], True),
        (np.zeros, False),
        (lambda n: largest(3 * n) == 72, True),
        (lambda n: largest(3 * n // 4) and largest(n) == 24, True),
        (lambda n: maximum(n, 6) + minimum(n, 6), True),
        (lambda n: decided(_parity, n), False),
        (lambda n: n % 2, True),
    ],
    ids=[
        "repeat",
        "text",
        "compare",
        "range",
        "message",
        "hint",
        "key",
        "shape",
        "most",
        "planned",
        "choice",
        "function",
        "rest",
    ],
)
def test_the_uses_of_a_length_decide_whether_another_may_replace_it(use: Callable[[Any], object], same: bool) -> None:
    trace = Trace([6], [24])
    (n,) = trace.lengths
    use(n)
    assert (trace.at([7]) is not None) is same


def _parity(n: int) -> int:
    return n % 2


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "what is left": lambda n: 10 - n,
    "a share": lambda n: 100 // n,
    "the greater": lambda n: maximum(n, 6),
    "the less": lambda n: minimum(n, 6),
    "an integer": lambda n: (n + 1.0, n + 1)[1],
    "a real": lambda n: (n + 1, n + 1.0)[1],
    "rounded": lambda n: round(n / 3),
    "upwards": lambda n: math.ceil(n / 4),
}


@pytest.mark.parametrize("use", NUMBERS.values(), ids=NUMBERS)
def test_a_number_computed_from_a_length_is_recomputed_for_another(use: Callable[[Any], Any]) -> None:
    trace = Trace([6], [24])
    found = use(trace.lengths[0])
    for length in (1, 5, 6, 7, 9, 24):
        numbers = trace.at([length])
        assert numbers is not None
        assert repr(numbers[found.index]) == repr(use(length))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda n, m: n * 4 // 4, lambda n, m: n),
        (lambda n, m: n * m * 6 // (m * 3), lambda n, m: 2 * n),
        (lambda n, m: (n - 1) * (n + 1), lambda n, m: n * n - 1),
        (lambda n, m: -(-n // 1), lambda n, m: n),
        (lambda n, m: (8 * n + 5) // 4, lambda n, m: 2 * n + 1),
        (lambda n, m: (8 * n - 5) % 4, lambda n, m: 3),
        (lambda n, m: (m + 9) // 4, lambda n, m: (m + 1) // 4 + 2),
        (lambda n, m: maximum(n + m, m + n - 1), lambda n, m: m + n),
        (lambda n, m: math.ceil(n) + round(m), lambda n, m: m + n),
    ],
    ids=["shared", "cancelled", "expanded", "rounded", "quotient", "rest", "moved", "chosen", "whole"],
)
def test_equal_expressions_are_recognised_without_a_condition(
    left: Callable[[Any, Any], Any], right: Callable[[Any, Any], Any]
) -> None:
    trace = Trace([6, 5], [24, 20])
    a, b = (use(*trace.lengths) for use in (left, right))
    before = dict(trace.conditions)
    assert a == b
    assert not a < b
    assert trace.conditions == before
    for lengths in ((1, 1), (7, 3), (24, 20)):
        numbers = trace.at(lengths)
        assert numbers is not None
        assert (a if isinstance(a, int) else numbers[a.index]) == left(*lengths) == right(*lengths)


def test_different_sizes_that_are_all_1_at_a_length_broadcast_to_1() -> None:
    trace = Trace([2], [8])
    (n,) = trace.lengths
    assert broadcast([(n // 2, 3), ((n + 1) // 2, 1)]) == (1, 3)
    assert trace.at([2]) is not None
    assert trace.at([4]) is None


def test_division_by_a_length_excludes_length_zero() -> None:
    trace = Trace([6, 5], [24, 20])
    n, m = trace.lengths
    assert n * m // m == n
    assert trace.at([6, 0]) is None


def test_dividing_a_multiple_of_a_sum_by_the_sum_gives_a_constant() -> None:
    trace = Trace([6, 5], [24, 20])
    n, m = trace.lengths
    assert (12 * n - 12 * m) // (4 * n - 4 * m) == 3
    assert (12 * n - 12 * m) % (4 * n - 4 * m) == 0
    assert trace.at([9, 4]) is not None
    assert trace.at([9, 9]) is None
    with pytest.raises(ZeroDivisionError):
        (2 * n - 2 * m - 2) // (n - m - 1)


@pytest.mark.parametrize(
    ("use", "length"),
    [(bool, 0), (lambda n: largest(100 - n), 5), (largest, 25), (lambda n: _object_array(n).astype(int), 7)],
    ids=["a truth", "more room than was made", "longer than planned", "elements"],
)
def test_a_length_that_would_change_a_recorded_decision_is_excluded(use: Callable[[Any], object], length: int) -> None:
    trace = Trace([6], [24])
    use(trace.lengths[0])
    assert trace.at([6]) is not None
    assert trace.at([length]) is None


def _object_array(n: Any) -> Any:
    """An array of one element."""
    array = np.empty(1, object)
    array[0] = n
    return array


@frozen
class StubProgram:
    """Stands for a program: a value in terms of lengths."""

    value: Any
    stretch: Any = None


class CountingRecipes:
    """Recipes for any value instead of a program; counts compilations."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.recipes = Recipes(((0, 0),))
        self.compiled = 0
        self._value = value

    def __call__(self, length: int) -> Any:
        """The value for a length, None if there is no recipe for it."""
        found: Any = self.recipes.program((length,), (length,), self._compiled, lambda *_: None)
        return None if found is None else found.value

    def _compiled(self, lengths: tuple[int, ...]) -> Any:
        self.compiled += 1
        return StubProgram(self._value(lengths[0]))


@pytest.mark.parametrize(("first", "other", "recipes"), [(8, 32, 1), (8, 33, 2), (8, 1, 1), (0, 1, 2), (0, 3, 2)])
def test_a_recipe_serves_all_lengths_up_to_a_multiple_of_the_longest(first: int, other: int, recipes: int) -> None:
    made = CountingRecipes(lambda n: ("rows", 3 * n))
    for length in (first, other):
        assert made(length) == ("rows", 3 * length)
    assert made.compiled == recipes


UNFOUND: dict[str, Callable[[Any], Any]] = {
    "a key": lambda n: {n: 1},
    "a set": lambda n: frozenset({n}),
    "an array": _object_array,
    "a value of a class that nobody knows": lambda n: Fraction(1, 2),
    "a length alone": lambda n: (0,) * n,
}


@pytest.mark.parametrize("value", UNFOUND.values(), ids=UNFOUND)
def test_without_a_usable_recipe_compilation_is_soon_given_up(value: Callable[[Any], Any]) -> None:
    made = CountingRecipes(value)
    for times, lengths in enumerate((range(5, 11), range(11, 23)), 1):  # tried again once lengths have doubled
        assert {made(length) for length in lengths} == {None}
        assert made.compiled == times * MOST_UNUSED


def test_the_most_recently_used_recipes_are_kept() -> None:
    made = CountingRecipes(lambda n: (n, n.bit_length())[:1])
    lengths = [10**power for power in range(MOST + 6)]
    for length in lengths:
        for each in (length, length, 1):  # a repeated one, and the first one
            assert made(each) == (each,)
    assert made.compiled == len(lengths)
    assert made(1) == (1,)
    assert made.compiled == len(lengths)
    assert made(10) == (10,)
    assert made.compiled == len(lengths) + 1


def test_recipes_that_serve_other_lengths_are_not_given_up() -> None:
    """Each structure needs a recipe of its own, and earlier ones are used between two new ones."""
    made = CountingRecipes(lambda n: (n, (0,) * (n % 10)))
    for structure in range(MOST_UNUSED + 3):
        for length in (100 + structure, 110 + structure, 100):
            assert made(length) == (length, (0,) * (length % 10))
    assert made.compiled == MOST_UNUSED + 3


def test_each_part_of_a_value_is_computed_from_its_own_number() -> None:
    made = CountingRecipes(lambda n: {"a": (n, 2 * n, "x"), "b": [n + 1, (n - 1, None)]})
    for length in (8, 9):
        assert made(length) == {"a": (length, 2 * length, "x"), "b": [length + 1, (length - 1, None)]}
    assert made.compiled == 1


def test_a_number_that_determines_structure_is_a_plain_int() -> None:
    made = CountingRecipes(lambda n: (n, ((0,) * (n // 8), n // 8)))
    found = made(8)
    assert found == (8, ((0,), 1))
    assert type(found[1][1]) is int
    assert made(9) == (9, ((0,), 1))
    assert made.compiled == 1


@pytest.mark.parametrize("times", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("coordinates", Coordinates)
def test_nearest_neighbour_resizing_by_a_factor_is_recognised_for_all_sizes(
    coordinates: Coordinates, rounding: Rounding, centred: bool, times: int
) -> None:
    resized = ResizeNearestNeighbor(half_pixel_centers=centred)
    for scales in (None, (float(times),)):
        op = Interpolate(Interpolation.NEAREST, (1,), coordinates, rounding, scales, starts=(0.0,), ends=(1.0,))
        same = SameElements(op, 0, resized)
        trace = Trace([6], [24])
        (n,) = trace.lengths
        if not same(6, 6 * times):
            continue
        same.hold(n, n * times)
        assert not instructions(trace, []).python_checks
        for length in range(1, 25):
            assert trace.at([length]) is None or same(length, times * length)
    repeated = resized.repeats(6 * times, 6)
    trace = Trace([6], [24])
    (n,) = trace.lengths
    assert resized.repeats(n * times, n) == repeated
    for length in range(1, 25):
        assert trace.at([length]) is None or resized.repeats(times * length, length) == repeated
