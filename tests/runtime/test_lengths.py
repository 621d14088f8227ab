"""One program serves different lengths in turn: it reuses compiled code, and its memory stops growing."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, ExecutionError, Op, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.codegen import kernel_compiler

RANDOM = np.random.default_rng(0)
STATM = Path("/proc/self/statm")


def _weights(*shape: int) -> Any:
    return RANDOM.normal(0, 0.3, shape).astype(np.float32)


def _input(b: Builder, *shape: int | None) -> int:
    placeholder = tuple(2 if d is None else d for d in shape)
    b.input(TensorType(DType.FLOAT32, placeholder), "x")
    return 0


def _rows() -> Subgraphs:
    """Rows through two dense layers."""
    b = Builder()
    x = _input(b, None, 8)
    y = b.add(FullyConnected(Activation.RELU), x, b.constant(_weights(24, 8)), b.constant(_weights(24)))
    return b.model([b.add(Softmax(1.0), b.add(FullyConnected(), y, b.constant(_weights(5, 24))))])


def _picture() -> Subgraphs:
    """A convolution of an image with channels first, as exporters write it, and a mean."""
    b = Builder()
    x = _input(b, 1, 3, None, 20)
    turned = b.add(Transpose(), x, b.constant([0, 2, 3, 1], dtype=DType.INT32))
    y = b.add(Conv2D(Padding.SAME, 2, 2, 1, 1), turned, b.constant(_weights(8, 3, 3, 3)), b.constant(_weights(8)))
    scaled = b.add(Binary(BinaryKind.MUL), y, b.constant(_weights(8)))
    back = b.add(Transpose(), b.add(Unary(UnaryKind.RELU), scaled), b.constant([0, 3, 1, 2], dtype=DType.INT32))
    return b.model([back, b.add(Reduce(Reduction.MEAN), back, b.constant([2, 3], dtype=DType.INT32))])


def _joined() -> Subgraphs:
    """Rows gathered from a sequence, and concatenated with it."""
    b = Builder()
    x = _input(b, None, 4, 6)
    flat = b.add(Reshape((-1, 6)), x)
    some = b.add(Gather(1, 0), flat, b.constant([5, 0, 3], dtype=DType.INT32))
    two = b.add(Concat(1), flat, some)
    return b.model([b.add(Unary(UnaryKind.TANH), b.add(FullyConnected(), two, b.constant(_weights(7, 9))))])


MODELS: list[tuple[str, Callable[[], Subgraphs], Callable[[int], tuple[int, ...]]]] = [
    ("rows", _rows, lambda n: (n, 8)),
    ("picture", _picture, lambda n: (1, 3, n, 20)),
    ("joined", _joined, lambda n: (n, 4, 6)),
]
EACH = pytest.mark.parametrize(("model", "shape"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])


def _results(execution: Any, x: Any) -> list[Any]:
    execution.set_input_shape(0, x.shape)
    return list(execution.run([x]).values())


@EACH
def test_every_length_has_the_results_of_a_program_compiled_for_it_alone(
    model: Callable[[], Subgraphs], shape: Callable[[int], tuple[int, ...]]
) -> None:
    package = Package((model(),), "made")
    execution = onert.Execution(onert.compile(package))
    for n in (2, 9, 33, 9, 1, 64):
        x = _weights(*shape(n))
        alone = onert.Execution(onert.compile(package, input_shapes={"x": shape(n)}))
        for mine, expected in zip(_results(execution, x), alone.run([x]).values(), strict=True):
            np.testing.assert_array_equal(mine, expected)


def test_a_length_that_is_refused_does_not_affect_the_next() -> None:
    b = Builder()
    y = b.add(Reshape((2, -1)), _input(b, None, 3))
    execution = onert.Execution(onert.compile(Package((b.model([y]),), "made"), input_shapes={"x": (2, 3)}))
    for n in (4, 3, 6, 5, 8):
        x = _weights(n, 3)
        if n % 2:
            with pytest.raises((ExecutionError, onert.CompileError)):
                _results(execution, x)
        else:
            np.testing.assert_array_equal(_results(execution, x)[0], x.reshape(2, -1))


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize(
    ("declared", "op", "expected"),
    [
        pytest.param(((None, 3), (None, 3)), Binary(BinaryKind.ADD), np.add, id="rows of a sum"),
        pytest.param(((None, None), (None, 3)), BatchMatMul(), np.matmul, id="terms of a product"),
    ],
)
def test_inputs_of_unknown_shape_may_be_set_one_after_the_other_for_every_length(
    declared: tuple[tuple[int | None, ...], ...], op: Op, expected: Callable[..., Any], executor: str
) -> None:
    """Until the last is set, the shape of the first contradicts those that the others had before."""
    b = Builder()
    inputs = [b.input(TensorType(DType.FLOAT32, shape), name) for shape, name in zip(declared, "xy", strict=True)]
    execution = onert.Execution(onert.compile(Package((b.model([b.add(op, *inputs)]),), "made"), executor=executor))
    for n in (2, 7, 3, 7, 5, 30, 2):
        arrays = [_weights(*(n if d is None else d for d in shape)) for shape in declared]
        for name, array in zip("xy", arrays, strict=True):
            execution.set_input(name, array)
        execution.execute()
        np.testing.assert_allclose(execution.get_output(0), expected(*arrays), rtol=1e-5, atol=1e-5)


def _megabytes() -> float:
    return int(STATM.read_text().split()[1]) * 4096 / 1e6


@pytest.mark.skipif(not STATM.is_file(), reason="the system does not tell a process's memory")
@pytest.mark.parametrize("count", [120, pytest.param(1000, marks=pytest.mark.long)])
def test_many_lengths_need_no_more_memory_or_code_than_the_first(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generated: list[str] = []
    begun = kernel_compiler._pending_object

    def counted(spec: Any, store: Any) -> Any:
        generated.append(spec.symbol)
        return begun(spec, store)

    monkeypatch.setattr(kernel_compiler, "_pending_object", counted)
    execution = onert.Execution(onert.compile(Package((_rows(),), "made")))
    for n in (*range(1, 61), 240, 1000):  # sizes several times larger may have tiles of their own
        _results(execution, np.ones((n, 8), np.float32))
    gc.collect()
    before, known = _megabytes(), len(generated)
    for n in np.random.default_rng(1).permutation(count) + 1:
        (found,) = _results(execution, np.ones((n, 8), np.float32))
        assert found.shape == (n, 5)
    gc.collect()
    assert len(generated) == known
    assert _megabytes() - before < 8


def test_the_error_for_a_wrong_fixed_size_also_shows_the_dynamic_sizes() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 3, None, None)), "x")
    execution = onert.Execution(onert.compile(Package((b.model([b.add(Unary(UnaryKind.ABS), x)]),))))
    for given in ((1, 3, 255, 256), (1, 3, 4, 5)):
        execution.run([np.zeros(given, np.float32)])
        with pytest.raises(ExecutionError, match=r"given shape \[1, 4, 8, 8\], expected \[1, 3, \?, \?\]; set_input"):
            execution.run([np.zeros((1, 4, 8, 8), np.float32)])


def _transposed() -> Subgraphs:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 40)), "x")
    return b.model([b.add(Transpose(), x, b.constant(np.int32([1, 0])))])


def _scores() -> Subgraphs:
    """A batched product with a transposed right side and few terms, so that few rows are not lowered in another way."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 40)), "x")
    heads = b.add(Reshape((2, 20, 24)), b.constant(_weights(40, 24)))
    rows = b.add(Reshape((2, -1, 24)), b.add(FullyConnected(), x, b.constant(_weights(48, 40))))
    return b.model([b.add(BatchMatMul(adjoint_y=True), rows, heads)])


@pytest.mark.parametrize("model", [_transposed, _scores])
def test_a_recipe_of_few_rows_serves_more_rows_than_a_register_has_lanes(model: Callable[[], Subgraphs]) -> None:
    package = Package((model(),), "made")
    program = onert.compile(package)
    stretches = []
    for n in (6, 7, 5, 9, 12, 14):
        given = _weights(n, 40)
        (expected,) = onert.Execution(onert.compile(package, input_shapes={"x": (n, 40)})).run([given]).values()
        special = program.specialize({0: (n, 40)})
        (result,) = onert.Execution(special).run([given]).values()
        np.testing.assert_array_equal(result, expected)
        stretches.append(special.stretch)
    assert stretches[2] is not None
    assert all(each is stretches[2] for each in stretches[2:])
