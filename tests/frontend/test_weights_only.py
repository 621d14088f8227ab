"""Files whose float weights were converted to integers: results match LiteRT's, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_writer import CIRCLE, LiteRt, Model, schema
from shared_material import SHARED, needs_shared

import onert
from onert.frontend.tflite_schema.quantize import weights_only
from onert.frontend.tflite_schema.quantize.weights_only import quantized, rounded
from onert.ir import Array, DType, ModelError

F32 = DType.FLOAT32
PLANE = {"padding": 0, "strideW": 1, "strideH": 1, "fusedActivationFunction": 0}
LAYERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[str, dict[str, Any]]]] = {
    # input, weights, result, options
    "FULLY_CONNECTED": ((2, 12), (5, 12), (2, 5), ("FullyConnectedOptions", {})),
    "CONV_2D": ((1, 6, 5, 4), (7, 3, 3, 4), (1, 6, 5, 7), ("Conv2DOptions", PLANE)),
    "DEPTHWISE_CONV_2D": (
        (1, 6, 5, 4),
        (1, 3, 3, 8),
        (1, 6, 5, 8),
        ("DepthwiseConv2DOptions", {**PLANE, "depthMultiplier": 2}),
    ),
}


def _random(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _layers(*codes: str, weights: Array | None = None, shared: bool = False, tables: Any = schema) -> bytes:
    """Layers with one input each and weights of their own; if `shared`, one set of weights, which is also an output."""
    model = Model(tables)
    graph = model.graph()
    given = None
    for number, code in enumerate(codes):
        x_shape, w_shape, y_shape, options = LAYERS[code]
        x = graph.input(F32, x_shape)
        if given is None or not shared:
            given = graph.constant(_random(w_shape, number) if weights is None else weights)
        bias, y = graph.constant(_random((y_shape[-1],), 9)), graph.tensor(F32, y_shape)
        graph.operator(code, [x, given, bias], [y], options)
        graph.outputs(y)
    if shared and given is not None:
        graph.outputs(given)
    return model.done()


def _run(content: bytes, *inputs: Array) -> list[Array]:
    return list(onert.Execution(onert.compile(onert.load(content))).run(inputs).values())


def _weights(content: bytes) -> list[DType]:
    graph = onert.load(content).model.primary
    return [graph.type(o.used[1]).dtype for o in graph.operations if len(o.used) == 3]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("code", LAYERS)
def test_a_layer_with_integer_weights_matches_litert(code: str, bits: int) -> None:
    plain = _layers(code)
    found = quantized(plain, bits)
    assert _weights(found) == [DType.INT8 if bits == 8 else F32]
    x = _random(LAYERS[code][0], 5)
    (mine,), (theirs,), (real,) = _run(found, x), LiteRt(found)(x), _run(plain, x)
    np.testing.assert_allclose(mine, theirs, atol=1e-5)
    np.testing.assert_allclose(mine, real, atol=0.1 if bits == 8 else 1e-3)
    assert (mine != real).any()


def test_8_bit_weights_have_a_scale_for_each_channel() -> None:
    weights = _random((5, 12)) * np.float32([1, 10, 100, 0, 1000]).reshape(5, 1)
    content = quantized(_layers("FULLY_CONNECTED", weights=weights), 8)
    graph = onert.load(content).model.primary
    quantization = graph.type(graph.operations[0].used[1]).quantization
    assert quantization is not None
    assert quantization.axis == 0
    np.testing.assert_allclose(
        quantization.scales, [*np.abs(weights[:3]).max(1) / 127, 1, np.abs(weights[4]).max() / 127]
    )


@pytest.mark.parametrize(("axis", "bits"), [(0, 8), (1, 8), (None, 16)])
def test_floats_are_rounded_to_the_nearest_integer_and_use_the_full_range(axis: int | None, bits: int) -> None:
    weights = _random((6, 9))
    integers, scales = rounded(weights, axis, bits)
    largest = (1 << bits - 1) - 1
    by = scales.reshape(-1, 1) if axis == 0 else scales
    assert np.abs(integers * by - weights).max() <= 0.5001 * scales.max()
    assert (np.abs(integers).max(axis=None if axis is None else 1 - axis) == largest).all()


@pytest.mark.parametrize("bits", [8, 16])
def test_weights_with_another_reader_keep_a_float_copy(bits: int) -> None:
    plain = _layers("FULLY_CONNECTED", "FULLY_CONNECTED", shared=True)
    found = quantized(plain, bits)
    x = [_random((2, 12), seed) for seed in (1, 2)]
    mine, theirs, real = _run(found, *x), LiteRt(found)(*x), _run(plain, *x)
    np.testing.assert_array_equal(mine[2], real[2])
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_circle_files_stay_circle_files() -> None:
    found = quantized(_layers("CONV_2D", tables=CIRCLE), 8)
    assert found[4:8] == b"CIR0"
    assert _weights(found) == [DType.INT8]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_not_converted(value: float) -> None:
    weights = _random((5, 12))
    weights[3, 4] = value
    with pytest.raises(ModelError, match="has constant float weights"):
        quantized(_layers("FULLY_CONNECTED", weights=weights), 8)


def test_a_file_that_would_lose_data_when_rewritten_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = _layers("CONV_2D")
    serialize = weights_only.serialize

    def lossy(model: Any, identifier: bytes) -> bytes:
        model.subgraphs[0].operators[0].builtinOptions.strideW = 2
        return serialize(model, identifier)

    monkeypatch.setattr(weights_only, "serialize", lossy)
    with pytest.raises(ModelError, match="it has fields that circle-schema does not know"):
        quantized(content, 8)
    with pytest.raises(ModelError):
        quantized(content[:-40], 8)


@needs_shared
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", ["trained_lstm", "mobilenet_v3_small_224_fp32", "cf_while_cond_fp32"])
def test_a_real_model_with_integer_weights_matches_litert(name: str, bits: int) -> None:
    (path,) = (SHARED / "models").glob(f"*/{name}.tflite")
    found = quantized(path.read_bytes(), bits)
    assert len(found) < path.stat().st_size
    program = onert.compile(onert.load(found))
    inputs = [_random(tuple(d or 1 for d in i.shape)).astype(i.dtype.numpy) for i in program.inputs]
    for a, b in zip(onert.Execution(program).run(inputs).values(), LiteRt(found)(*inputs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1.0, float(np.ptp(b))))


@needs_shared
def test_a_model_of_float_and_integer_layers_matches_litert_s_reference_kernels() -> None:
    """LiteRT's optimised kernels differ from these by a fifth of the range, in the original model as well."""
    (path,) = (SHARED / "models").glob("*/lyragan.tflite")
    for content in (path.read_bytes(), quantized(path.read_bytes(), 8)):
        program = onert.compile(onert.load(content))
        inputs = [_random(tuple(d or 1 for d in i.shape)) for i in program.inputs]
        found = onert.Execution(program).run(inputs).values()
        for a, b in zip(found, LiteRt(content, "BUILTIN_REF")(*inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * float(np.ptp(b)))
