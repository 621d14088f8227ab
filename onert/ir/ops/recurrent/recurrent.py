"""What recurrent layers share: products of vectors and weights, and the layout of sequences.

Weights are floats, or integers, for which each vector is quantised separately at run time (dynamic range).
Source: TFLite's kernels/internal/reference/portable_tensor_utils.cc (MatrixBatchVectorMultiplyAccumulate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import gates, stepped
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.dynamic_range import QuantizedRows, filter_values, quantize_rows
from onert.ir.ops.arithmetic.rescale import exact_type
from onert.ir.quant import Quantization
from onert.ir.shape import Dim, Shape, compatible, num_elements, text
from onert.ir.types import CallTypes, TensorType
from onert.ir.value import Value

from .recurrent_functions import APPROXIMATE, EXACT, Functions

EIGHT_BITS = frozenset({DType.INT8, DType.UINT8})


@frozen
class Recurrent(Op):
    """A layer that processes a sequence step by step."""

    def flops(self, types: CallTypes) -> int:
        return gates(types)

    def rounds(self, types: CallTypes) -> int:
        return stepped(types)


@frozen(eq=False)
class Rows:
    """Vectors as rows; also quantised if the weights are integers."""

    real: Array
    quantized: QuantizedRows | None


@frozen
class Quantizer(Value):
    """Creates rows for one kind of weights; `asymmetric` matters only if these are integers."""

    integers: bool = False
    asymmetric: bool = False

    @property
    def functions(self) -> Functions:
        """The activation functions of layers with such weights."""
        return APPROXIMATE if self.integers else EXACT

    def rows(self, x: Array) -> Rows:
        """The rows of `x`, which may have any shape with the vectors along its last axis."""
        flat = x.reshape(-1, x.shape[-1]) if x.size else np.zeros((int(np.prod(x.shape[:-1])), x.shape[-1]), x.dtype)
        return Rows(flat, quantize_rows(flat, asymmetric=self.asymmetric) if self.integers else None)


@frozen(eq=False)
class Weights:
    """A matrix [outputs, inputs], or the diagonal of one. Only an integer matrix has a `scale`."""

    array: Array
    scale: np.float32 | None = None

    def times(self, rows: Rows) -> Array:
        """The product with every row, [rows, outputs], in float32."""
        out: Array
        if self.array.ndim == 1:
            out = rows.real * self.array
            return out
        if self.scale is None:
            out = rows.real @ self.array.T
            return out
        quantized = rows.quantized
        assert quantized is not None
        sums = quantized.centred.astype(self.array.dtype) @ self.array.T
        out = sums.astype(np.float32) * (quantized.scales * self.scale)[:, None]
        return out


def weights(array: Array, type_: TensorType | None = None) -> Weights:
    """Weights from their stored elements; 8-bit elements are interpreted as signed even if the type is uint8."""
    if type_ is None or type_.dtype not in EIGHT_BITS:
        return Weights(array)
    # Sums of products are exact: a centred element is at most 255, a weight at most 128.
    wide = exact_type(255.0 * 128 * max(array.shape[-1], 1))
    return Weights(filter_values(array).astype(wide), np.float32(type_.scale))


def real(array: Array, type_: TensorType | None = None) -> Array:
    """Element-wise weights as floats: integers times their scale, with no zero point."""
    if type_ is None or type_.dtype not in EIGHT_BITS:
        return array
    out: Array = np.float32(type_.scale) * filter_values(array).astype(np.float32)
    return out


# ---- rules


def require_shape(operand: TensorType | None, shape: Shape, name: str) -> None:
    """Raises RuleError unless the operand is absent or may have this shape."""
    if operand is not None:
        require(compatible(operand.shape, shape), f"{name} has shape {text(operand.shape)}, expected {text(shape)}")


def require_auxiliary(aux: TensorType | None, x: TensorType, *, linked: bool) -> None:
    """Raises RuleError unless a second input fits `x`; it may be absent unless weights are `linked` with it."""
    require(aux is not None or not linked, "there are auxiliary weights, but no auxiliary input")
    if aux is not None:
        require_dtype(aux, DType.FLOAT32, "auxiliary input")
        require(aux.rank == 3, f"auxiliary input has rank {aux.rank}, expected 3")
        require_shape(aux, (*x.shape[:2], aux.shape[2]), "auxiliary input")


def require_state(state: TensorType, shape: tuple[Dim, Dim], name: str) -> None:
    """Raises RuleError unless a state has as many elements as `shape`; it may be flat."""
    if state.rank == 2:
        require_shape(state, shape, name)
        return
    wanted, found = num_elements(shape), num_elements(state.shape)
    require(
        None in (wanted, found) or wanted == found,
        f"{name} has shape {text(state.shape)}, expected the elements of {text(shape)}",
    )


def require_dtype(operand: TensorType | None, dtype: DType, name: str) -> None:
    """Raises RuleError unless the operand is absent or has this element type."""
    if operand is not None:
        require(operand.dtype is dtype, f"{name} holds {operand.dtype.text}, expected {dtype.text}")


def require_per_tensor(operand: TensorType, name: str) -> Quantization:
    """The quantisation of an integer operand. Raises RuleError unless it is per tensor."""
    found = operand.quantization
    require(found is not None, f"{name} has no quantisation, expected scale and zero point")
    assert found is not None
    require(found.per_tensor, f"{name} is quantised per axis {found.axis}, expected per tensor")
    return found


def require_weights(operand: TensorType | None, like: TensorType, name: str) -> None:
    """Raises RuleError unless weights are absent or of the element type of `like`, integers with a scale per tensor."""
    if operand is not None:
        require_dtype(operand, like.dtype, name)
        if operand.dtype.is_integer:
            require_per_tensor(operand, name)


def require_kind(weight: TensorType) -> None:
    """Raises RuleError unless a float layer can have such weights."""
    allowed = weight.dtype is DType.FLOAT32 or weight.dtype in EIGHT_BITS
    require(allowed, f"weights hold {weight.dtype.text}, expected f32, i8 or u8")


# ---- sequences


@frozen
class Layout(Value):
    """The layout of a sequence: [batch, time, size], with `time_major` [time, batch, size]; a matrix is one step."""

    time_major: bool

    def ends(self, x: TensorType) -> tuple[Dim, Dim]:
        """The numbers of steps and of batch items of a sequence; a matrix is one step."""
        require(x.rank in (2, 3), f"x has rank {x.rank}, expected 2 or 3")
        if x.rank == 2:
            return 1, x.shape[0]
        return (x.shape[0], x.shape[1]) if self.time_major else (x.shape[1], x.shape[0])

    def result(self, x: TensorType, size: Dim) -> Shape:
        return (*x.shape[:-1], size)

    def steps(self, x: Array) -> Array:
        """The sequence as [time, batch, size]."""
        if x.ndim == 2:
            one: Array = x[None]
            return one
        return x if self.time_major else x.transpose(1, 0, 2)

    def back(self, y: Array, like: Array) -> Array:
        """[time, batch, size] in the layout of the sequence `like`."""
        if like.ndim == 2:
            one: Array = y[0]
            return one
        return y if self.time_major else np.ascontiguousarray(y.transpose(1, 0, 2))


def scan(
    step: Callable[[int, tuple[Array, ...]], tuple[Array, ...]],
    count: int,
    state: tuple[Array, ...],
    *,
    backward: bool = False,
) -> tuple[Array, tuple[Array, ...]]:
    """Run `step` for steps 0 to `count`, in reverse order with `backward`.

    Returns the first part of the state after each step, [count, ...] in order of time, and the final state.
    """
    first = state[0]
    outputs = np.empty((count, *first.shape), first.dtype)
    for at in reversed(range(count)) if backward else range(count):
        state = step(at, state)
        outputs[at] = state[0]
    return outputs, state


def why_no_layer(types: CallTypes, states: Sequence[int]) -> str | None:
    """Why constants or shapes of a layer rule out a native kernel; None if they do not. `states` are not constant."""
    if any(t is not None and t.value is None for i, t in enumerate(types.inputs) if i not in states):
        return "the weights are not constant"
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return "a tensor has no elements" if any(0 in t.shape for t in present) else None
