"""Sizes that a model computes in floats and rounds are known for all lengths, exactly as floats give them."""

from __future__ import annotations

import numpy as np
import pytest
from compilations import compilations

import onert
from onert.compiler.rewrite.shape_arithmetic import rounded
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.symbolic.trace import Trace


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64], ids=lambda dtype: dtype.text)
@pytest.mark.parametrize("kind", [BinaryKind.MUL, BinaryKind.DIV], ids=lambda kind: kind.name)
@pytest.mark.parametrize("by", [0.5, 1.5, 3.0, 7.0, 32.0, 0.375, 1.3, 0.7, 0.1])
def test_rounded_sizes_match_the_floating_point_computation(by: float, kind: BinaryKind, dtype: DType) -> None:
    operations = [Unary(UnaryKind.FLOOR), Unary(UnaryKind.CEIL), Unary(UnaryKind.ROUND), Unary(UnaryKind.TRUNC)]
    number = np.array(by, dtype.numpy)
    checked = 0
    for op in (*operations, Cast(DType.INT64)):
        output = TensorType(DType.INT64 if isinstance(op, Cast) else dtype, (1,))
        trace = Trace([6], [500])
        found = rounded(op, [(Binary(kind), number)], np.array(trace.lengths, object), dtype, output)
        assert found is not None
        for length in range(500):
            between = np.array([length], dtype.numpy) * number if kind is BinaryKind.MUL else length / number
            expected = {"FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint}.get(
                op.kind.name if isinstance(op, Unary) else "", np.trunc
            )
            numbers = trace.at([length])
            if numbers is not None:
                checked += 1
                assert numbers[found[0].index] == int(expected(np.asarray(between, dtype.numpy)).item())
    assert checked > 50
    assert by not in (1.3, 0.7, 0.1) or checked == 5 * 500
    wide, narrow = np.array([1 << 50], object), TensorType(dtype, (1,))
    assert dtype is DType.FLOAT64 or rounded(operations[0], [(Binary(kind), number)], wide, dtype, narrow) is None


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64], ids=lambda dtype: dtype.text)
@pytest.mark.parametrize(
    "steps",
    [
        [(BinaryKind.MUL, 0.5), (BinaryKind.ADD, 0.5)],
        [(BinaryKind.ADD, 0.1), (BinaryKind.DIV, 3)],
        [(BinaryKind.MUL, 1.3), (BinaryKind.MUL, 0.7), (BinaryKind.MINIMUM, 100)],
        [(BinaryKind.DIV, 7), (BinaryKind.SUB, 0.25), (BinaryKind.MAXIMUM, 1)],
    ],
    ids=lambda steps: ", ".join(f"{kind.name} {number}" for kind, number in steps),
)
def test_sizes_rounded_after_several_steps_match_the_floating_point_computation(
    steps: list[tuple[BinaryKind, float]], dtype: DType
) -> None:
    functions = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}
    functions |= {"MAXIMUM": np.maximum, "MINIMUM": np.minimum}
    floats = np.arange(500).astype(dtype.numpy)
    for kind, number in steps:
        floats = functions[kind.name](floats, np.array(number, dtype.numpy))
    given = [(Binary(kind), np.array(number, dtype.numpy)) for kind, number in steps]
    for op, function in ((Unary(UnaryKind.CEIL), np.ceil), (Cast(DType.INT64), np.trunc)):
        trace = Trace([6], [499])
        output = TensorType(DType.INT64 if isinstance(op, Cast) else dtype, (1,))
        found = rounded(op, given, np.array(trace.lengths, object), dtype, output)
        assert found is not None
        numbers = [trace.at([length]) for length in range(500)]
        assert [n and n[found[0].index] for n in numbers] == function(floats).tolist()


