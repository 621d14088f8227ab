"""Quantised functions at the edges of their domain: zero, negative numbers, and results beyond int16 or float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from model_writer import LiteRt, Model

import onert
from onert.ir import Array, DType, Quantization

OPTIONS = {"EXP": ("ExpOptions", {}), "ABS": ("AbsOptions", {}), "GELU": ("GeluOptions", {})}
DEFINITIONS: dict[str, Callable[[Array], Array]] = {
    "EXP": np.exp,
    "LOG": np.log,
    "RSQRT": lambda x: 1 / np.sqrt(x),
}
BACKENDS = pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])


def _model(code: str, dtype: DType, x: Array, source: Quantization, result: Quantization) -> bytes:
    model = Model()
    graph = model.graph()
    entry = graph.input(dtype, x.shape, source)
    out = graph.tensor(dtype, x.shape, None, result)
    graph.operator(code, [entry], [out], OPTIONS.get(code))
    graph.outputs(out)
    return model.done()


def _ours(model: bytes, x: Array, backends: tuple[str, ...]) -> Array:
    return next(iter(onert.Execution(onert.compile(onert.load(model), backends=backends)).run([x]).values()))


def _scaled(scale: float, zero: int) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


BYTES = [((0.05, 0), (0.05, 0)), ((0.02, -128), (0.01, -128)), ((0.1, 10), (0.2, -5)), ((0.7, 127), (0.03, 3))]
BYTES += [((1.5, -20), (0.0078125, 0)), ((0.05, 7), (1.0, 0)), ((0.00390625, -128), (0.1, 5))]
WORDS = [((0.001, 0), (0.001, 0)), ((0.001, 0), (0.0002, 0)), ((0.00003, 0), (0.0005, 0)), ((1.0, 0), (0.0003, 0))]
ROOTS = ("SQRT", "RSQRT")


@BACKENDS
@pytest.mark.parametrize(("source", "result"), BYTES)
@pytest.mark.parametrize("code", ["LOG", "ABS", "EXP", "GELU", *ROOTS])
def test_int8_functions_equal_litert_inside_and_outside_the_domain(
    code: str, source: tuple[float, int], result: tuple[float, int], backends: tuple[str, ...]
) -> None:
    """LiteRT refuses to compute roots of negative numbers."""
    x = np.arange(source[1] if code in ROOTS else -128, 128).astype(np.int8)
    model = _model(code, DType.INT8, x, _scaled(*source), _scaled(*result))
    np.testing.assert_array_equal(_ours(model, x, backends), LiteRt(model, "BUILTIN_REF")(x)[0])


@BACKENDS
@pytest.mark.parametrize(("source", "result"), WORDS)
@pytest.mark.parametrize("code", ROOTS)
def test_int16_roots_equal_litert_except_near_the_pole(
    code: str, source: tuple[float, int], result: tuple[float, int], backends: tuple[str, ...]
) -> None:
    x = np.arange(0, 32768).astype(np.int16)
    model = _model(code, DType.INT16, x, _scaled(*source), _scaled(*result))
    ours, first = _ours(model, x, backends), 128 if code == "RSQRT" else 0
    np.testing.assert_array_equal(ours[first:], LiteRt(model, "BUILTIN_REF")(x)[0][first:])
    if not first:
        return
    near = np.arange(1, 128)
    real = np.rint(1 / np.sqrt(near * source[0]) / result[0])
    np.testing.assert_allclose(ours[1:128], np.minimum(real, 32767), rtol=0, atol=1)
    assert ours[0] == 32767


@BACKENDS
def test_an_int16_inverse_square_root_near_the_pole_follows_the_definition(backends: tuple[str, ...]) -> None:
    x = np.array([46], np.int16)
    model = _model("RSQRT", DType.INT16, x, _scaled(0.001, 0), _scaled(0.001, 0))
    assert _ours(model, x, backends) == 4663


@BACKENDS
@pytest.mark.parametrize(
    ("code", "scales", "values"),
    [
        ("EXP", (0.05, 0.01), (1536, 32767)),
        ("EXP", (1.0, 0.0003), (0, 32767)),
        ("EXP", (0.01, 0.01), (9000, 32767)),
        ("LOG", (1.0, 0.0003), (1, 127)),
        ("RSQRT", (0.01, 0.01), (1, 127)),
    ],
)
def test_int16_results_follow_the_definition_where_litert_s_table_wraps(
    code: str, scales: tuple[float, float], values: tuple[int, int], backends: tuple[str, ...]
) -> None:
    x = np.arange(values[0], values[1] + 1).astype(np.int16)
    model = _model(code, DType.INT16, x, _scaled(scales[0], 0), _scaled(scales[1], 0))
    with np.errstate(over="ignore"):
        real = np.clip(np.rint(DEFINITIONS[code](x * np.float64(scales[0])) / scales[1]), -32768, 32767)
    np.testing.assert_allclose(_ours(model, x, backends), real, rtol=0, atol=1)
