"""Products in half-width registers, on processors with twice the throughput for them."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from attrs import evolve

from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.lower.command_builder import KernelSpec
from onert_llvm.schedule.cost_model import _MANY_ROWS, Shape, lanes_for
from onert_llvm.target.isa import ISAS, Isa, runnable

from .harness import Array
from .natively import assert_close, evaluated, natively

TWICE = "AuthenticAMD 25 17 : "
"""How such a processor (a fourth-generation EPYC) identifies itself."""


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _dense(b: Builder, m: int, depth: int, n: int) -> int:
    x = b.input(TensorType(DType.FLOAT32, (m, depth)))
    made = b.add(FullyConnected(), x, b.constant(_numbers(n, depth) / np.float32(depth**0.5)), b.constant(_numbers(n)))
    return b.add(Unary(UnaryKind.TANH), made)


def _batches(b: Builder, m: int, depth: int, n: int, turned: bool = False) -> int:
    x, y = (
        b.input(TensorType(DType.FLOAT32, (3, *size))) for size in ((m, depth), (n, depth) if turned else (depth, n))
    )
    return b.add(BatchMatMul(adjoint_y=turned), x, y)


def _windows(b: Builder, size: int, depth: int, n: int, infinite: bool = False) -> int:
    x = b.input(TensorType(DType.FLOAT32, (1, size, size, depth)))
    beside = b.input(TensorType(DType.FLOAT32, (1, -(-size // 2), -(-size // 2), n)))
    weights = _numbers(n, 3, 3, depth)
    weights[1, 1, 0, 2] = np.inf if infinite else 1
    made = b.add(Conv2D(Padding.SAME, 2, 2), x, b.constant(weights))
    return b.add(Binary(BinaryKind.ADD, Activation.RELU6), made, beside)


def _layers() -> dict[str, Subgraph]:
    found = {}
    layers: dict[str, Callable[[Builder], int]] = {
        "fewer than a register": lambda b: _dense(b, 37, 24, 5),
        "one and a half": lambda b: _dense(b, 16, 40, 24),
        "the last in part": lambda b: _dense(b, 200, 120, 36),
        "several panels": lambda b: _dense(b, 61, 18, 120),
        "two computed matrices": lambda b: _batches(b, 29, 33, 20),
        "two of which one is turned": lambda b: _batches(b, 40, 24, 21, True),
        "windows": lambda b: _windows(b, 9, 24, 40),
        "along lines": lambda b: _windows(b, 21, 3, 24),
        "windows of infinite weights": lambda b: _windows(b, 11, 17, 20, True),
    }
    for name, layer in layers.items():
        b = Builder()
        found[name] = b.subgraph([layer(b)])
    return found


@pytest.mark.parametrize("isa", [isa for isa in runnable() if isa.rounds], ids=lambda isa: isa.name)
def test_half_registers_compute_bitwise_equal_results(isa: Isa, subtests: pytest.Subtests) -> None:
    for name, subgraph in _layers().items():
        inputs = [_numbers(*subgraph.type(i).shape, seed=3) for i in subgraph.inputs]
        with subtests.test(name), np.errstate(all="ignore"):
            whole = natively(subgraph, inputs, isa)
            with patch("onert_llvm.lower.command_builder.KernelSpec", wraps=KernelSpec) as made:
                halves = natively(subgraph, inputs, evolve(isa, processor=TWICE), 2)
            lanes = {call.args[1].f32 for call in made.call_args_list}
            assert (8 in lanes) == (name != "several panels")
            np.testing.assert_array_equal(halves[0], whole[0])
            assert_close(halves, evaluated(subgraph, inputs), 2e-6)


def test_half_registers_are_used_only_where_they_are_worth_their_code() -> None:
    for isa in ISAS:
        twice = evolve(isa, processor=TWICE)
        for n, worth in ((8, True), (24, True), (40, True), (32, False), (120, False)):
            shape = Shape(784, n, 96)
            assert lanes_for(shape, isa) == isa
            assert lanes_for(shape, twice).narrow == (worth and isa.rounds and not isa.bfloat)
            assert lanes_for(evolve(shape, m=_MANY_ROWS - 1), twice) == twice
