"""Recognise floats that arithmetic dequantises from bytes: (bytes - zero point) * scale."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.compiler.rewrite.edit import definer
from onert.ir import Array, DType, Operation, Quantization, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.value import Value

BYTES = (DType.INT8, DType.UINT8)


@frozen
class Stored(Value):
    """Floats equal to `scale * (operand - zero)`; `steps` are the operations that compute this, last first."""

    operand: int
    scale: float
    zero: int
    steps: tuple[int, ...]

    @property
    def quantization(self) -> Quantization:
        """The quantisation parameters for the type of these integers."""
        return Quantization((self.scale,), (self.zero,))


def number(subgraph: Subgraph, operand: int | None) -> float | None:
    """The finite value of a constant with one element; None for anything else."""
    value = None if operand is None else subgraph.operands[operand].known.value
    if value is None or value.size != 1 or value.dtype.kind not in "iuf":
        return None
    found = float(value.reshape(()))
    return found if np.isfinite(found) else None


def plain_binary(operation: Operation | None, kind: BinaryKind) -> bool:
    """Whether an operation is this binary function without an activation."""
    return operation is not None and operation.op in (Binary(kind), Binary(kind, Activation.NONE))


def dequantized(subgraph: Subgraph, operand: int | None) -> Stored | None:
    """The bytes that float32 numbers are dequantised from with a single scale and zero point; None if they are not.

    That is `(x - zero) * scale`, with the difference in int32 or float32, which is exact in both.
    """
    product = definer(subgraph, operand)
    if product is None or operand is None or not plain_binary(product, BinaryKind.MUL):
        return None
    if subgraph.type(operand).dtype is not DType.FLOAT32:
        return None
    x, other = product.used
    scale = number(subgraph, other)
    if scale is None:
        x, scale = other, number(subgraph, x)
    if scale is None or not float(np.finfo(np.float32).tiny) <= scale:
        return None
    steps, zero = [subgraph.definitions[operand]], 0
    for _ in range(4):
        if subgraph.type(x).dtype in BYTES:
            low, high = subgraph.type(x).dtype.limits
            quantized = subgraph.type(x).quantization
            fits = low <= zero <= high and (quantized is None or quantized.per_tensor)
            return Stored(x, scale, zero, tuple(steps)) if fits else None
        before = definer(subgraph, x)
        if before is None:
            return None
        if isinstance(before.op, Cast) and before.op.to in (DType.INT32, DType.FLOAT32):
            steps.append(subgraph.definitions[x])
        elif plain_binary(before, BinaryKind.SUB) and not zero:
            found = number(subgraph, before.used[1])
            if found is None or not found.is_integer():
                return None
            zero = int(found)
            steps.append(subgraph.definitions[x])
        else:
            return None
        x = before.used[0]
    return None


def from_bytes(subgraph: Subgraph, operand: int | None) -> bool:
    """Whether floats are bytes, possibly minus a whole number: sums of their products with whole numbers are exact."""
    producer = definer(subgraph, operand)
    if plain_binary(producer, BinaryKind.SUB) and producer is not None:
        zero_point = number(subgraph, producer.used[1])
        if zero_point is None or not zero_point.is_integer():
            return False
        producer = definer(subgraph, producer.used[0])
    return producer is not None and isinstance(producer.op, Cast) and subgraph.type(producer.used[0]).dtype in BYTES


def whole_in(subgraph: Subgraph, operand: int, dtype: DType) -> bool:
    """Whether floats are rounded and clamped to the range of an integer type (or are NaN)."""
    low, high = dtype.limits
    for kind, bound in ((BinaryKind.MINIMUM, high), (BinaryKind.MAXIMUM, low)):
        clamp = definer(subgraph, operand)
        if clamp is None or not plain_binary(clamp, kind) or number(subgraph, clamp.used[1]) != bound:
            return False
        operand = clamp.used[0]
    summed = definer(subgraph, operand)
    if summed is not None and plain_binary(summed, BinaryKind.ADD):
        zero = number(subgraph, summed.used[1])
        if zero is None or not zero.is_integer():
            return False
        operand = summed.used[0]
    rounded = definer(subgraph, operand)
    return rounded is not None and rounded.op == Unary(UnaryKind.ROUND)


MOST = 127
"""The largest magnitude of a signed byte whose negation is also one."""

_SAMPLE, _MOST_CANDIDATES = 64, 8
"""How many elements of a row are sampled to reject a scale early, and how many scales per row, on average, are compared
with all elements before giving up."""


def on_grid(rows: Array) -> tuple[Array, Array] | None:
    """Rows of float32 as signed bytes and one scale per row, whose float32 products are bit-identical to all elements.

    None if a row has no such scale. Its largest magnitude corresponds to one of 128 byte magnitudes, and all are tried.
    Rows of zeros have scale 1.
    """
    if rows.size == 0 or not np.isfinite(rows).all():
        return None
    found = np.zeros(rows.shape, np.int8)
    scales = np.ones(len(rows), np.float32)
    largest = np.abs(rows).max(axis=1)
    remaining = np.flatnonzero(largest > 0)
    sample = np.linspace(0, rows.shape[1] - 1, min(_SAMPLE, rows.shape[1])).astype(np.int64)
    candidates = 0
    for steps in (MOST, MOST + 1, *range(MOST - 1, 0, -1)):
        if not remaining.size:
            break
        if candidates > _MOST_CANDIDATES * len(rows):
            return None
        real = largest[remaining].astype(np.float64) / steps
        ratio = rows[remaining][:, sample] / real[:, None]
        is_near = np.abs(ratio - np.rint(ratio)).max(axis=1) < 1e-3
        candidates += int(np.count_nonzero(is_near))
        fitted = [
            at for at in remaining[is_near] if _fits(rows[at], largest[at] / np.float32(steps), found, scales, int(at))
        ]
        if steps == 1 and len(fitted) < remaining.size:
            return None
        remaining = np.setdiff1d(remaining, fitted, assume_unique=True)
    return found, scales


def _fits(row: Array, about: np.float32, found: Array, scales: Array, at: int) -> bool:
    """Whether the row has a scale near `about`; if so, store its bytes and scale."""
    stored = np.rint(row.astype(np.float64) / float(about))
    if stored.min() < -MOST - 1 or stored.max() > MOST:
        return False
    real = stored.astype(np.float32)
    down, up = np.float32(0), np.float32(np.inf)
    for scale in (about, np.nextafter(about, up), np.nextafter(about, down)):
        if scale >= np.finfo(np.float32).tiny and np.array_equal(real * scale, row):
            found[at], scales[at] = stored, scale
            return True
    return False
