"""LiteRT's custom operators of generative models: attention, and the update of caches of keys and values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from flatbuffers import flexbuffers
from model_writer import Model

import onert
from onert.ir import Array, DType, ExecutionError

genai = pytest.importorskip("ai_edge_litert.pywrap_genai_ops", reason="ai-edge-litert is not installed")
interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


def _model(code: str, inputs: list[Array], outputs: list[tuple[int, ...]], options: Mapping[str, float]) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            builder.Float(key, value)
    model = Model()
    graph = model.graph()
    read = [graph.input(DType.from_numpy(x.dtype), x.shape) for x in inputs]
    made = [graph.tensor(DType.FLOAT32, shape) for shape in outputs]
    graph.operator(code, read, made, custom=bytes(builder.Finish()))
    graph.outputs(*made)
    return model.done()


def _litert(model: bytes, inputs: list[Array]) -> list[Array]:
    found = interpreter.InterpreterWithCustomOps(
        custom_op_registerers=[genai.GenAIOpsRegisterer], model_content=model, num_threads=1
    )
    found.allocate_tensors()
    for detail, array in zip(found.get_input_details(), inputs, strict=True):
        found.set_tensor(detail["index"], array)
    found.invoke()
    return [found.get_tensor(detail["index"]) for detail in found.get_output_details()]


def _compare(model: bytes, inputs: list[Array]) -> None:
    program = onert.compile(onert.load(model))
    assert set(program.backends) == {"llvm"}
    found = onert.Execution(program).run(inputs).values()
    for mine, wanted in zip(found, _litert(model, inputs), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("tokens", "heads", "own", "n", "mask", "scale"),
    [
        (1, 8, 2, 16, (1, 1, 1, 20), 0.0),
        (6, 8, 2, 16, (1, 1, 6, 20), 0.0),
        (6, 4, 4, 32, (1, 4, 6, 20), 0.25),
        (6, 4, 1, 8, (1, 1, 6, 20), 0.0),
    ],
)
def test_attention_equals_litert_in_native_code(
    tokens: int, heads: int, own: int, n: int, mask: tuple[int, ...], scale: float
) -> None:
    rng = np.random.default_rng(tokens)
    shapes = (1, tokens, heads, n), (1, 20, own, n), (1, 20, own, n)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    inputs.append(np.where(rng.random(mask) < 0.3, -np.inf, 0).astype(np.float32))
    options = {"scale": scale} if scale else {}
    _compare(_model("odml.scaled_dot_product_attention", inputs, [shapes[0]], options), inputs)


@pytest.mark.parametrize("positions", [[7], [2, 3, 4], [5, 6, 7, 0, 0], [3, 3, 6, 5, 7]])
def test_caches_are_updated_as_litert_does_in_native_code(positions: list[int]) -> None:
    rng = np.random.default_rng(len(positions))
    cache, new = (1, 8, 2, 4), (1, len(positions), 2, 4)
    keys, values, more_keys, more_values = (rng.normal(size=s).astype(np.float32) for s in (cache, cache, new, new))
    inputs = [keys, values, np.int32(positions), more_keys, more_values]
    _compare(_model("odml.update_external_kv_cache", inputs, [cache, cache], {}), inputs)


def test_a_position_behind_the_cache_is_refused() -> None:
    cache, new = np.zeros((1, 4, 1, 2), np.float32), np.zeros((1, 2, 1, 2), np.float32)
    inputs = [cache, cache + 1, np.int32([3, 4]), new, new + 1]
    program = onert.compile(onert.load(_model("odml.update_external_kv_cache", inputs, [cache.shape] * 2, {})))
    with pytest.raises(ExecutionError, match="index 4 is outside"):
        onert.Execution(program).run(inputs)
