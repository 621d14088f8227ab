"""Programs for new lengths are made by recipes, and are those that compiling for these lengths alone would make."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import onert
from onert.compiler.compiler import Compilation
from onert.compiler.recipes.recipe import MOST, MOST_IN_VAIN, Recipes
from onert.exec.frames import stretched
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert.ir.symbolic.trace import Trace, decided, hint, largest, maximum, minimum, settled
from onert_llvm.runtime import loaded_code

LENGTHS = (2, 7, 1, 5, 0, 12, 40, 9, 33)
RANDOM = np.random.default_rng(5)


def _weights(*shape: int) -> Any:
    return RANDOM.normal(0, 0.3, shape).astype(np.float32)


def _pooled() -> Subgraphs:
    """Windows that reach out of a picture, and margins."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    y = b.add(Conv2D(Padding.SAME, 1, 1, 1, 1), x, b.constant(_weights(20, 3, 3, 3)), b.constant(_weights(20)))
    mean = b.add(Pool2D(Pooling.AVERAGE, 3, 3, Padding.SAME, 2, 2), y)
    return b.model([b.add(Pad(), mean, b.constant([[0, 0], [1, 0], [2, 1], [0, 0]], dtype=DType.INT32))])


def _broadcast() -> Subgraphs:
    """One length against another, either of which may be 1."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (2, 4)), name) for name in "xy")
    both = b.add(Binary(BinaryKind.ADD), x, y)
    return b.model([b.add(FullyConnected(), both, b.constant(_weights(3, 4)))])


def _attention() -> Subgraphs:
    """Rows that look at one another."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 8)), "x")
    scores = b.add(Softmax(1.0), b.add(BatchMatMul(adjoint_y=True), x, x))
    seen = b.add(BatchMatMul(), scores, x)
    turned = b.add(Transpose(), b.add(Concat(2), seen, x), b.constant([0, 2, 1], dtype=DType.INT32))
    return b.model([turned])


def _enlarged(height: int, width: int, coordinates: Coordinates) -> Callable[[], Subgraphs]:
    """Pictures that many times higher and wider, each element that of the nearest pixel."""

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
        scales = (float(height), float(width))
        op = Interpolate(Interpolation.NEAREST, (1, 2), coordinates, Rounding.FLOOR, scales)
        return b.model([b.add(op, x)])

    return made


def _recurrent() -> Subgraphs:
    """A layer whose state begins with zeros, as many as there are rows."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    rows = b.add(
        Slice(), b.add(ShapeOf(DType.INT32), x), b.constant([0], dtype=DType.INT32), b.constant([1], dtype=DType.INT32)
    )
    width = b.constant([3], dtype=DType.INT32)
    state = b.add(Fill(), b.add(Concat(0), rows, width), b.constant(np.float32(0.5)))
    own = b.add(FullyConnected(), x, b.constant(_weights(3, 4)))
    fed = b.add(FullyConnected(), state, b.constant(_weights(3, 3)))
    return b.model([b.add(Binary(BinaryKind.ADD), own, fed)])


def _products() -> Subgraphs:
    """Products of matrices, one for each of a batch."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, shape), n) for n, shape in (("x", (2, 5, 8)), ("y", (2, 8, 7))))
    return b.model([b.add(BatchMatMul(), x, y)])


MODELS: list[tuple[str, Callable[[], Subgraphs], Callable[[int], list[tuple[int, ...]]]]] = [
    ("pooled", _pooled, lambda n: [(1, 6, n, 3)]),
    ("broadcast", _broadcast, lambda n: [(n, 4), (1 if n % 3 == 0 else n, 4)]),
    ("attention", _attention, lambda n: [(1, n, 8)]),
    ("enlarged", _enlarged(2, 3, Coordinates.ASYMMETRIC), lambda n: [(1, 6, n, 3)]),
    ("enlarged centres", _enlarged(2, 2, Coordinates.HALF_PIXEL), lambda n: [(1, 6, n, 3)]),
    ("recurrent", _recurrent, lambda n: [(n, 4)]),
    ("products", _products, lambda n: [(n, 5, 8), (1 if n % 3 == 0 else n, 8, 7)]),
]


@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])
def test_a_new_length_has_the_bits_of_a_program_compiled_for_it_alone(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]]
) -> None:
    package = Package((model(),), "made")
    program, evaluated = onert.compile(package), onert.compile(package, backends=("reference",))
    for n in LENGTHS:
        given = {name: _weights(*shape) for name, shape in zip("xy", shapes(n), strict=False)}
        alone = onert.compile(package, input_shapes={name: array.shape for name, array in given.items()})
        expected = onert.Execution(alone).run(given)
        wanted = dict(enumerate(shapes(n)))
        execution = onert.Execution(program.specialize(wanted))
        slow = onert.Execution(evaluated.specialize(wanted)).run(given)
        found = execution.run(given)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
            np.testing.assert_allclose(found[name], slow[name], rtol=1e-4, atol=1e-5)


