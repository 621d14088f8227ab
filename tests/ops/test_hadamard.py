"""LiteRT's custom operator that rotates activations, which its quantizer inserts before layers and after lookups."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers
from model_writer import LiteRt, Model

import onert
from onert.ir import CompileError, DType, ModelError


def _model(size: int, *shape: int) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("hadamard_size", size)
        builder.TypedVectorFromElements("random_binary_vector", [1])
    model = Model()
    graph = model.graph()
    x, out = graph.input(DType.FLOAT32, shape), graph.tensor(DType.FLOAT32, shape)
    graph.operator("aeq.hadamard_rotation", [x], [out], custom=bytes(builder.Finish()))
    graph.outputs(out)
    return model.done()


@pytest.mark.parametrize(
    ("size", "shape"), [(1, (2, 3)), (8, (1, 8)), (64, (3, 192)), (128, (5, 128)), (512, (1, 2, 1024))]
)
def test_a_rotation_equals_litert_in_native_code(size: int, shape: tuple[int, ...]) -> None:
    model, x = _model(size, *shape), np.random.default_rng(size).normal(size=shape).astype(np.float32)
    program = onert.compile(onert.load(model))
    assert set(program.backends) == {"llvm"}
    (found,) = onert.Execution(program).run([x]).values()
    np.testing.assert_allclose(found, LiteRt(model, "BUILTIN")(x)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "says"), [(0, "is 0"), (12, "is 12"), (1 << 20, "is 1048576"), (16, "divisible by 16")]
)
def test_a_rotation_of_an_impossible_size_is_refused(size: int, says: str) -> None:
    with pytest.raises((ModelError, CompileError), match=says):
        onert.compile(onert.load(_model(size, 1, 24)))
