"""Random models: operators drawn over the tensors so far, determined by the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import field, frozen
from model_writer import Graph, Model

from onert.ir import Array, DType, Quantization

Shape = tuple[int, ...]


@frozen
class Drawn:
    """A tensor of the graph: its number, its shape `[1, height, width, channels]`, and its quantisation."""

    number: int
    shape: Shape
    quantization: Quantization | None = None


@frozen(eq=False)
class Draft:
    """A graph under construction: of floats, or of int8 if `stored`."""

    graph: Graph
    rng: np.random.Generator
    stored: bool
    made: list[Drawn] = field(factory=list)

    @property
    def dtype(self) -> DType:
        return DType.INT8 if self.stored else DType.FLOAT32

    def any(self) -> Drawn:
        """A random tensor; later ones are more likely, so that graphs grow deep."""
        return self.made[int(len(self.made) * self.rng.random() ** 0.5)]

    def scale(self) -> Quantization | None:
        if not self.stored:
            return None
        return Quantization((float(np.float32(self.rng.uniform(0.01, 0.1))),), (int(self.rng.integers(-100, 100)),))

    def result(self, shape: Sequence[int], quantization: Quantization | None) -> Drawn:
        shape = tuple(int(d) for d in shape)
        self.made.append(Drawn(self.graph.tensor(self.dtype, shape, None, quantization), shape, quantization))
        return self.made[-1]

    def filters(self, shape: Shape, outputs: int, axis: int, inputs: Quantization | None) -> tuple[int, int]:
        """Weights and a bias for a number of outputs."""
        if not self.stored or inputs is None:
            scale = 1 / np.sqrt(np.prod(shape) / outputs)
            weights = self.rng.normal(size=shape, scale=scale).astype(np.float32)
            bias = self.rng.normal(size=outputs).astype(np.float32)
            return self.graph.constant(weights), self.graph.constant(bias)
        scales = self.rng.uniform(0.002, 0.02, outputs).astype(np.float32)
        quantization = Quantization(tuple(map(float, scales)), (0,) * outputs, axis)
        stored = self.rng.integers(-127, 128, shape).astype(np.int8)
        together = Quantization(tuple(float(np.float32(s * inputs.scale)) for s in scales), (0,) * outputs, 0)
        bias = self.rng.integers(-2000, 2000, outputs).astype(np.int32)
        return (
            self.graph.tensor(DType.INT8, shape, stored, quantization),
            self.graph.tensor(DType.INT32, (outputs,), bias, together),
        )

    def integers(self, *values: int | Sequence[int]) -> int:
        return self.graph.constant(np.array(values, np.int32))


Draw = Callable[[Draft], None]
_SAME = 0


def convolve(d: Draft) -> None:
    x = d.any()
    window, stride, outputs = int(d.rng.choice((1, 3, 5))), int(d.rng.choice((1, 1, 2))), int(d.rng.integers(1, 24))
    weight, bias = d.filters((outputs, window, window, x.shape[3]), outputs, 0, x.quantization)
    y = d.result((1, -(-x.shape[1] // stride), -(-x.shape[2] // stride), outputs), d.scale())
    options = {
        "padding": _SAME,
        "strideH": stride,
        "strideW": stride,
        "fusedActivationFunction": int(d.rng.choice((0, 1, 3))),
    }
    d.graph.operator("CONV_2D", [x.number, weight, bias], [y.number], ("Conv2DOptions", options))


def depthwise(d: Draft) -> None:
    x = d.any()
    window, stride, times = int(d.rng.choice((2, 3, 5))), int(d.rng.choice((1, 2))), int(d.rng.choice((1, 1, 2)))
    outputs = x.shape[3] * times
    weight, bias = d.filters((1, window, window, outputs), outputs, 3, x.quantization)
    y = d.result((1, -(-x.shape[1] // stride), -(-x.shape[2] // stride), outputs), d.scale())
    options = {"padding": _SAME, "strideH": stride, "strideW": stride, "depthMultiplier": times}
    d.graph.operator("DEPTHWISE_CONV_2D", [x.number, weight, bias], [y.number], ("DepthwiseConv2DOptions", options))


def connect(d: Draft) -> None:
    x = d.any()
    outputs = int(d.rng.integers(1, 40))
    weight, bias = d.filters((outputs, x.shape[3]), outputs, 0, x.quantization)
    y = d.result((*x.shape[:3], outputs), d.scale())
    options = {"keepNumDims": True, "fusedActivationFunction": int(d.rng.choice((0, 1)))}
    d.graph.operator("FULLY_CONNECTED", [x.number, weight, bias], [y.number], ("FullyConnectedOptions", options))


def pool(d: Draft) -> None:
    x = d.any()
    window, stride = int(d.rng.choice((2, 3))), int(d.rng.choice((1, 2)))
    y = d.result((1, -(-x.shape[1] // stride), -(-x.shape[2] // stride), x.shape[3]), x.quantization)
    sizes = {"padding": _SAME, "strideH": stride, "strideW": stride, "filterHeight": window, "filterWidth": window}
    code = str(d.rng.choice(("MAX_POOL_2D", "AVERAGE_POOL_2D")))
    d.graph.operator(code, [x.number], [y.number], ("Pool2DOptions", sizes))


_PAIRS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}


def combine(d: Draft) -> None:
    """Combine two tensors of one shape, or a tensor and a constant for each channel."""
    x = d.any()
    others = [m for m in d.made if m.shape == x.shape]
    other = others[int(d.rng.integers(len(others)))]
    code = str(d.rng.choice(tuple(_PAIRS)))
    if d.rng.random() < 0.3:
        channel = (x.shape[3],)
        quantization = d.scale()
        elements: Array = d.rng.normal(size=channel).astype(np.float32)
        if d.stored:
            elements = d.rng.integers(-128, 128, channel).astype(np.int8)
        second = d.graph.tensor(d.dtype, channel, elements, quantization)
    else:
        second = other.number
    y = d.result(x.shape, d.scale())
    options = {"fusedActivationFunction": int(d.rng.choice((0, 1, 3)))}
    d.graph.operator(code, [x.number, second], [y.number], (_PAIRS[code], options))


def extreme(d: Draft) -> None:
    x = d.any()
    same = [m for m in d.made if m.shape == x.shape and m.quantization == x.quantization]
    other = same[int(d.rng.integers(len(same)))]
    y = d.result(x.shape, x.quantization)
    d.graph.operator(str(d.rng.choice(("MAXIMUM", "MINIMUM"))), [x.number, other.number], [y.number])


def function(d: Draft) -> None:
    x = d.any()
    code = str(d.rng.choice(("LOGISTIC", "TANH", "RELU", "RELU6", "HARD_SWISH", "LEAKY_RELU")))
    fixed = {"LOGISTIC": Quantization((1 / 256,), (-128,)), "TANH": Quantization((1 / 128,), (0,))}
    y = d.result(x.shape, fixed.get(code, d.scale()) if d.stored else None)
    options = ("LeakyReluOptions", {"alpha": 0.25}) if code == "LEAKY_RELU" else None
    d.graph.operator(code, [x.number], [y.number], options)


def join(d: Draft) -> None:
    x = d.any()
    fitting = [m for m in d.made if m.shape[:3] == x.shape[:3] and m.quantization == x.quantization]
    parts = [x, *(fitting[int(d.rng.integers(len(fitting)))] for _ in range(int(d.rng.integers(1, 3))))]
    if sum(p.shape[3] for p in parts) > 96:
        return
    y = d.result((*x.shape[:3], sum(p.shape[3] for p in parts)), x.quantization)
    d.graph.operator("CONCATENATION", [p.number for p in parts], [y.number], ("ConcatenationOptions", {"axis": 3}))


def pad(d: Draft) -> None:
    x = d.any()
    margins = [[0, 0], *d.rng.integers(0, 3, (2, 2)).tolist(), [0, 0]]
    shape = [n + a + b for n, (a, b) in zip(x.shape, margins, strict=True)]
    if shape[1] * shape[2] > 600:
        return
    y = d.result(shape, x.quantization)
    d.graph.operator("PAD", [x.number, d.integers(*margins)], [y.number], ("PadOptions", {}))


def cut(d: Draft) -> None:
    x = d.any()
    begin = [0, *(int(d.rng.integers(0, max(1, n // 2))) for n in x.shape[1:])]
    end = [1, *(int(d.rng.integers(b + 1, n + 1)) for b, n in zip(begin[1:], x.shape[1:], strict=True))]
    strides = [1, *(int(d.rng.choice((1, 1, 2))) for _ in range(3))]
    shape = [-(-(e - b) // s) for b, e, s in zip(begin, end, strides, strict=True)]
    y = d.result(shape, x.quantization)
    operands = [x.number, *(d.integers(*v) for v in (begin, end, strides))]
    d.graph.operator("STRIDED_SLICE", operands, [y.number], ("StridedSliceOptions", {}))


def turn(d: Draft) -> None:
    x = d.any()
    order = [0, *(1 + int(i) for i in d.rng.permutation(3))]
    shape = [x.shape[i] for i in order]
    if shape[3] > 96:
        return
    y = d.result(shape, x.quantization)
    d.graph.operator("TRANSPOSE", [x.number, d.integers(*order)], [y.number], ("TransposeOptions", {}))


def average(d: Draft) -> None:
    x = d.any()
    y = d.result((1, 1, 1, x.shape[3]), d.scale() if d.stored else None)
    d.graph.operator("MEAN", [x.number, d.integers(1, 2)], [y.number], ("ReducerOptions", {"keepDims": True}))


def soften(d: Draft) -> None:
    x = d.any()
    y = d.result(x.shape, Quantization((1 / 256,), (-128,)) if d.stored else None)
    d.graph.operator("SOFTMAX", [x.number], [y.number], ("SoftmaxOptions", {"beta": 1.0}))


def resize(d: Draft) -> None:
    x = d.any()
    size = [int(d.rng.integers(1, 20)) for _ in range(2)]
    y = d.result((1, *size, x.shape[3]), x.quantization)
    kind = "Bilinear" if d.rng.random() < 0.5 else "NearestNeighbor"
    code = "RESIZE_BILINEAR" if kind == "Bilinear" else "RESIZE_NEAREST_NEIGHBOR"
    centers = {"halfPixelCenters": bool(d.rng.random() < 0.5)}
    d.graph.operator(code, [x.number, d.integers(*size)], [y.number], (f"Resize{kind}Options", centers))


DRAWS: tuple[Draw, ...] = (
    convolve,
    depthwise,
    connect,
    pool,
    combine,
    combine,
    extreme,
    function,
    function,
    join,
    pad,
    cut,
    turn,
    average,
    soften,
    resize,
)


def random_model(seed: int, *, stored: bool) -> bytes:
    """A model of 3 to 15 draws on one or two inputs; unread tensors are outputs, and some others too."""
    rng = np.random.default_rng(seed)
    model = Model()
    draft = Draft(model.graph(), rng, stored)
    for _ in range(int(rng.integers(1, 3))):
        shape = (1, int(rng.integers(3, 17)), int(rng.integers(3, 17)), int(rng.integers(1, 20)))
        quantization = draft.scale()
        draft.made.append(Drawn(draft.graph.input(draft.dtype, shape, quantization), shape, quantization))
    for _ in range(int(rng.integers(3, 16))):
        DRAWS[int(rng.integers(len(DRAWS)))](draft)
    read = {int(i) for operator in draft.graph.table.operators for i in operator.inputs}
    inputs = set(draft.graph.table.inputs)
    made = [m.number for m in draft.made if m.number not in inputs]
    if not made:
        function(draft)
        made = [draft.made[-1].number]
    draft.graph.outputs(*(n for n in made if n not in read or rng.random() < 0.15))
    return model.done()