def _opened(model: Subgraphs) -> Package:
    """The model with all dimensions of its inputs left open, so that arrays bring their shapes."""
    (graph,) = model.subgraphs
    operands = tuple(
        evolve(o, signature_shape=(None,) * len(o.type.shape)) if at in graph.inputs else o
        for at, o in enumerate(graph.operands)
    )
    return Package((Subgraphs((evolve(graph, operands=operands),)),), "made")


def _given(shapes: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    return {name: _weights(*shape) for name, shape in zip("xy", shapes, strict=False)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])
def test_one_execution_runs_for_any_length_with_the_bits_of_a_fresh_program(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]], threads: int
) -> None:
    package = _opened(model())
    execution = onert.Execution(onert.compile(package, num_threads=threads))
    for n in (*LENGTHS, 3, 11, 8, 30, 2, 6, 31):
        given = _given(shapes(n))
        sizes = {name: array.shape for name, array in given.items()}
        expected = onert.Execution(onert.compile(package, input_shapes=sizes, num_threads=threads)).run(given)
        found = execution.run(given)
        again = execution.run(given)
        infos = execution.program.outputs
        for info in infos:
            assert info.shape == found[info.name].shape
            np.testing.assert_array_equal(found[info.name], expected[info.name])
            np.testing.assert_array_equal(again[info.name], expected[info.name])


def _stretched() -> tuple[onert.Execution, Callable[[int], Any], Callable[[Any], Any]]:
    """An execution that is for many lengths, inputs of a length, and their results by a program of their own."""
    package = _opened(_pooled())
    execution = onert.Execution(onert.compile(package))
    for n in (5, 6, 7, 8):
        execution.run([_weights(1, 6, n, 3)])
    assert execution.program.stretch is not None

    def expected(x: Any) -> Any:
        (found,) = onert.Execution(onert.compile(package, input_shapes={0: x.shape})).run([x]).values()
        return found

    return execution, lambda n: _weights(1, 6, n, 3), expected


def test_arrays_are_used_in_place_at_any_length() -> None:
    execution, made, expected = _stretched()
    (name,) = (info.name for info in execution.program.outputs)
    for n in (9, 10, 10, 7):
        x = made(n)
        execution.set_input(0, x)
        out = np.zeros(execution.program.outputs[0].shape, np.float32)
        execution.set_output(0, out)
        execution.execute()
        np.testing.assert_array_equal(out, expected(x))
        x[:] = 2 * x
        execution.execute()
        np.testing.assert_array_equal(out, expected(x))
        other = made(n + 1)
        kept = out.copy()
        np.testing.assert_array_equal(execution.run([other])[name], expected(other))
        np.testing.assert_array_equal(out, kept)
        scattered = np.repeat(made(n), 2, axis=2)[:, :, ::2]
        execution.set_input(0, scattered)
        execution.execute()
        np.testing.assert_array_equal(execution.get_output(0), expected(scattered))


def test_without_room_for_longer_lengths_there_is_room_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, made, expected = _stretched()
    x = made(400)

    def refused(*_: Any) -> Any:
        raise onert.ir.ExecutionError("no room")

    monkeypatch.setattr(stretched.StretchedFrame, "__init__", refused)
    (found,) = execution.run([x]).values()
    np.testing.assert_array_equal(found, expected(x))


