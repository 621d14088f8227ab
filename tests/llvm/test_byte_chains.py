"""Operations that together map a byte to a byte become a table lookup, fused into the preceding layer if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onert.backend import Group, Sequence, Settings
from onert.ir import DType, Op, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.lower.elementwise import byte_chains
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import BACKEND, check

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIGNED = pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8], ids=lambda d: d.text)
SHAPE = (1, 5, 7, 20)


def _scale(dtype: DType, scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero + (128 if dtype is DType.UINT8 else 0),))


def _bytes(dtype: DType, *shape: int) -> Array:
    return np.random.default_rng(len(shape)).integers(0, 256, shape).astype(np.uint8).view(dtype.numpy)


def _to(b: Builder, op: Op, scale: Quantization | None, *operands: int) -> int:
    return b.add(op, *operands, quantization=(scale,))


def _silu(b: Builder, x: int, dtype: DType) -> int:
    gate = _to(b, Unary(UnaryKind.LOGISTIC), _scale(dtype, 1 / 256, -128), x)
    return _to(b, Binary(BinaryKind.MUL), _scale(dtype, 0.02, -110), x, gate)


def _clamped(b: Builder, x: int, dtype: DType) -> int:
    low = b.constant(np.full((1, 1, 1), 3, dtype.numpy), b.type(x).quantization)
    least = _to(b, Binary(BinaryKind.MAXIMUM), b.type(x).quantization, x, low)
    return _to(b, Quantize(dtype), _scale(dtype, 0.07, 5), least)


def _in_floats(b: Builder, x: int, dtype: DType) -> int:
    real = b.add(Dequantize(), x)
    wave = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.TANH), real), b.add(Unary(UnaryKind.SIN), real))
    return _to(b, Quantize(dtype), _scale(dtype, 0.02, -7), wave)


def _positive(b: Builder, x: int, dtype: DType) -> int:
    return b.add(Comparison(ComparisonKind.GREATER), b.add(Dequantize(), x), b.constant(np.float32(0.3)))


CHAINS = [_silu, _clamped, _in_floats, _positive]
Chain = Callable[[Builder, int, DType], int]


def _plain(b: Builder, x: int, dtype: DType) -> int:
    return _to(b, Quantize(dtype), _scale(dtype, 0.05, 1), x)


def _weights(b: Builder, dtype: DType, axis: int, *shape: int) -> int:
    scales = tuple(0.003 + 0.0001 * i for i in range(shape[axis]))
    if dtype is DType.UINT8:
        return b.constant(_bytes(dtype, *shape), Quantization((0.004,), (121,)))
    return b.constant(_bytes(dtype, *shape), Quantization(scales, (0,) * shape[axis], axis))


def _convolved(b: Builder, x: int, dtype: DType) -> int:
    return _to(b, Conv2D(Padding.SAME), _scale(dtype, 0.09, 4), x, _weights(b, dtype, 0, 24, 3, 3, 20))


def _pointwise(b: Builder, x: int, dtype: DType) -> int:
    op = Conv2D(Padding.SAME, activation=Activation.RELU)
    return _to(b, op, _scale(dtype, 0.09, 4), x, _weights(b, dtype, 0, 70, 1, 1, 20))


def _depthwise(b: Builder, x: int, dtype: DType) -> int:
    return _to(b, DepthwiseConv2D(Padding.SAME), _scale(dtype, 0.02, 4), x, _weights(b, dtype, 3, 1, 3, 3, 20))


def _connected(b: Builder, x: int, dtype: DType) -> int:
    op = FullyConnected(keep_dims=True)
    return _to(b, op, _scale(dtype, 0.05, -4), x, _weights(b, dtype, 0, 33, 20))


LAYERS = [_convolved, _pointwise, _depthwise, _connected]


def _graph(dtype: DType, *steps: Chain) -> Subgraph:
    b = Builder()
    x = b.input(TensorType(dtype, SHAPE, _scale(dtype, 0.04, -9)))
    for step in steps:
        x = step(b, x, dtype)
    return b.subgraph([x])


def _groups(graph: Subgraph, isa: Isa) -> tuple[Group, ...]:
    sequence = Sequence(graph, tuple(range(len(graph.operations))), graph.inputs, graph.outputs)
    return BACKEND.fuse(sequence, Settings(target=isa.name))


@ISAS
@SIGNED
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_becomes_one_table_lookup(isa: Isa, dtype: DType, chain: Chain) -> None:
    graph = _graph(dtype, chain)
    assert [len(g.operations) for g in _groups(graph, isa)] == [len(graph.operations)]
    check(graph, [_bytes(dtype, *SHAPE)], isa, threads=2)


@ISAS
@SIGNED
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("chain", [*CHAINS, _plain])
def test_a_chain_after_a_layer_is_fused_into_it(isa: Isa, dtype: DType, layer: Chain, chain: Chain) -> None:
    graph = _graph(dtype, layer, chain)
    (group,) = _groups(graph, isa)
    assert len(group.unstored) == len(graph.operations) - 1
    check(graph, [_bytes(dtype, *SHAPE)], isa, threads=2)


@ISAS
def test_a_chain_after_a_grouped_convolution_is_exact(isa: Isa) -> None:
    def grouped(b: Builder, x: int, dtype: DType) -> int:
        return _to(b, Conv2D(Padding.SAME), _scale(dtype, 0.09, 4), x, _weights(b, dtype, 0, 12, 3, 3, 5))

    graph = _graph(DType.INT8, grouped, _silu)
    check(graph, [_bytes(DType.INT8, *SHAPE)], isa)


@ISAS
@pytest.mark.parametrize("kept", ["layer", "gate"])
def test_a_layer_output_or_gate_with_other_readers_is_stored(isa: Isa, kept: str) -> None:
    b, dtype = Builder(), DType.INT8
    x = b.input(TensorType(dtype, SHAPE, _scale(dtype, 0.04)))
    y = _convolved(b, x, dtype)
    gate = _to(b, Unary(UnaryKind.LOGISTIC), _scale(dtype, 1 / 256, -128), y)
    out = _to(b, Binary(BinaryKind.MUL), _scale(dtype, 0.02, -110), y, gate)
    graph = b.subgraph([out, {"layer": y, "gate": gate}[kept]])
    assert not {i for g in _groups(graph, isa) for i in g.unstored} & {y if kept == "layer" else gate}
    check(graph, [_bytes(dtype, *SHAPE)], isa)


@ISAS
def test_an_intermediate_of_a_chain_with_other_readers_is_stored(isa: Isa) -> None:
    """The maximum of a row is not a function of one byte, and reads an intermediate of a chain."""
    b, dtype = Builder(), DType.INT8
    x = b.input(TensorType(dtype, SHAPE, _scale(dtype, 0.04)))
    gate = _to(b, Unary(UnaryKind.LOGISTIC), _scale(dtype, 1 / 256, -128), x)
    out = _to(b, Binary(BinaryKind.MUL), _scale(dtype, 0.02, -110), x, gate)
    most = _to(b, Reduce(Reduction.MAX), _scale(dtype, 1 / 256, -128), gate, b.constant(np.int32([3])))
    graph = b.subgraph([out, most])
    assert gate not in {i for g in _groups(graph, isa) for i in g.unstored}
    check(graph, [_bytes(dtype, *SHAPE)], isa)


def test_a_chain_undefined_for_some_byte_does_not_become_a_table() -> None:
    """Division by a zero byte raises where it is computed, which a table cannot do."""
    b = Builder()
    x = b.input(TensorType(DType.UINT8, (1, 40)))
    divided = b.add(Binary(BinaryKind.FLOOR_DIV), b.constant(np.uint8([200])), b.add(Binary(BinaryKind.MAXIMUM), x, x))
    graph = b.subgraph([divided])
    assert list(byte_chains.chains(graph, range(2), ())) == []


@ISAS
def test_a_chain_starts_after_an_operation_on_two_tensors(isa: Isa) -> None:
    b, dtype = Builder(), DType.INT8
    x, y = (b.input(TensorType(dtype, SHAPE, _scale(dtype, s))) for s in (0.04, 0.03))
    total = _to(b, Binary(BinaryKind.ADD), _scale(dtype, 0.06), x, y)
    graph = b.subgraph([_silu(b, total, dtype)])
    assert [len(g.operations) for g in _groups(graph, isa)] == [1, 2]
    check(graph, [_bytes(dtype, *SHAPE), _bytes(dtype, *SHAPE)[..., ::-1].copy()], isa)


@ISAS
def test_per_channel_scales_prevent_a_table(isa: Isa) -> None:
    b, dtype = Builder(), DType.INT8
    own = Quantization(tuple(0.01 * (i + 1) for i in range(20)), (0,) * 20, 3)
    x = b.input(TensorType(dtype, SHAPE, own))
    graph = b.subgraph([_to(b, Quantize(dtype), _scale(dtype, 0.02), b.add(Dequantize(), x))])
    assert len(_groups(graph, isa)) == 2


@ISAS
@pytest.mark.parametrize("width", [1, 15, 16, 31, 63, 64, 65, 129, 1000])
def test_rows_of_any_width_are_processed_within_bounds(isa: Isa, width: int) -> None:
    b, dtype = Builder(), DType.INT8
    x = b.input(TensorType(dtype, (3, width), _scale(dtype, 0.04)))
    graph = b.subgraph([_silu(b, x, dtype)])
    check(graph, [_bytes(dtype, 3, width)], isa)


def test_every_byte_value_is_mapped_correctly() -> None:
    b, dtype = Builder(), DType.INT8
    every: Any = np.arange(256, dtype=np.uint8).view(np.int8).reshape(1, 256)
    x = b.input(TensorType(dtype, (1, 256), _scale(dtype, 0.04)))
    graph = b.subgraph([_in_floats(b, x, dtype)])
    for isa in runnable():
        check(graph, [every], isa)
