"""Cases of pooling, with and without indices, and of windows along every axis."""

from __future__ import annotations

import numpy as np
from formulas import floats, pooled, spread

from onert.ir import Array, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.ops.reduction.unpool import MaxPoolWithArgmax2D, MaxUnpool2D

from .case import Case

_FUNCTIONS = {
    Pooling.AVERAGE: np.mean,
    Pooling.MAX: np.max,
    Pooling.L2: lambda window: np.sqrt(np.mean(window * window)),
}


def _axes(op: Pool2D) -> list[tuple[int, int, int]]:
    return [(op.filter_height, op.stride_height, 1), (op.filter_width, op.stride_width, 1)]


def _real(name: str, op: Pool2D, x: tuple[int, ...]) -> Case:
    result = pooled(floats(x), _axes(op), op.padding, _FUNCTIONS[op.kind])
    return Case(name, op, (floats(x),), (op.activation.apply(result.astype(np.float32)),), tolerance=1e-6)


def _away(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _stored(name: str, op: Pool2D, x: Array, quantization: Quantization) -> Case:
    """Integer pooling: averages rounded with halves away from zero, or maxima."""
    result = _away(pooled(x, _axes(op), op.padding, _FUNCTIONS[op.kind])).astype(x.dtype)
    return Case(name, op, (x,), (result,), (quantization,), (quantization,))


_Q = Quantization((0.05,), (3,))

CASES = [
    _real("average", Pool2D(Pooling.AVERAGE, 2, 2, Padding.VALID, 2, 2), (2, 4, 6, 3)),
    _real("average over the elements inside", Pool2D(Pooling.AVERAGE, 3, 3, Padding.SAME), (1, 4, 5, 2)),
    _real("average over everything", Pool2D(Pooling.AVERAGE, 5, 4), (1, 5, 4, 2)),
    _real("largest", Pool2D(Pooling.MAX, 3, 2, Padding.SAME, 2, 3), (2, 5, 7, 2)),
    _real("largest, relu6", Pool2D(Pooling.MAX, 2, 2, activation=Activation.RELU6), (1, 3, 3, 2)),
    _real("average of uneven margins", Pool2D(Pooling.AVERAGE, 3, 2, Margins(((2, 0), (0, 1)))), (1, 4, 5, 2)),
    Case(
        "average that counts margins",
        Pool2D(Pooling.AVERAGE, 2, 2, Margins(((1, 0), (0, 1))), 1, 2, counts_margins=True),
        (np.float32([4, 8, 12]).reshape(1, 1, 3, 1),),
        (np.float32([3, 3]).reshape(1, 1, 2, 1),),
    ),
    _real("quadratic mean", Pool2D(Pooling.L2, 2, 3, Padding.SAME, 1, 2), (1, 4, 5, 2)),
    _real("window larger than the image", Pool2D(Pooling.MAX, 9, 9, Padding.SAME), (1, 3, 2, 1)),
    _stored("int8 average", Pool2D(Pooling.AVERAGE, 2, 2), spread((1, 3, 4, 2), -128, 127).astype(np.int8), _Q),
    _stored(
        "uint8 average with padding",
        Pool2D(Pooling.AVERAGE, 3, 3, Padding.SAME),
        spread((1, 3, 4, 2), 0, 255).astype(np.uint8),
        _Q,
    ),
    _stored(
        "int16 average",
        Pool2D(Pooling.AVERAGE, 2, 2),
        spread((1, 3, 4, 2), -32768, 32767, 9973).astype(np.int16),
        Quantization((0.05,), (0,)),
    ),
    _stored("int8 largest", Pool2D(Pooling.MAX, 2, 3), spread((1, 3, 4, 2), -128, 127).astype(np.int8), _Q),
    Case(
        "int8 largest, relu",
        Pool2D(Pooling.MAX, 1, 1, activation=Activation.RELU),
        (np.int8([-5, 2, 3, 9]).reshape(1, 2, 2, 1),),
        (np.int8([3, 3, 3, 9]).reshape(1, 2, 2, 1),),
        (_Q,),
        (_Q,),
    ),
    Case(
        "plain int8 average",
        Pool2D(Pooling.AVERAGE, 1, 2),
        (np.int8([-5, -2, 3, 4]).reshape(1, 2, 2, 1),),
        (np.int8([-4, 4]).reshape(1, 2, 1, 1),),
    ),
    Case(
        "places of the largest",
        MaxPoolWithArgmax2D(2, 2, Padding.VALID, 2, 2),
        (np.float32([[1, 5, 2, 2], [3, 4, 2, 2]]).reshape(1, 2, 4, 1),),
        (np.float32([5, 2]).reshape(1, 1, 2, 1), np.float32([1.1, 0.1]).reshape(1, 1, 2, 1)),
    ),
    Case(
        "places counted from the padding",
        MaxPoolWithArgmax2D(3, 3, Padding.SAME, 3, 3),
        (np.float32([7]).reshape(1, 1, 1, 1),),
        (np.float32([7]).reshape(1, 1, 1, 1), np.float32([4.1]).reshape(1, 1, 1, 1)),
    ),
    Case(
        "back to their places",
        MaxUnpool2D(2, 2, Padding.VALID, 2, 2),
        (np.float32([5, 2]).reshape(1, 1, 2, 1), np.float32([1.1, 2.1]).reshape(1, 1, 2, 1)),
        (np.float32([[0, 5, 0, 0], [0, 0, 2, 0]]).reshape(1, 2, 4, 1),),
    ),
    Case(
        "places outside are left out",
        MaxUnpool2D(2, 2, Padding.VALID, 2, 2),
        (np.float32([5, 2]).reshape(1, 1, 2, 1), np.float32([40, np.nan]).reshape(1, 1, 2, 1)),
        (np.zeros((1, 2, 4, 1), np.float32),),
    ),
    Case(
        "sums of windows",
        ReduceWindow(WindowReduction.ADD),
        (
            np.arange(1, 17, dtype=np.int32).reshape(4, 4),
            np.int32([100]),
            np.int64([2, 2]),
            np.int64([1, 1]),
            np.int64([2, 3]),
        ),
        # corners two rows and three columns apart: 1 + 4 + 9 + 12, and 5 + 8 + 13 + 16
        (np.int32([[126], [142]]),),
        constant=(2, 3, 4),
    ),
    Case(
        "products that wrap",
        ReduceWindow(WindowReduction.MUL),
        (np.int8([16, 16, 2]), np.int8([1]), np.int64([2]), np.int64([1]), np.int64([1])),
        (np.int8([0, 32]),),
        constant=(2, 3, 4),
    ),
    *(
        Case(
            f"windows of {kind.value}",
            ReduceWindow(kind),
            (np.float32([3, 1, 2, 5]), np.float32([start]), np.int64([2]), np.int64([2]), np.int64([1])),
            (np.float32(result),),
            constant=(2, 3, 4),
        )
        for kind, start, result in (
            (WindowReduction.MIN, 9, [1, 2]),
            (WindowReduction.MAX, 4, [4, 5]),
        )
    ),
    *(
        Case(
            f"windows of {kind.value}",
            ReduceWindow(kind),
            (np.array([True, False, True, True]), np.array([start]), np.int64([2]), np.int64([1]), np.int64([1])),
            (np.array(result),),
            constant=(2, 3, 4),
        )
        for kind, start, result in (
            (WindowReduction.ALL, True, [False, False, True]),
            (WindowReduction.ANY, False, [True, True, True]),
        )
    ),
    Case(
        "no window fits",
        ReduceWindow(WindowReduction.ADD),
        (np.float32([1, 2]), np.float32([0]), np.int64([3]), np.int64([1]), np.int64([1])),
        (np.zeros((0,), np.float32),),
        constant=(2, 3, 4),
    ),
]
