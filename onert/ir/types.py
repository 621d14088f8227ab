"""What is known of a tensor before it has a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from onert.ir.process.cached import cached
from onert.ir.process.imports import module

from . import shape as shapes
from .dtype import Array, DType
from .errors import RuleError
from .quant import Quantization
from .shape import Shape
from .value import Value


class Constant:
    """The elements of a constant, decoded when first asked for.

    `source` gives the array: a view of a file's bytes costs nothing until it is read, a packed or sparse
    tensor is unpacked once. The array is read-only. Two constants are equal when their arrays are. `stored` are the
    bytes that the elements are decoded from, where these are a file's.
    """

    def __init__(self, source: Array | Callable[[], Array], stored: bytes | memoryview | None = None) -> None:
        self._source = source
        self._stored = stored

    @property
    def place(self) -> tuple[int, int] | None:
        """The addresses where the stored bytes begin and end; None where nobody knows before the elements are decoded.

        Constants of a file may share them.
        """
        if not callable(self._source):
            held = self._source
        elif self._stored is not None:
            held = np.frombuffer(self._stored, np.uint8)
        else:
            return None
        start: int = held.__array_interface__["data"][0]
        return start, start + held.nbytes

    @cached
    def array(self) -> Array:
        array = self._source() if callable(self._source) else self._source
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    @property
    def is_symbolic(self) -> bool:
        """Whether elements are numbers of a trace: of the shape of a tensor with symbolic dimensions."""
        held = self._source
        if callable(held) or held.dtype != object:
            return False
        found: bool = module("onert.ir.symbolic.trace").has_symbols(held)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = self.array, other.array
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            return False
        if mine.dtype == object:
            return bool(np.array_equal(mine, theirs))
        return mine.tobytes() == theirs.tobytes()  # bit for bit: NaN equals itself, -0.0 differs from 0.0

    def __hash__(self) -> int:
        return hash((self.array.dtype.str, self.array.shape))

    def __repr__(self) -> str:
        return f"Constant({self.array.dtype}{list(self.array.shape)})"


@frozen
class TensorType(Value):
    """Element type, shape, quantisation, and - where it is a constant - the elements.

    `ranked` is False while even the number of dimensions is unknown; `shape` is then empty and means nothing.
    `data` takes no part in equality.
    """

    dtype: DType
    shape: Shape = ()
    quantization: Quantization | None = None
    ranked: bool = True
    data: Constant | None = field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.dtype.text}{shapes.text(self.shape) if self.ranked else '[*]'}"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def value(self) -> Array | None:
        """The elements, where they are known before the run."""
        return None if self.data is None else self.data.array

    @property
    def is_static(self) -> bool:
        return self.ranked and shapes.is_static(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in memory; RuleError unless the shape is static."""
        total = 1
        for d in shapes.static(self.shape):
            total *= d
        return total * self.dtype.itemsize

    def with_shape(self, shape: Shape) -> TensorType:
        """The same element type and quantisation in another shape, the elements unknown."""
        return evolve(self, shape=shape, ranked=True, data=None)

    def with_data(self, data: Constant | None) -> TensorType:
        """The same type, its elements known or not."""
        if data is self.data:
            return self
        return TensorType(self.dtype, self.shape, self.quantization, self.ranked, data)

    def plain(self, dtype: DType | None = None, shape: Shape | None = None) -> TensorType:
        """A type without quantisation or elements; `dtype` and `shape` default to this one's."""
        return TensorType(self.dtype if dtype is None else dtype, self.shape if shape is None else shape)

    def result(self, shape: Shape) -> TensorType:
        """What an operation that computes in this element type gives: no quantisation yet, no elements."""
        return TensorType(self.dtype, shape)

    @property
    def scale(self) -> float:
        """The per-tensor scale; RuleError if there is none."""
        return self._quantized().scale

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point; RuleError if there is none."""
        return self._quantized().zero_point

    @property
    def cleared(self) -> int:
        """What every element of a variable is before anything is written to it: 0, in int8 the zero point.

        Source: TFLite's Subgraph::ResetVariableTensors, which looks at no other quantised type.
        """
        q = self.quantization
        if q is None or self.dtype is not DType.INT8:
            return 0
        low, high = self.dtype.limits
        return min(max(q.zero_points[0], low), high)  # a file may name a zero point that no element can be

    def _quantized(self) -> Quantization:
        if self.quantization is None:
            raise RuleError(f"a tensor of {self} has no quantisation, expected scale and zero point")
        return self.quantization


def type_of(array: Array, **more: Any) -> TensorType:
    """The type of a NumPy array, its elements known."""
    return TensorType(DType.from_numpy(array.dtype), array.shape, data=Constant(array), **more)


def unranked(dtype: DType, quantization: Quantization | None = None) -> TensorType:
    """A tensor of which not even the number of dimensions is known."""
    return TensorType(dtype, (), quantization, ranked=False)


@frozen
class CallTypes(Value):
    """The types on both sides of one operation."""

    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]

    def input(self, index: int) -> TensorType:
        """Input `index`, which must be there."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise RuleError(f"input {index} is absent, expected a tensor")
        return found

    @property
    def output(self) -> TensorType:
        """The only output, or the first of several."""
        return self.outputs[0]
