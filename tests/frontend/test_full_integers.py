"""Files converted to integers throughout match LiteRT's reference kernels and are close to the float results."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from model_writer import CIRCLE, LiteRt, Model, schema
from shared_material import SHARED, needs_shared

import onert
from onert.frontend.tflite_schema.quantize.full_integers import quantized
from onert.frontend.tflite_schema.quantize.schemes import JOINS, LAYERS, MOVES, OWN_RANGE, SCHEMES, is_uneven
from onert.frontend.tflite_schema.quantize.weights_only import quantized as with_weights
from onert.ir import Array, DType, ModelError
from onert.tools.running.calibrating import ranges

F32, I32 = DType.FLOAT32, DType.INT32
PLANE = {"padding": 0, "strideW": 1, "strideH": 1, "fusedActivationFunction": 0}
POOL = {**PLANE, "filterWidth": 2, "filterHeight": 2}
IMAGE = (1, 4, 6, 4)
SLICES = {"beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0}


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


def real(shape: Sequence[int], seed: int = 7) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@frozen
class Case:
    """An operator: its operands (shapes of inputs, or constants) and the shapes of its results."""

    given: tuple[Any, ...]
    results: tuple[tuple[int, ...], ...]
    options: tuple[str, Mapping[str, Any]] | None = None


ONE, TWO = ((1, 4, 6, 4),), ((1, 4, 6, 4), (1, 4, 6, 4))
CASES: dict[str, Case] = {
    "FULLY_CONNECTED": Case(((2, 12), real((5, 12)), real((5,))), ((2, 5),), ("FullyConnectedOptions", {})),
    "CONV_2D": Case((IMAGE, real((7, 3, 3, 4)), real((7,))), ((1, 4, 6, 7),), ("Conv2DOptions", PLANE)),
    "DEPTHWISE_CONV_2D": Case(
        (IMAGE, real((1, 3, 3, 4)), real((4,))), ONE, ("DepthwiseConv2DOptions", {**PLANE, "depthMultiplier": 1})
    ),
    "TRANSPOSE_CONV": Case(
        (ints(1, 8, 12, 5), real((5, 2, 2, 4)), IMAGE),
        ((1, 8, 12, 5),),
        ("TransposeConvOptions", {"padding": 1, "strideW": 2, "strideH": 2}),
    ),
    "ADD": Case(TWO, ONE, ("AddOptions", {})),
    "SUB": Case((IMAGE, real((4,))), ONE, ("SubOptions", {})),
    "MUL": Case(TWO, ONE, ("MulOptions", {})),
    "DIV": Case((IMAGE, np.float32([[1.5]])), ONE, ("DivOptions", {})),
    "PRELU": Case((IMAGE, real((1, 1, 4))), ONE),
    "MEAN": Case((IMAGE, ints(1, 2)), ((1, 1, 1, 4),), ("ReducerOptions", {"keepDims": True})),
    "RELU": Case((IMAGE,), ONE),
    "RELU6": Case((IMAGE,), ONE),
    "LEAKY_RELU": Case((IMAGE,), ONE, ("LeakyReluOptions", {"alpha": 0.25})),
    "HARD_SWISH": Case((IMAGE,), ONE, ("HardSwishOptions", {})),
    "CONCATENATION": Case((IMAGE, (1, 4, 6, 2)), ((1, 4, 6, 6),), ("ConcatenationOptions", {"axis": 3})),
    "PACK": Case(TWO, ((2, 1, 4, 6, 4),), ("PackOptions", {"valuesCount": 2, "axis": 0})),
    "MAXIMUM": Case(TWO, ONE, ("MaximumMinimumOptions", {})),
    "MINIMUM": Case(TWO, ONE, ("MaximumMinimumOptions", {})),
    "RESHAPE": Case((IMAGE, ints(24, 4)), ((24, 4),), ("ReshapeOptions", {"newShape": [24, 4]})),
    "SQUEEZE": Case((IMAGE,), ((4, 6, 4),), ("SqueezeOptions", {"squeezeDims": [0]})),
    "EXPAND_DIMS": Case((IMAGE, ints(0)), ((1, 1, 4, 6, 4),), ("ExpandDimsOptions", {})),
    "TRANSPOSE": Case((IMAGE, ints(0, 2, 1, 3)), ((1, 6, 4, 4),), ("TransposeOptions", {})),
    "SLICE": Case((IMAGE, ints(0, 1, 2, 0), ints(1, 2, 3, 4)), ((1, 2, 3, 4),), ("SliceOptions", {})),
    "STRIDED_SLICE": Case(
        (IMAGE, ints(0, 1, 0, 0), ints(1, 4, 6, 4), ints(1, 2, 3, 1)), ((1, 2, 2, 4),), ("StridedSliceOptions", SLICES)
    ),
    "SPLIT": Case((ints(3), IMAGE), ((1, 4, 6, 2), (1, 4, 6, 2)), ("SplitOptions", {"numSplits": 2})),
    "UNPACK": Case((IMAGE,), ((1, 4, 4),) * 6, ("UnpackOptions", {"num": 6, "axis": 2})),
    "GATHER": Case((IMAGE, ints(2, 0, 3)), ((1, 3, 6, 4),), ("GatherOptions", {"axis": 1})),
    "PAD": Case((IMAGE, ints([0, 0], [1, 0], [0, 2], [0, 0])), ((1, 5, 8, 4),), ("PadOptions", {})),
    "MAX_POOL_2D": Case((IMAGE,), ONE, ("Pool2DOptions", POOL)),
    "AVERAGE_POOL_2D": Case((IMAGE,), ONE, ("Pool2DOptions", POOL)),
    "RESIZE_BILINEAR": Case((IMAGE, ints(8, 12)), ((1, 8, 12, 4),), ("ResizeBilinearOptions", {})),
    "RESIZE_NEAREST_NEIGHBOR": Case((IMAGE, ints(8, 12)), ((1, 8, 12, 4),), ("ResizeNearestNeighborOptions", {})),
    "REVERSE_V2": Case((IMAGE, ints(2)), ONE, ("ReverseV2Options", {})),
    "SPACE_TO_DEPTH": Case((IMAGE,), ((1, 2, 3, 16),), ("SpaceToDepthOptions", {"blockSize": 2})),
    "DEPTH_TO_SPACE": Case((IMAGE,), ((1, 8, 12, 1),), ("DepthToSpaceOptions", {"blockSize": 2})),
    "SPACE_TO_BATCH_ND": Case(
        (IMAGE, ints(2, 2), ints([0, 0], [0, 0])), ((4, 2, 3, 4),), ("SpaceToBatchNDOptions", {})
    ),
    "BATCH_TO_SPACE_ND": Case(((4, 2, 3, 4), ints(2, 2), ints([0, 0], [0, 0])), ONE, ("BatchToSpaceNDOptions", {})),
    "LOGISTIC": Case((IMAGE,), ONE),
    "TANH": Case((IMAGE,), ONE),
    "SOFTMAX": Case((IMAGE,), ONE, ("SoftmaxOptions", {"beta": 1.0})),
    "L2_NORMALIZATION": Case((IMAGE,), ONE, ("L2NormOptions", {})),
}


def model(name: str, tables: Any = schema) -> bytes:
    case, writer = CASES[name], Model(tables)
    graph = writer.graph()
    given = [graph.input(F32, x) if isinstance(x, tuple) else graph.constant(x) for x in case.given]
    results = [graph.tensor(F32, shape) for shape in case.results]
    graph.operator(name, given, results, case.options)
    graph.outputs(*results)
    return writer.done()


def some(content: bytes, count: int = 3) -> list[list[Array]]:
    graph = onert.load(content).model.primary
    return [
        [real([d or 1 for d in graph.type(i).shape], seed + at) for at, i in enumerate(graph.inputs)]
        for seed in range(count)
    ]


def run(content: bytes, inputs: Sequence[Array]) -> list[Array]:
    return list(onert.Execution(onert.compile(onert.load(content))).run(inputs).values())


def converted(content: bytes, kind: str, runs: Sequence[Sequence[Array]]) -> bytes:
    return quantized(content, kind, ranges(onert.load(content), runs)[0])


def elements(content: bytes) -> list[str]:
    """The element type of each operator's first result."""
    graph = onert.load(content).model.primary
    return [graph.type(o.outputs[0]).dtype.name.lower() for o in graph.operations]