def test_a_change_of_length_that_is_interrupted_leaves_the_length_before(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, made, expected = _stretched()
    x = made(9)
    execution.run([x])
    view = stretched._view

    def interrupted(*given: Any) -> Any:
        monkeypatch.setattr(stretched, "_view", view)
        raise KeyboardInterrupt

    monkeypatch.setattr(stretched, "_view", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execution.run([made(11)])
    execution.execute()
    np.testing.assert_array_equal(execution.get_output(0), expected(x))
    y = made(12)
    (found,) = execution.run([y]).values()
    np.testing.assert_array_equal(found, expected(y))


@pytest.mark.parametrize("shape", [(1, 6, 9, 4), (2, 5, 9, 3), (6, 9, 3)])
def test_what_a_model_refuses_is_refused_at_any_length(shape: tuple[int, ...]) -> None:
    execution, made, expected = _stretched()
    if shape[0] == 2:
        (found,) = execution.run([x := _weights(*shape)]).values()
        np.testing.assert_array_equal(found, expected(x))
    else:
        with pytest.raises((onert.ir.CompileError, onert.ir.ExecutionError)):
            execution.run([_weights(*shape)])
    x = made(10)
    (found,) = execution.run([x]).values()
    np.testing.assert_array_equal(found, expected(x))


def test_a_thousand_lengths_make_no_code_and_hold_no_memory() -> None:
    execution, made, _ = _stretched()
    for n in (200, 800):
        execution.run([made(n)])
    order = np.random.default_rng(3).permutation(np.arange(60, 310)).tolist()

    def held() -> int:
        for n in order:
            execution.run([np.ones((1, 6, n, 3), np.float32)])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first, code = held(), len(loaded_code._loaded)
        assert max(held(), held(), held()) < first + 50_000
    finally:
        tracemalloc.stop()
    assert len(loaded_code._loaded) == code


def _told() -> Subgraphs:
    """What tells how long it is: a constant once the length is known."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    return b.model([b.add(ShapeOf(), x), b.add(Binary(BinaryKind.ADD), x, x)])


@pytest.mark.parametrize("model", [_pooled, _told])
def test_few_lengths_are_compiled_of_many(model: Callable[[], Subgraphs], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    before = Compilation.compiled

    def counted(self: Compilation, *given: Any, **more: Any) -> Any:
        compiled.append(given)
        return before(self, *given, **more)

    monkeypatch.setattr(Compilation, "compiled", counted)
    execution = onert.Execution(onert.compile(Package((model(),), "made")))
    for n in range(8, 72):
        execution.set_input_shape(0, (1, 6, n, 3))
        assert execution.run([np.ones((1, 6, n, 3), np.float32)])
    assert len(compiled) <= 8


def test_recipes_go_on_to_be_made_while_frames_are_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    before = Compilation.compiled

    def counted(self: Compilation, *given: Any, **more: Any) -> Any:
        made.append(more)
        return before(self, *given, **more)

    execution = onert.Execution(onert.compile(_opened(_pooled())))
    for n in (5, 6):
        execution.run([_weights(1, 6, n, 3)])
    monkeypatch.setattr(Compilation, "compiled", counted)
    for length in (8, 40, 200, 1000, 5000, 25000):
        for n in (length, length + 2):
            execution.run([_weights(1, 6, n, 3)])
    assert made == [{"symbolic": True}] * 6


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
def test_what_a_length_is_used_for_decides_whether_another_may_take_its_place(
    use: Callable[[Any], object], same: bool
) -> None:
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
def test_a_number_for_another_length_is_what_is_computed_of_it(use: Callable[[Any], Any]) -> None:
    trace = Trace([6], [24])
    found = use(trace.lengths[0])
    for length in (1, 5, 6, 7, 9, 24):
        numbers = trace.at([length])
        assert numbers is not None
        assert repr(numbers[found.index]) == repr(use(length))


@pytest.mark.parametrize(
    ("use", "length"),
    [(bool, 0), (lambda n: largest(100 - n), 5), (largest, 25), (lambda n: settled(_held(n), int), 7)],
    ids=["a truth", "more room than was made", "longer than planned", "elements"],
)
def test_what_another_length_would_change_keeps_it_out(use: Callable[[Any], object], length: int) -> None:
    trace = Trace([6], [24])
    use(trace.lengths[0])
    assert trace.at([6]) is not None
    assert trace.at([length]) is None


def _held(n: Any) -> Any:
    """An array of one element."""
    array = np.empty(1, object)
    array[0] = n
    return array


class Made:
    """What recipes have a program compiled by: any value takes its place."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.recipes = Recipes()
        self.compiled = 0
        self._value = value

    def __call__(self, length: int) -> Any:
        """The value for a length, None where there is no recipe for it."""
        return self.recipes.program((length,), self._compiled)

    def _compiled(self, lengths: tuple[int, ...]) -> Any:
        self.compiled += 1
        return self._value(lengths[0])


@pytest.mark.parametrize(("first", "other"), [(8, 33), (8, 1), (0, 1), (0, 3)])
def test_a_recipe_is_for_lengths_of_its_order(first: int, other: int) -> None:
    made = Made(lambda n: ("rows", 3 * n))
    for length in (first, other):
        assert made(length) == ("rows", 3 * length)
    assert made.compiled == 2


UNFOUND: dict[str, Callable[[Any], Any]] = {
    "a key": lambda n: {n: 1},
    "a set": lambda n: frozenset({n}),
    "an array": _held,
    "a value of a class that nobody knows": lambda n: Fraction(1, 2),
    "a length alone": lambda n: (0,) * n,
}


@pytest.mark.parametrize("value", UNFOUND.values(), ids=UNFOUND)
def test_where_lengths_are_not_found_there_is_no_recipe_and_soon_none_is_tried(value: Callable[[Any], Any]) -> None:
    made = Made(value)
    assert [made(length) for length in range(5, 15)] == [None] * 10
    assert made.compiled == MOST_IN_VAIN


def test_the_recipes_that_were_used_last_are_kept() -> None:
    made = Made(lambda n: (n,))
    lengths = [10**power for power in range(MOST + 6)]
    for length in lengths:
        for each in (length, length, 1):  # one that is of use, and the first of all
            assert made(each) == (each,)
    assert made.compiled == len(lengths)
    assert made(1) == (1,)
    assert made.compiled == len(lengths)
    assert made(10) == (10,)
    assert made.compiled == len(lengths) + 1


def test_each_part_of_a_value_is_made_of_its_own_number() -> None:
    made = Made(lambda n: {"a": (n, 2 * n, "x"), "b": [n + 1, (n - 1, None)]})
    for length in (8, 9):
        assert made(length) == {"a": (length, 2 * length, "x"), "b": [length + 1, (length - 1, None)]}
    assert made.compiled == 1


def test_a_number_that_is_relied_on_is_a_plain_one() -> None:
    made = Made(lambda n: (n, ((0,) * (n // 8), n // 8)))
    found = made(8)
    assert found == (8, ((0,), 1))
    assert type(found[1][1]) is int
    assert made(9) == (9, ((0,), 1))
    assert made.compiled == 1
