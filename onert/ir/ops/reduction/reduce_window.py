"""Reductions of windows over all axes."""

from __future__ import annotations

import math
from enum import Enum
from functools import reduce

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, as_stored, require
from onert.ir.ops.arithmetic.window import MAX_STEP, Padding, Window
from onert.ir.shape import Dim
from onert.ir.types import CallTypes, TensorType


class WindowReduction(Enum):
    """NumPy's function that combines a window's elements, in the order of the TFLite schema's ReduceWindowFunction."""

    ADD = np.add
    MUL = np.multiply
    MIN = np.minimum
    MAX = np.maximum
    ALL = np.logical_and
    ANY = np.logical_or


@frozen
class ReduceWindow(Op):
    """Reduces each window of `x`, over all its axes, to one element.

    Operands: `x`, at least one dimension; `init` (one element: the initial value of each reduction); `window_shape`,
    `window_strides` and `window_dilations` (int64, one element per axis). Result: one element per window that is
    entirely inside. ADD and MUL of integers wrap; ALL and ANY return 0 or 1. Quantised integers are reduced as stored.

    Source: TFLite REDUCE_WINDOW, kernels/stablehlo_reduce_window.cc.
    """

    kind: WindowReduction

    def infer(
        self,
        x: TensorType,
        init: TensorType,
        window_shape: TensorType,
        window_strides: TensorType,
        window_dilations: TensorType,
    ) -> TensorType:
        allowed = x.dtype.is_numeric or x.dtype is DType.BOOL
        require(allowed and not x.dtype.is_complex, f"input is {x.dtype.text}, expected real numbers or bool")
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        require(init.dtype is x.dtype, f"init is {init.dtype.text}, expected {x.dtype.text}")
        require(all(d in (1, None) for d in init.shape), f"init is {init}, expected one element")
        for name, type_ in (("shape", window_shape), ("strides", window_strides), ("dilations", window_dilations)):
            _require_steps(f"window_{name}", type_, x.rank)
        if window_shape.value is None or window_strides.value is None or window_dilations.value is None:
            return x.result((None,) * x.rank)
        windows = _windows(window_shape.value, window_strides.value, window_dilations.value)
        return x.result(tuple(_outputs(w, d) for w, d in zip(windows, x.shape, strict=True)))

    def flops(self, types: CallTypes) -> int:
        return self.rounds(types) * math.prod(d or 0 for d in types.input(0).shape)

    def rounds(self, types: CallTypes) -> int:
        window, x = types.input(2).value, types.input(0).shape
        return sum(min(int(n), d or 0) for n, d in zip([] if window is None else window.reshape(-1), x, strict=False))

    def evaluate(
        self, x: Array, init: Array, window_shape: Array, window_strides: Array, window_dilations: Array
    ) -> Array:
        windows = _windows(window_shape, window_strides, window_dilations)
        sizes = [_outputs(w, d) or 0 for w, d in zip(windows, x.shape, strict=True)]
        start = np.full(sizes, init.reshape(-1)[0], x.dtype)
        if not start.size:
            return start
        function = self.kind.value
        for axis, window in enumerate(windows):
            before = (slice(None),) * axis
            parts = (x[(*before, tap.source)] for tap in window.taps(x.shape[axis]))
            x = reduce(lambda a, b: function(a, b).astype(a.dtype), parts)
        out: Array = function(start, x).astype(x.dtype)
        return out

    evaluate_quantized = as_stored


def _windows(sizes: Array, strides: Array, dilations: Array) -> list[Window]:
    each = zip(sizes.reshape(-1), strides.reshape(-1), dilations.reshape(-1), strict=True)
    return [Window(int(w), int(s), int(d), Padding.VALID) for w, s, d in each]


def _outputs(window: Window, size: Dim) -> Dim:
    if size is None:
        return None
    return max(size - window.extent + window.stride, 0) // window.stride if size >= window.extent else 0


def _require_steps(name: str, type_: TensorType, rank: int) -> None:
    require(type_.dtype is DType.INT64, f"{name} is {type_.dtype.text}, expected i64")
    require(type_.rank == 1 and type_.shape[0] in (rank, None), f"{name} is {type_}, expected {rank} elements")
    if type_.value is not None:
        low, high = int(type_.value.min(initial=1)), int(type_.value.max(initial=1))
        require(low >= 1, f"{name} has {low}, expected at least 1")
        require(high <= MAX_STEP, f"{name} has {high}, expected at most {MAX_STEP}")