def test_every_operator_with_an_integer_form_is_covered() -> None:
    known = {*LAYERS, *OWN_RANGE, *JOINS, *MOVES}
    assert set(CASES) == known.union(*(form.fixed for form in SCHEMES.values()))
    assert set().union(*(scheme.unsupported for scheme in SCHEMES.values())) <= known


@pytest.mark.parametrize(("name", "kind"), list(itertools.product(CASES, ("uint8", "int16"))))
def test_an_integer_operator_matches_litert_and_is_close_to_the_float_operator(name: str, kind: str) -> None:
    content = model(name)
    if name in SCHEMES[kind].unsupported or (kind == "int16" and name == "L2_NORMALIZATION"):
        with pytest.raises(ModelError, match="no operator can be computed in int16"):
            converted(content, kind, some(content))
        return
    found = converted(content, kind, some(content))
    count = sum(isinstance(x, tuple) for x in CASES[name].given)
    results = len(CASES[name].results)
    assert elements(found) == [kind] * count + [kind] + ["float32"] * results
    peer = LiteRt(found, "BUILTIN_REF")
    for given in some(content):
        expected, mine, other = run(content, given), run(found, given), peer(*given)
        for want, have, theirs in zip(expected, mine, other, strict=True):
            step = max(float(np.ptp(want)), 1.0) / (255 if kind == "uint8" else 32767)
            np.testing.assert_allclose(have, want, rtol=0, atol=step * (10 if kind == "uint8" else 200))
            np.testing.assert_allclose(have, theirs, rtol=0, atol=1.01 * step)


