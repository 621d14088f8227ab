"""Tensors generated from a few numbers, and selections whose size depends on the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import MAX_ELEMENTS, normalize_axis, num_elements, static
from onert.ir.symbolic.trace import Computed
from onert.ir.types import CallTypes, TensorType

from .reshape import require_one


@frozen
class Fill(OnStored):
    """A tensor of shape `dims` with every element equal to `value`.

    - `dims`: non-negative integers of rank 1
    - `value`: one element of any type
    """

    def infer(self, dims: TensorType, value: TensorType) -> TensorType:
        require_one(value, "value")
        return sv.of_shape(value.dtype, dims, "dims")

    def evaluate(self, dims: Array, value: Array) -> Array:
        return np.full(sv.checked_shape(sv.values(dims), "dims"), value.reshape(())[()], value.dtype)

    def sized(self, types: CallTypes) -> Callable[..., Array]:
        return sv.filled(static(types.output.shape))


def _as_bytes(elements: Array | bytes | Computed) -> bytes | Computed:
    return elements.tobytes() if isinstance(elements, np.ndarray) else elements


@frozen
class PerLength(OnStored):
    """A constant that depends on the lengths of inputs: the compiler makes it for many lengths at once.

    `elements` are the bytes of its elements, or for symbolic lengths the function that computes an array of them. There
    are no operands.
    """

    result: TensorType
    elements: bytes | Computed = field(converter=_as_bytes, repr=False)

    def infer(self) -> TensorType:
        require(not self.result.dtype.is_handle, f"the result is {self.result}, expected numbers")
        return self.result

    def evaluate(self) -> Array:
        if not isinstance(self.elements, bytes):
            raise RuleError("the elements depend on lengths, which are not known")
        shape, dtype = static(self.result.shape), self.result.dtype.numpy
        nbytes = math.prod(shape) * dtype.itemsize
        require(len(self.elements) == nbytes, f"elements has {len(self.elements)} bytes, expected {nbytes}")
        return np.frombuffer(self.elements, dtype).reshape(shape)


@frozen
class Range(OnStored):
    """Numbers from `start` (inclusive) to `limit` (exclusive) in steps of `delta`.

    - `start`, `limit`, `delta`: one number each, of one type; delta is not 0

    Raises RuleError if the steps lead away from the limit; with `may_be_empty` there are no numbers then.
    """

    may_be_empty: bool = False

    def infer(self, start: TensorType, limit: TensorType, delta: TensorType) -> TensorType:
        for x in (start, limit, delta):
            require(x.dtype is start.dtype, f"Range is given {start.dtype.text} and {x.dtype.text}, expected one type")
            require(x.dtype.is_numeric, f"Range is not defined on elements of type {x.dtype.text}")
            require_one(x, "start, limit or delta")
        if start.value is None or limit.value is None or delta.value is None:
            return start.result((None,))
        return start.result((self._count(start.value, limit.value, delta.value),))

    def _count(self, start: Array, limit: Array, delta: Array) -> int:
        a, b, d = (_number(x) for x in (start, limit, delta))
        real = any(isinstance(number, float) for number in (a, b, d))
        require(d != 0 and not (real and math.isnan(d)), f"delta is {d}, expected a number other than 0")
        if not ((b >= a and d > 0) or (b <= a and d < 0)):
            require(self.may_be_empty, f"delta {d} never leads from {a} to {b}")
            return 0
        steps = (b - a) / d if real else -((a - b) // d) if d > 0 else -((b - a) // -d)
        if not -MAX_ELEMENTS <= steps <= MAX_ELEMENTS:
            raise RuleError(f"the range from {a} to {b} by {d} has more than {MAX_ELEMENTS} elements")
        out: int = max(0, math.ceil(steps))
        return out

    def evaluate(self, start: Array, limit: Array, delta: Array) -> Array:
        count = self._count(start, limit, delta)
        if start.dtype.kind in "iu" and start.item() == 0 and delta.item() == 1:
            return np.arange(count, dtype=start.dtype)  # a third of the time
        return _steps(start, count, delta)

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        start, delta, count = types.input(0).value, types.input(2).value, static(types.output.shape)[0]
        if start is None or delta is None:
            return None
        if start.dtype.kind in "iu":
            first, step, dtype = start.item(), delta.item(), start.dtype
            end = first + count * step
            if first >= 0 and step > 0 and end <= np.iinfo(dtype).max:
                made: Callable[..., Array] = partial(np.arange, first, end, step, dtype)
                return lambda *_: made()
        return lambda *_: _steps(start, count, delta)


def _steps(start: Array, count: int, delta: Array) -> Array:
    """`count` numbers from `start`."""
    out: Array = (start.reshape(()) + np.arange(count).astype(start.dtype) * delta.reshape(())).astype(start.dtype)
    return out


def _number(x: Array) -> Any:
    """The only element of an array. An integral float is converted to int, which is exact and can be combined with
    symbolic numbers."""
    if x.dtype.kind in "iu":
        return x.item()
    found: Any = x.reshape(())[()]
    plain = found.item() if isinstance(found, np.generic) else found
    return int(plain) if isinstance(plain, float) and plain.is_integer() and abs(plain) <= _EXACT else plain


_EXACT = 1 << 52
"""Floats up to this magnitude have exact differences, and their quotients round up like those of integers."""


@frozen
class TopK(OnStored):
    """The `k` largest elements along the last axis, in descending order, and their indices.

    - `x`: numbers, of rank 1 or more
    - `k`: one integer, at most the last dimension

    With `least`: the smallest elements, in ascending order. Equal elements keep their order; NaN is greater than every
    number. Indices have element type `index`. Both results are [..., k].
    """

    index: DType = DType.INT32
    least: bool = False

    def infer(self, x: TensorType, k: TensorType) -> tuple[TensorType, TensorType]:
        require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
        require(x.dtype.is_numeric, f"TopK is not defined on elements of type {x.dtype.text}")
        size = sv.one_integer(k, "k")
        if size is not None:
            self._checked(size, x.shape[-1])
        shape = (*x.shape[:-1], size)
        return x.result(shape), TensorType(self.index, shape)

    @staticmethod
    def _checked(k: int, size: int | None) -> None:
        if not (k >= 0 and (size is None or k <= size)):
            raise RuleError(f"k is {k}, expected 0 to the last dimension, {size}")

    def evaluate(self, x: Array, k: Array) -> tuple[Array, Array]:
        size = sv.values(k)[0]
        self._checked(size, x.shape[-1])
        if self.least:
            order = np.argsort(x, axis=-1, kind="stable")[..., :size]
        else:
            descending = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            order = x.shape[-1] - 1 - descending[..., :size]
        return np.take_along_axis(x, order, -1), order.astype(self.index.numpy)


@frozen
class Where(OnStored):
    """The indices of the elements that are not 0, in row-major order; int64 [count, rank].

    - `condition`: booleans or numbers
    """

    def infer(self, condition: TensorType) -> TensorType:
        require(
            condition.dtype is DType.BOOL or condition.dtype.is_numeric,
            f"Where is not defined on elements of type {condition.dtype.text}",
        )
        found = None if condition.value is None else int(np.count_nonzero(condition.value))
        return TensorType(DType.INT64, (found, condition.rank))

    def evaluate(self, condition: Array) -> Array:
        return np.argwhere(condition).astype(np.int64)


@frozen
class CountedWhere(OnStored):
    """`Where` with a result of fixed size: zeros follow the last row, and the number of rows is a second result.

    - `condition`: booleans of rank 1 or more

    Results: int64 [elements, rank] and one int64.
    """

    def infer(self, condition: TensorType) -> tuple[TensorType, TensorType]:
        require(condition.dtype is DType.BOOL and condition.rank >= 1, f"the condition is {condition}, expected bools")
        return TensorType(DType.INT64, (num_elements(condition.shape), condition.rank)), TensorType(DType.INT64, ())

    def evaluate(self, condition: Array) -> tuple[Array, Array]:
        found = np.argwhere(condition)
        out = np.zeros((condition.size, condition.ndim), np.int64)
        out[: len(found)] = found
        return out, np.array(len(found), np.int64)


@frozen
class FirstEntries(OnStored):
    """The first `count` entries of `x` along `axis`: the valid part of a tensor allocated for the maximum size.

    - `x`: any, of rank 1 or more
    - `count`: one integer, from 0 to the dimension
    """

    axis: int = 0

    def infer(self, x: TensorType, count: TensorType) -> TensorType:
        axis = normalize_axis(self.axis, x.rank)
        found = sv.one_integer(count, "count")
        self._checked(found, x.shape[axis])
        return x.result((*x.shape[:axis], found, *x.shape[axis + 1 :]))

    @staticmethod
    def _checked(count: int | None, size: int | None) -> None:
        if count is not None and (count < 0 or (size is not None and count > size)):
            raise RuleError(f"count is {count}, expected 0 to the dimension, {size}")

    def evaluate(self, x: Array, count: Array) -> Array:
        axis, found = normalize_axis(self.axis, x.ndim), count.item()
        self._checked(found, x.shape[axis])
        return np.ascontiguousarray(x[(*(slice(None),) * axis, slice(found))])

    def sized(self, types: CallTypes) -> Callable[..., Array]:
        axis = normalize_axis(self.axis, types.output.rank)
        return sv.part((*(slice(None),) * axis, slice(static(types.output.shape)[axis]), ...))


@frozen
class Within(OnStored):
    """Checks at run time that integers are at least 0 and below a limit; returns them unchanged.

    - `x`: int32 or int64
    - `limit`: one int64, at least 0; with `inclusive` the limit itself is allowed
    - `count`: one int64, at least 0: the number of valid entries of x along the first dimension; if absent, all are

    Raises RuleError for a valid integer out of bounds. Entries that are not valid become 0.
    """

    inclusive: bool = False

    def infer(self, x: TensorType, limit: TensorType, count: TensorType | None = None) -> TensorType:
        require(x.dtype in (DType.INT32, DType.INT64), f"x holds {x.dtype.text}, expected i32 or i64")
        require(count is None or x.rank >= 1, "x is a scalar, expected entries")
        for each in (limit, count):
            if each is not None:
                require_one(each, "limit or count")
                require(each.dtype is DType.INT64, f"a limit or count holds {each.dtype.text}, expected i64")
        return x.result(x.shape)

    def evaluate(self, x: Array, limit: Array, count: Array | None = None) -> Array:
        kept = x if count is None else x[: sv.values(count)[0]]
        outside = kept[(kept < 0) | (kept >= sv.values(limit)[0] + self.inclusive)]
        if outside.size:
            raise RuleError(f"{int(outside.reshape(-1)[0])} {BEYOND}")
        out = x.copy()
        if count is not None:
            out[len(kept) :] = 0
        return out


BEYOND = "is more than there are, or negative"
"""What errors say about an integer that is out of bounds."""


@frozen
class Unique(OnStored):
    """The distinct elements of `x` in order of first occurrence, and for each element its index among these.

    - `x`: numbers of rank 1. The indices have element type `index`.
    """

    index: DType = DType.INT32

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        require(x.rank == 1, f"x has rank {x.rank}, expected 1")
        found = None if x.value is None else len(np.unique(x.value))
        return x.result((found,)), TensorType(self.index, x.shape)

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        values, first, inverse = np.unique(x, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return values[order], rank[inverse.reshape(-1)].astype(self.index.numpy)
