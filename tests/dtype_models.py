"""The model of a recipe in an element type, and elements for its operands."""

from __future__ import annotations

import zlib

import numpy as np
from attrs import frozen
from dtype_recipes import Of, Recipe
from model_writer import Model

from onert.ir import Array, DType, Quantization


@frozen
class Kind:
    """An element type as named in the table of probes: `int8q` is int8 with a scale."""

    name: str

    @property
    def dtype(self) -> DType:
        return DType[self.name.removesuffix("q").upper()]

    @property
    def quantized(self) -> bool:
        return self.name.endswith("q")

    def quantization(self, scale: float = 0.05) -> Quantization | None:
        if not self.quantized:
            return None
        zero = {DType.INT8: 3, DType.UINT8: 120, DType.INT16: 0}[self.dtype]
        if self.dtype is DType.INT16:
            scale /= 64
        return Quantization((float(np.float32(scale)),), (zero,))


_RESULTS = {
    ("softmax", "int8q"): (1 / 256, -128),
    ("softmax", "uint8q"): (1 / 256, 0),
    ("softmax", "int16q"): (1 / 32768, 0),
    ("tanh", "int8q"): (1 / 128, 0),
    ("tanh", "uint8q"): (1 / 128, 128),
    ("tanh", "int16q"): (1 / 32768, 0),
    ("log_softmax", "int8q"): (16 / 256, 127),
    ("log_softmax", "uint8q"): (16 / 256, 255),
}


def _elements(kind: Kind, shape: tuple[int, ...], role: str, rng: np.random.Generator) -> Array:
    dtype = kind.dtype
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        low, high = dtype.limits
        ranges = {
            "bias": (-1000, 1000),
            "positive": (0, 20),
            "divisor": (1, 9),
            "power": (0, 3),
            "small": (-3 if low < 0 else 0, 4),
            "mask": (0, 1),
        }
        quantization = kind.quantization()
        if quantization is not None and role in ("positive", "divisor"):
            low = quantization.zero_point + 10
        elif quantization is not None and role == "small":
            reach = 3000 if dtype is DType.INT16 else 40
            low, high = quantization.zero_point - reach, quantization.zero_point + reach
        else:
            low, high = ranges.get(role, (low, high))
        least, most = dtype.limits
        return rng.integers(max(low, least), min(high, most), shape, dtype.numpy, endpoint=True)
    real = rng.normal(size=shape) * 2
    if role in ("positive", "divisor"):
        real = np.abs(real) + 0.25
    if role == "mask":
        real = np.where(real > 0, real, 0)
    return np.asarray(real).astype(dtype.numpy)


def _filter_types(kind: Kind, role: str, outputs: int) -> tuple[Kind, Quantization | None]:
    """The storage types of weights and biases for activations of a kind."""
    if role == "weights":
        if kind.name == "uint8q":
            return kind, Quantization((float(np.float32(0.02)),), (131,))
        return Kind("int8q"), Quantization((float(np.float32(0.02)),), (0,))
    activations = kind.quantization()
    assert activations is not None
    scale = Quantization((float(np.float32(0.02) * np.float32(activations.scale)),), (0,))
    return Kind("int64" if kind.name == "int16q" else "int32"), scale


def build(
    code: str, kind: Kind, recipe: Recipe, result: DType | None = None, draw: int = 0
) -> tuple[bytes, list[Array]]:
    """The model of an operator in an element type (with results of type `result` if given), and its inputs.

    Other values of `draw` give other elements.
    """
    rng = np.random.default_rng((zlib.crc32(f"{code} {kind.name}".encode()), draw))
    model = Model()
    graph = model.graph()
    numbers, given = [], []
    for operand in recipe.operands:
        if operand is None:
            numbers.append(-1)
        elif isinstance(operand, Of):
            stored, quantization = kind, kind.quantization()
            if kind.quantized and operand.role in ("weights", "bias"):
                stored, quantization = _filter_types(kind, operand.role, operand.shape[0])
            elements = _elements(stored, operand.shape, operand.role, rng)
            if operand.role == "alike":
                elements.reshape(-1)[::3] = given[-1].reshape(-1)[::3]
            numbers.append(
                graph.tensor(stored.dtype, operand.shape, elements if operand.constant else None, quantization)
            )
            if not operand.constant:
                graph.table.inputs.append(numbers[-1])
                given.append(elements)
        else:
            numbers.append(graph.constant(operand))
    outputs = []
    for shape, dtype in recipe.results:
        found = _RESULTS.get((recipe.ranges, kind.name))
        scale = 0.05 * recipe.growth
        quantization = Quantization((found[0],), (found[1],)) if found is not None else kind.quantization(scale)
        own = dtype or result
        outputs.append(graph.tensor(own or kind.dtype, shape, None, None if own else quantization))
    graph.operator(code, numbers, outputs, recipe.options)
    graph.outputs(*outputs)
    return model.done(), given