def chain(tables: Any = schema, uneven: bool = False) -> bytes:
    """A layer, an operator without an integer form, and a concatenation of both with a constant."""
    writer = Model(tables)
    graph = writer.graph()
    x = graph.input(F32, (2, 12))
    weights = real((5, 12))
    weights[0] *= 50 if uneven else 1
    first, second, both, end = (graph.tensor(F32, s) for s in ((2, 5), (2, 5), (2, 11), (2, 11)))
    graph.operator("FULLY_CONNECTED", [x, graph.constant(weights), -1], [first], ("FullyConnectedOptions", {}))
    graph.operator("SIN", [first], [second])
    operands = [first, second, graph.constant(9 * real((2, 1)))]
    graph.operator("CONCATENATION", operands, [both], ("ConcatenationOptions", {"axis": 1}))
    graph.operator("LOGISTIC", [both], [end])
    graph.outputs(end)
    return writer.done()


@pytest.mark.parametrize("tables", [schema, CIRCLE], ids=["tflite", "circle"])
def test_an_operator_without_an_integer_form_stays_in_float_between_integer_ones(tables: Any) -> None:
    content = chain(tables)
    found = converted(content, "uint8", some(content))
    kinds = ["uint8", "uint8", "float32", "float32", "uint8", "uint8", "uint8", "uint8", "float32"]
    assert elements(found) == kinds  # quantize, layer, dequantize, sine, two requantized operands, join, logistic
    assert found[4:8] == content[4:8]
    for given in some(content):
        assert np.abs(run(found, given)[0] - run(content, given)[0]).max() < 0.03


def test_layers_with_very_different_channels_get_per_channel_scales() -> None:
    assert [is_uneven(np.float32([[1, 1], [1, 0], [c, 1], [0, 0]]), 0) for c in (7, 9)] == [False, True]
    for uneven, kind in ((False, "uint8"), (True, "int8")):
        content = chain(uneven=uneven)
        found = converted(content, "uint8", some(content))
        graph = onert.load(found).model.primary
        (layer,) = (o for o in graph.operations if len(o.used) == 2 and graph.type(o.used[1]).shape == (5, 12))
        quantization = graph.type(layer.used[1]).quantization
        assert quantization is not None
        assert len(quantization.scales) == (5 if uneven else 1)
        assert elements(found)[1] == kind


