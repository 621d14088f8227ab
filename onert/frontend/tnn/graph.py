"""The graph that layers are translated to, and the state of each blob."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, evolve

from onert.ir import Array, DType, ModelError, Op, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.shape import is_static

from .buffers import Weights
from .structure import MOST

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@define
class Blob:
    """A blob's operands: its real numbers, its stored integers, or both; computed from each other on demand."""

    name: str
    real: int | None = None
    quantized: int | None = None


class Graph:
    """The operations of a model, and its blobs by name."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.blobs: dict[str, Blob] = {}
        self._builder = Builder("main")
        self._places: list[str] = []
        self.place = ""
        """The layer that new operations belong to."""

    def input(self, name: str, type_: TensorType) -> None:
        self.blobs[name] = Blob(name, self._builder.input(type_, name))

    def add_many(self, op: Op, *operands: int | None, quantization: Quantization | None = None) -> tuple[int, ...]:
        results = self._builder.add_many(op, *operands, quantization=(quantization,) * 8)
        self._places.append(self.place)
        return results

    def add(self, op: Op, *operands: int, quantization: Quantization | None = None) -> int:
        return self.add_many(op, *operands, quantization=quantization)[0]

    def move(self, op: Op, x: int, *operands: int) -> int:
        """Add an operation that only moves elements; its result is quantised like `x`."""
        return self.add(op, x, *operands, quantization=self.type(x).quantization)

    def constant(self, array: Array, quantization: Quantization | None = None) -> int:
        return self._builder.constant(array, quantization)

    def integers(self, values: Sequence[int]) -> int:
        wrong = [value for value in values if not -MOST <= value <= MOST]
        if wrong:
            raise ModelError(f"a parameter is {wrong[0]}, expected {-MOST} to {MOST}")
        return self.constant(np.array(values, np.int32))

    def type(self, operand: int) -> TensorType:
        return self._builder.type(operand)

    def shape(self, operand: int, rank: int | None = None) -> tuple[int, ...]:
        """The operand's shape. Raises ModelError if it is not static, or its rank differs from `rank`."""
        type_ = self.type(operand)
        if not (type_.ranked and is_static(type_.shape)):
            raise ModelError(f"its input is {type_}, expected a static shape")
        if rank is not None and type_.rank != rank:
            raise ModelError(f"its input has the shape {list(type_.shape)}, expected {rank} dimensions")
        return tuple(d for d in type_.shape if d is not None)

    def transpose(self, x: int, order: Sequence[int]) -> int:
        return self.move(Transpose(), x, self.integers(order))

    def nhwc(self, x: int) -> int:
        self.shape(x, 4)
        return self.transpose(x, TO_NHWC)

    def nchw(self, x: int) -> int:
        return self.transpose(x, TO_NCHW)

    def binary(self, kind: BinaryKind, x: int, y: int | Array | float) -> int:
        """Add a binary operation on two operands, or on an operand and constants of its element type."""
        if not isinstance(y, int):
            y = self.constant(np.asarray(y, self.type(x).dtype.numpy))
        return self.add(Binary(kind), x, y)

    def clamp(self, kind: BinaryKind, x: int, bound: int) -> int:
        """MAXIMUM or MINIMUM of integers with the same quantisation."""
        return self.move(Binary(kind), x, bound)

    def blob(self, name: str) -> Blob:
        found = self.blobs.get(name)
        if found is None:
            raise ModelError(f"blob '{name}' is not produced by any earlier layer")
        return found

    def real(self, name: str) -> int:
        """A blob's real numbers (or its unquantised integers)."""
        blob = self.blob(name)
        if blob.real is None:
            assert blob.quantized is not None
            scales, _ = self.scales(name)
            x = self.add(Dequantize(), blob.quantized)
            blob.real = x if len(scales) == 1 else self.binary(BinaryKind.MUL, x, self._per_channel(x, scales))
        return blob.real

    def quantized(self, name: str) -> int:
        """A blob's quantised integers."""
        blob = self.blob(name)
        if blob.quantized is None:
            assert blob.real is not None
            if self.type(blob.real).dtype is DType.INT8:
                blob.quantized = self.add(Quantize(DType.INT8), self.real(name), quantization=self.quantization(name))
            else:
                blob.quantized = self._quantize(name, blob.real)
        return blob.quantized

    def set_result(self, name: str, operand: int, *, quantized: bool) -> None:
        """Set a layer's result. If the layer is `quantized`, real numbers are quantised first."""
        if name in self.blobs:
            raise ModelError(f"blob '{name}' is produced twice")
        if self.type(operand).quantization is not None:
            self.blobs[name] = Blob(name, quantized=operand)
        elif quantized and self.type(operand).dtype is DType.FLOAT32:
            self.blobs[name] = Blob(name, quantized=self._quantize(name, operand))
        else:
            self.blobs[name] = Blob(name, real=operand)

    def scales(self, name: str) -> tuple[Array, int]:
        """A blob's scales, one in total or one per channel, and its zero point."""
        parts = self.weights.scale(name)
        if parts is None or "scale" not in parts or not parts["scale"].count:
            raise ModelError(f"blob '{name}' has no scale")
        zeros = parts["zero point"].array() if "zero point" in parts else np.zeros(1, np.int8)
        if len(set(zeros.tolist())) > 1:
            raise ModelError(
                f"blob '{name}' has zero points from {zeros.min()} to {zeros.max()}, expected a single one"
            )
        return parts["scale"].real(), int(zeros[0]) if len(zeros) else 0

    def quantization(self, name: str) -> Quantization:
        """The declared quantisation of a blob. Several scales are applied separately, so the declared scale is 1."""
        scales, zero = self.scales(name)
        return Quantization((float(scales[0]) if len(scales) == 1 else 1.0,), (zero,))

    def _quantize(self, name: str, x: int) -> int:
        scales, _ = self.scales(name)
        if len(scales) > 1:
            x = self.binary(BinaryKind.DIV, x, self._per_channel(x, scales))
        return self.add(Quantize(DType.INT8), x, quantization=self.quantization(name))

    def _per_channel(self, x: int, values: Array) -> Array:
        """One number per channel, reshaped to broadcast against `x`."""
        shape = self.shape(x)
        if len(shape) < 2 or shape[1] != len(values):
            raise ModelError(f"there are {len(values)} scales for {self.type(x)}, expected one, or one per channel")
        return values.reshape(-1, *(1,) * (len(shape) - 2))

    def subgraph(self, outputs: Sequence[str]) -> Subgraph:
        """The complete graph; operations are located at their layers, and operands named after blobs."""
        graph = self._builder.subgraph([self.real(name) for name in outputs])
        names: dict[int, str] = {}
        for name in (*outputs, *self.blobs):
            operand = self.blobs[name].real
            if operand is not None:
                names.setdefault(operand, name)
        operands = tuple(evolve(o, name=o.name or names.get(i, "")) for i, o in enumerate(graph.operands))
        places = (*self._places, *("",) * (len(graph.operations) - len(self._places)))
        operations = tuple(
            evolve(o, location=place or o.location) for o, place in zip(graph.operations, places, strict=True)
        )
        return evolve(graph, operands=operands, operations=operations)