@pytest.mark.parametrize(
    ("steps", "dtype"),
    [
        ([(BinaryKind.SUB, 0.5)], DType.FLOAT32),  # -0
        ([(BinaryKind.MUL, 3e9), (BinaryKind.ADD, 0.5)], DType.INT32),  # beyond int32
        ([(BinaryKind.DIV, 0.0)], DType.INT64),  # not a number
        ([(BinaryKind.SUB, 2.5)], DType.UINT8),  # negative
    ],
    ids=lambda value: value.name if isinstance(value, DType) else "",
)
def test_floats_that_round_to_no_integer_of_the_type_are_left_to_the_run(
    steps: list[tuple[BinaryKind, float]], dtype: DType
) -> None:
    given = [(Binary(kind), np.array(number, np.float32)) for kind, number in steps]
    op = Cast(dtype) if dtype.is_integer else Unary(UnaryKind.CEIL)
    lengths = np.array(Trace([6], [499]).lengths, object)
    assert rounded(op, given, lengths, DType.FLOAT32, TensorType(dtype, (1,))) is None


def _shrunk(dtype: DType, kind: UnaryKind) -> Package:
    """Detectors begin like this: an image whose sides become at most about 8 and 13 pixels long."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, None, None, 2)), "x")
    one, two = (b.constant([n], dtype=DType.INT32) for n in (1, 2))
    sides = b.add(Slice(), b.add(ShapeOf(DType.INT64), x), one, two)
    factors = []
    for reduction, length in ((Reduction.MIN, 8.3), (Reduction.MAX, 13.7)):
        side = b.add(Cast(dtype), b.add(Reduce(reduction, keep_dims=True), sides, b.constant([0], dtype=DType.INT32)))
        inverse = b.add(Binary(BinaryKind.DIV), b.constant(np.ones(1, dtype.numpy)), side)
        factors.append(b.add(Binary(BinaryKind.MUL), inverse, b.constant(np.array([length], dtype.numpy))))
    both = b.add(Concat(0), *factors)
    factor = b.add(Reduce(Reduction.MIN, keep_dims=True), both, b.constant([0], dtype=DType.INT32))
    rounded = b.add(Unary(kind), b.add(Binary(BinaryKind.MUL), b.add(Cast(dtype), sides), factor))
    small = b.add(Interpolate(Interpolation.LINEAR, (1, 2)), x, b.add(Cast(DType.INT64), rounded))
    return Package((b.model([b.add(Unary(UnaryKind.TANH), small)]),), "shrunk")


def _shrunk_sides(dtype: DType, kind: UnaryKind, sides: tuple[int, int]) -> tuple[int, ...]:
    number = dtype.numpy.type
    factors = [number(1) / number(side) * number(to) for side, to in ((min(sides), 8.3), (max(sides), 13.7))]
    return tuple(int(kind.value.numpy(number(side) * min(factors))) for side in sides)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64], ids=lambda dtype: dtype.text)
@pytest.mark.parametrize("kind", [UnaryKind.FLOOR, UnaryKind.CEIL, UnaryKind.ROUND], ids=lambda kind: kind.name)
def test_one_program_serves_all_sizes_that_floats_of_two_lengths_give(
    dtype: DType, kind: UnaryKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _shrunk(dtype, kind)
    execution = onert.Execution(onert.compile(package, num_threads=1))
    compiled = compilations(monkeypatch)
    seen = set()
    for sides in ((20, 30), (21, 33), *((h, w) for h in range(9, 40, 3) for w in range(9, 60, 7)), (20, 30)):
        x = np.random.default_rng(0).random((1, *sides, 2), np.float32)
        execution.set_input_shape(0, x.shape)
        (found,) = execution.run([x]).values()
        seen.add(found.shape)
        assert found.shape == (1, *_shrunk_sides(dtype, kind, sides), 2), sides
        if sides in ((21, 33), (39, 9), (36, 37)):
            alone = onert.Execution(onert.compile(package, num_threads=1, input_shapes={0: x.shape})).run([x])
            np.testing.assert_array_equal(found, *alone.values())
    assert len(seen) > 20
    assert len(compiled) <= 2 + 3
