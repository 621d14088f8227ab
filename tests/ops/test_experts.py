"""LiteRT's custom operator for a mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from model_writer import LiteRt, Model

import onert
from onert.ir import Array, DType, ExecutionError, ModelError

F32 = DType.FLOAT32
OPTIONS = {"num_experts": 4, "num_active_experts": 2, "model_dim": 8, "hidden_dim": 6, "weight_type": "fp32"}


def _model(tokens: int, **other: Any) -> bytes:
    options = {**OPTIONS, **other}
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            builder.String(key, value) if isinstance(value, str) else builder.Int(key, value)
    rng = np.random.default_rng(3)
    experts, features, hidden = 4, 8, 6
    model = Model()
    graph = model.graph()
    inputs = [graph.input(F32, (1, tokens, features)), graph.input(F32, (1, tokens, 2))]
    inputs.append(graph.input(DType.INT32, (1, tokens, 2)))
    shapes = ((hidden, experts, 1, features), (hidden, experts, 1, features), (features, experts, 1, hidden))
    weights = [graph.constant(rng.normal(size=s).astype(np.float32)) for s in (*shapes, (1, 1, 1, experts))]
    out = graph.tensor(F32, (1, tokens, features))
    graph.operator("moe", [*inputs, *weights], [out], custom=bytes(builder.Finish()))
    graph.outputs(out)
    return model.done()


def _given(tokens: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(tokens)
    x, weights = (rng.normal(size=(1, tokens, n)).astype(np.float32) for n in (8, 2))
    return x, weights, rng.integers(-4, 4, (1, tokens, 2)).astype(np.int32)


def _run(model: bytes, given: tuple[Array, ...]) -> Array:
    return next(iter(onert.Execution(onert.compile(onert.load(model))).run(given).values()))


@pytest.mark.parametrize("tokens", [1, 2, 9])
@pytest.mark.parametrize("other", [{}, {"activation": "gelu"}], ids=["", "gelu"])
def test_a_mixture_of_experts_equals_litert(tokens: int, other: dict[str, str]) -> None:
    model, given = _model(tokens, **other), _given(tokens)
    np.testing.assert_allclose(_run(model, given), LiteRt(model, "BUILTIN")(*given)[0], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"activation": "silu"}, "activation is 'silu', expected 'gelu'"),
        ({"weight_type": "int8"}, "weight_type is 'int8', expected 'fp32'"),
        ({"num_active_experts": 5}, "5 experts are chosen, expected at most 4"),
        ({"num_experts": 3}, "gate has 192 elements, expected 144"),
        ({"hidden_dim": 0}, "expected at least 1"),
        ({"model_dim": "8"}, "the custom option model_dim is '8'"),
    ],
)
def test_invalid_options_are_rejected_with_the_rule(other: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        onert.load(_model(2, **other))


def test_an_expert_index_out_of_range_is_rejected_at_run_time() -> None:
    x, weights, indices = _given(2)
    with pytest.raises(ExecutionError, match="operation 0 moe: index 4 is outside of dimension 0 of 4"):
        _run(_model(2), (x, weights, np.full_like(indices, 4)))
