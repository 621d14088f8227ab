"""Arg-max and arg-min compare quantised integers instead of floats if both have the same order and ties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from llvm.natively import evaluated, natively

from onert.compiler.passes.quantized.compare_bytes import compare_bytes
from onert.compiler.passes.remove_dead import remove_dead
from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme
from onert_llvm.target.isa import runnable

SHAPE = (5, 300)


def _dequantize(dtype: DType, quantization: Quantization | None, to: DType = DType.FLOAT32) -> Callable[[Builder], int]:
    return lambda b: b.add(Dequantize(to), b.input(TensorType(dtype, SHAPE, quantization)))


def _times(scale: float) -> Callable[[Builder], int]:
    """Dequantisation as ONNX writes it."""

    def write(b: Builder) -> int:
        x = b.add(Cast(DType.FLOAT32), b.input(TensorType(DType.UINT8, SHAPE)))
        x = b.add(Binary(BinaryKind.SUB), x, b.constant(np.float32(7)))
        return b.add(Binary(BinaryKind.MUL), x, b.constant(np.float32(scale)))

    return write


def _graph(write: Callable[[Builder], int], kind: Extreme = Extreme.MAX) -> Subgraph:
    b = Builder()
    return b.subgraph([b.add(ArgReduce(kind), write(b), b.constant(np.int32(1)))])


FOUND = {
    "signed bytes": _dequantize(DType.INT8, Quantization((0.02,), (-4,))),
    "bytes": _dequantize(DType.UINT8, Quantization((3.0,), (128,))),
    "16 bits": _dequantize(DType.INT16, Quantization((1e-30,), (0,))),
    "arithmetic": _times(0.5),
}
STAY = {
    "a scale for each channel": _dequantize(DType.INT8, Quantization((0.02,) * 4 + (0.5,), (0,) * 5, 0)),
    "products that are infinite": _dequantize(DType.INT8, Quantization((3e37,), (0,))),
    "products that are no whole numbers of steps": _dequantize(DType.INT8, Quantization((1e-40,), (0,))),
    "more bits than floats have": _dequantize(DType.INT32, Quantization((0.5,), (0,))),
    "shorter floats": _dequantize(DType.INT16, Quantization((0.5,), (0,)), DType.FLOAT16),
    "a negative scale": _times(-0.5),
}


@pytest.mark.parametrize("kind", Extreme)
@pytest.mark.parametrize("name", FOUND)
def test_the_index_found_among_integers_is_the_one_among_floats(name: str, kind: Extreme) -> None:
    graph = _graph(FOUND[name], kind)
    found = remove_dead(compare_bytes(graph))
    assert [type(o.op) for o in found.operations] == [ArgReduce]
    limits = np.iinfo(graph.type(graph.inputs[0]).dtype.numpy)
    few = np.random.default_rng(1).integers(limits.min, limits.min + 9, SHAPE)  # with many ties
    for values in (few, np.random.default_rng(2).integers(limits.min, limits.max, SHAPE, endpoint=True)):
        x = values.astype(limits.dtype)
        (expected,) = evaluated(graph, [x])
        for isa in runnable():
            (got,) = natively(found, [x], isa)
            np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("name", STAY)
def test_floats_in_an_order_other_than_their_integers_are_compared_as_floats(name: str) -> None:
    graph = _graph(STAY[name])
    assert compare_bytes(graph) is graph