def test_float16_constants_count_as_constants() -> None:
    writer = Model()
    graph = writer.graph()
    x, weights, y = graph.input(F32, (2, 12)), graph.tensor(F32, (5, 12)), graph.tensor(F32, (2, 5))
    graph.operator("DEQUANTIZE", [graph.constant(real((5, 12)).astype(np.float16))], [weights])
    graph.operator("FULLY_CONNECTED", [x, weights, -1], [y], ("FullyConnectedOptions", {}))
    graph.outputs(y)
    found = converted(writer.done(), "uint8", some(writer.done()))
    assert elements(found) == ["uint8", "uint8", "float32"]


def test_a_tensor_with_several_readers_is_quantised_once() -> None:
    writer = Model()
    graph = writer.graph()
    x = graph.input(F32, (2, 12))
    for seed in range(2):
        y = graph.tensor(F32, (2, 5))
        operands = [x, graph.constant(real((5, 12), seed)), -1]
        graph.operator("FULLY_CONNECTED", operands, [y], ("FullyConnectedOptions", {}))
        graph.outputs(y)
    content = writer.done()
    assert elements(converted(content, "uint8", some(content))) == ["uint8"] * 3 + ["float32"] * 2


@pytest.mark.parametrize("kind", ["uint8", "int16"])
def test_weights_and_biases_of_any_magnitude_are_representable(kind: str) -> None:
    """All-zero channels, and a bias far larger than its weights' products."""
    writer = Model()
    graph = writer.graph()
    x, y = graph.input(F32, (2, 12)), graph.tensor(F32, (2, 5))
    weights = real((5, 12)) * np.float32([[0], [1e-30], [1e-7], [1e-4], [1]])
    operands = [x, graph.constant(weights), graph.constant(np.float32([0, 0, 4, 1, -3]))]
    graph.operator("FULLY_CONNECTED", operands, [y], ("FullyConnectedOptions", {}))
    graph.outputs(y)
    content = writer.done()
    found = converted(content, kind, some(content))
    for given in some(content):
        np.testing.assert_allclose(run(found, given)[0], run(content, given)[0], rtol=0, atol=0.1)


def test_an_operand_of_unknown_range_stays_in_float() -> None:
    content = chain()
    known, _ = ranges(onert.load(content), some(content))
    with pytest.raises(ModelError, match="no operator can be computed in uint8"):
        quantized(content, "uint8", {})
    for gone in known:
        found = quantized(content, "uint8", {at: each for at, each in known.items() if at != gone})
        assert "uint8" in elements(found)
    with pytest.raises(ModelError):
        quantized(content[:100], "uint8", known)


MODELS = ("mediapipe-git/face_landmark.tflite", "tflite-support/mobilenet_v1_0.25_224_1_default_1.tflite")


def pictures(width: int, height: int) -> list[list[Array]]:
    image = pytest.importorskip("PIL.Image")
    paths = sorted((SHARED / "data" / "coral").glob("*.bmp"))[:4]
    planes = [np.asarray(image.open(p).convert("RGB").resize((width, height)), np.float32) for p in paths]
    return [[plane[None] / 127.5 - 1] for plane in planes]


@needs_shared
@pytest.mark.parametrize("path", MODELS)
def test_a_whole_int16_model_is_as_accurate_as_with_8_bit_weights_only(path: str) -> None:
    """16-bit activations cost hardly any accuracy: what is lost is lost with the weights."""
    content = (SHARED / "models" / path).read_bytes()
    graph = onert.load(content).model.primary
    (_, height, width, _) = graph.type(graph.inputs[0]).shape
    given = pictures(int(width or 1), int(height or 1))
    known, count = ranges(onert.load(content), given)
    assert count == len(given)
    rounded, found = with_weights(content, 8), quantized(content, "int16", known)
    lost = {name: [] for name in ("weights", "everything")}  # type: dict[str, list[float]]
    for each in given:
        want = run(content, each)[0]
        for name, other in (("weights", rounded), ("everything", found)):
            lost[name].append(float(np.abs(run(other, each)[0] - want).mean() / np.abs(want).mean()))
    assert np.mean(lost["everything"]) < 1.5 * np.mean(lost["weights"])
