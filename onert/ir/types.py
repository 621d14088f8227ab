"""What is known about a tensor before it has a buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from onert.ir.process.cached import cached
from onert.ir.process.imports import module

from . import shape as shapes
from .dtype import Array, DType, address
from .errors import RuleError
from .quant import Quantization
from .shape import Shape
from .value import Value


class Constant:
    """The elements of a constant, decoded on first use.

    `source` is the array, or a function that returns it: a view of a file's bytes costs nothing until it is read, and a
    packed or sparse tensor is unpacked once. The array is read-only. Constants are equal if their arrays are. `stored`
    holds the encoded bytes if these belong to a file.
    """

    def __init__(self, source: Array | Callable[[], Array], stored: bytes | memoryview | None = None) -> None:
        self._source = source
        self._stored = stored

    @property
    def place(self) -> tuple[int, int] | None:
        """The start and end addresses of the stored bytes; None if they are unknown until the elements are decoded.

        Constants of a file may share bytes.
        """
        if not callable(self._source):
            held = self._source
        elif self._stored is not None:
            held = np.frombuffer(self._stored, np.uint8)
        else:
            return None
        return address(held), address(held) + held.nbytes

    @cached
    def array(self) -> Array:
        array = self._source() if callable(self._source) else self._source
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    @property
    def is_symbolic(self) -> bool:
        """Whether elements are symbolic: numbers of a trace, derived from a tensor's symbolic dimensions."""
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
    """Element type, shape, quantisation and, for a constant, the elements.

    `ranked` is False if the rank is unknown; `shape` is then empty and has no meaning.
    `data` does not affect equality.
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
        """The elements, if they are known before the run."""
        return None if self.data is None else self.data.array

    @property
    def is_static(self) -> bool:
        return self.ranked and shapes.is_static(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in memory in bytes. Raises RuleError unless the shape is static."""
        total = 1
        for d in shapes.static(self.shape):
            total *= d
        return total * self.dtype.itemsize

    def with_shape(self, shape: Shape) -> TensorType:
        """The same element type and quantisation with another shape and unknown elements."""
        return evolve(self, shape=shape, ranked=True, data=None)

    def with_data(self, data: Constant | None) -> TensorType:
        """The same type with these elements, or with unknown ones."""
        if data is self.data:
            return self
        return TensorType(self.dtype, self.shape, self.quantization, self.ranked, data)

    def plain(self, dtype: DType | None = None, shape: Shape | None = None) -> TensorType:
        """A type without quantisation and elements; `dtype` and `shape` default to this type's."""
        return TensorType(self.dtype if dtype is None else dtype, self.shape if shape is None else shape)

    def result(self, shape: Shape) -> TensorType:
        """The type of a result with this element type: `shape`, no quantisation yet, no elements."""
        return TensorType(self.dtype, shape)

    @property
    def scale(self) -> float:
        """The per-tensor scale. Raises RuleError if there is none."""
        return self._quantized().scale

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point. Raises RuleError if there is none."""
        return self._quantized().zero_point

    @property
    def cleared(self) -> int:
        """The initial stored value of a variable's elements: 0, or the zero point if the type is a quantised int8.

        Source: TFLite's Subgraph::ResetVariableTensors, which treats no other quantised type specially.
        """
        q = self.quantization
        if q is None or self.dtype is not DType.INT8:
            return 0
        low, high = self.dtype.limits
        return min(max(q.zero_points[0], low), high)  # a file may declare a zero point that is out of range

    def _quantized(self) -> Quantization:
        if self.quantization is None:
            raise RuleError(f"a tensor of {self} has no quantisation, expected scale and zero point")
        return self.quantization


def type_of(array: Array, **more: Any) -> TensorType:
    """The type of a NumPy array, with its elements."""
    return TensorType(DType.from_numpy(array.dtype), array.shape, data=Constant(array), **more)


def unranked(dtype: DType, quantization: Quantization | None = None) -> TensorType:
    """The type of a tensor of unknown rank."""
    return TensorType(dtype, (), quantization, ranked=False)


@frozen
class CallTypes(Value):
    """The types of an operation's operands and results."""

    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]

    def input(self, index: int) -> TensorType:
        """The type of input `index`. Raises RuleError if it is absent."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise RuleError(f"input {index} is absent, expected a tensor")
        return found

    @property
    def output(self) -> TensorType:
        """The first result, which is the only one of most operations."""
        return self.outputs[0]
