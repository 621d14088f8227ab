"""Every executor and every number of threads gives bit-identical results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_graphs import random_model
from shared_material import SHARED, needs_shared

import onert
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax

WAYS = [(executor, threads) for executor in ("Linear", "Dataflow", "Parallel") for threads in (1, 2, 3)]
WIDTHS = (7, 64, 100, 192)


def _inputs(program: onert.Program) -> list[Array]:
    rng = np.random.default_rng(0)
    found = []
    for info in program.inputs:
        shape = tuple(d or 1 for d in info.shape)
        if info.dtype.is_float:
            found.append(rng.uniform(-1, 1, shape).astype(info.dtype.numpy))
        else:  # small, as they may be vocabulary indices or a mask
            found.append(rng.integers(0, 2, shape).astype(info.dtype.numpy))
    return found


def _outputs(package: Package, executor: str, threads: int) -> list[bytes]:
    program = onert.compile(package, executor=executor, num_threads=threads)
    return [array.tobytes() for array in onert.Execution(program).run(_inputs(program)).values()]


def _assert_same(package: Package) -> None:
    first = _outputs(package, *WAYS[0])
    different = [way for way in WAYS[1:] if _outputs(package, *way) != first]
    assert not different, f"{different} give other bits than {WAYS[0]}"


class _Rows:
    """A random graph over rows of one width, made of the building blocks of transformers in different forms."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.width = int(self.rng.choice(WIDTHS))
        self.b = Builder()
        self.tensors = [self.b.input(TensorType(DType.FLOAT32, (1, int(self.rng.integers(2, 40)), self.width)))]

    def any(self) -> int:
        return self.tensors[int(len(self.tensors) * self.rng.random() ** 0.5)]

    def constant(self, *shape: int) -> int:
        return self.b.constant(self.rng.normal(size=shape).astype(np.float32) / np.float32(np.sqrt(self.width)))

    def pair(self, kind: BinaryKind, x: int, y: int) -> int:
        return self.b.add(Binary(kind), x, y)

    def fold(self, kind: Reduction, x: int) -> int:
        return self.b.add(Reduce(kind, keep_dims=True), x, self.b.constant(np.int32([2])))

    def unary(self, kind: UnaryKind, x: int) -> int:
        return self.b.add(Unary(kind), x)

    def moments(self, x: int) -> tuple[int, int]:
        mean = self.fold(Reduction.MEAN, x)
        spread = self.fold(Reduction.MEAN, self.pair(BinaryKind.SQUARED_DIFFERENCE, x, mean))
        inverse = self.unary(UnaryKind.RSQRT, self.pair(BinaryKind.ADD, spread, self.b.constant(np.float32(1e-6))))
        return mean, inverse

    def centred(self) -> int:
        """A layer norm that subtracts the mean first."""
        x = self.any()
        mean, inverse = self.moments(x)
        normal = self.pair(BinaryKind.MUL, self.pair(BinaryKind.SUB, x, mean), inverse)
        scaled = self.pair(BinaryKind.MUL, normal, self.constant(self.width))
        return self.pair(BinaryKind.ADD, scaled, self.constant(self.width))

    def factored(self) -> int:
        """A layer norm as Keras writes it: a factor and an offset for each row."""
        x = self.any()
        mean, inverse = self.moments(x)
        factor = self.pair(BinaryKind.MUL, inverse, self.constant(self.width))
        offset = self.pair(BinaryKind.SUB, self.constant(self.width), self.pair(BinaryKind.MUL, mean, factor))
        return self.pair(BinaryKind.ADD, self.pair(BinaryKind.MUL, x, factor), offset)

    def shares(self) -> int:
        """A softmax, as one operation or written out."""
        x = self.any()
        if self.rng.random() < 0.4:
            return self.b.add(Softmax(), x)
        powers = self.unary(UnaryKind.EXP, self.pair(BinaryKind.SUB, x, self.fold(Reduction.MAX, x)))
        return self.pair(BinaryKind.DIV, powers, self.fold(Reduction.SUM, powers))

    def layer(self) -> int:
        x = self.any()
        tensors = self.b.add(
            FullyConnected(keep_dims=True), x, self.constant(self.width, self.width), self.constant(self.width)
        )
        return self.unary(UnaryKind.GELU, tensors) if self.rng.random() < 0.5 else tensors

    def attention(self) -> int:
        q, k, v = (self.any() for _ in range(3))
        scores = self.b.add(BatchMatMul(), q, self.b.add(Transpose(), k, self.b.constant(np.int32([0, 2, 1]))))
        return self.b.add(BatchMatMul(), self.b.add(Softmax(), scores), v)

    def sum(self) -> int:
        return self.pair(BinaryKind.ADD, self.any(), self.any())

    def package(self) -> Package:
        draws: list[Callable[[], int]] = [
            self.centred, self.factored, self.shares, self.layer, self.attention, self.sum, self.sum,
        ]  # fmt: skip
        for _ in range(int(self.rng.integers(2, 9))):
            self.tensors.append(draws[int(self.rng.integers(len(draws)))]())
        outputs = {self.tensors[-1], self.tensors[int(self.rng.integers(1, len(self.tensors)))]}
        return Package((self.b.model(sorted(outputs)),))


@pytest.mark.parametrize("seed", range(16))
def test_random_transformer_graphs_give_identical_bits(seed: int) -> None:
    _assert_same(_Rows(seed).package())


@pytest.mark.parametrize("seed", range(6))
def test_random_image_graphs_give_identical_bits(seed: int) -> None:
    _assert_same(onert.load(random_model(seed, stored=False)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(16, 216))
def test_many_random_graphs_give_identical_bits(seed: int) -> None:
    _assert_same(_Rows(seed).package())
    _assert_same(onert.load(random_model(seed, stored=False)))


def _models() -> Iterator[Any]:
    """The shared models: a few with layer norms and branches in the default suite, all in the long one."""
    quick = {"cf_while_cond_fp32", "mobilenet_v3_small_224_fp32"}
    for path in sorted((SHARED / "models").rglob("*.tflite")):
        if path.stat().st_size < 60 << 20:
            marks = () if path.stem in quick else (pytest.mark.long,)
            yield pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=marks)


@needs_shared
@pytest.mark.parametrize("path", list(_models()))
def test_shared_models_give_identical_bits(path: Path) -> None:
    package = onert.load(path)
    program = onert.compile(package)
    if any(info.dtype.is_handle for info in program.inputs):
        pytest.skip("its inputs are strings")
    _assert_same(package)
