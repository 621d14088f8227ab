"""Cases of reductions, arg-extremes, cumulative sums and transforms along axes."""

from __future__ import annotations

import numpy as np
from formulas import floats, spread

from onert.ir import Array, DType, Quantization
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.scan import RFFT, RFFT2D, CumSum

from .case import Case, scaled


def _axes(*axes: int) -> Array:
    return np.array(axes, np.int32)


_X = floats((2, 3, 4))
_I = spread((2, 3, 4), -100, 100).astype(np.int32)
_I8 = spread((2, 3, 4), -128, 127).astype(np.int8)


def _stored(name: str, op: Reduce, x: Array, axes: Array, wanted: Array, *q: Quantization) -> Case:
    """A reduction of quantised integers; `q` are the quantisations of x and the result."""
    return Case(name, op, (x, axes), (wanted,), q[:1], q[1:], constant=(1,))


CASES = [
    Case("mean", Reduce(Reduction.MEAN), (_X, _axes(1)), (_X.mean(axis=1),), constant=(1,)),
    Case(
        "mean over two axes, kept",
        Reduce(Reduction.MEAN, keep_dims=True),
        (_X, _axes(-1, 0)),
        (_X.mean(axis=(0, 2), keepdims=True),),
        constant=(1,),
    ),
    Case("mean of integers is cut", Reduce(Reduction.MEAN), (np.int32([-3, -4, 9, 1]), _axes(0)), (np.int32(0),)),
    Case(
        "mean of negative integers is cut towards zero",
        Reduce(Reduction.MEAN),
        (np.int32([-3, -4]), _axes(0)),
        (np.int32(-3),),
    ),
    Case(
        "mean of nothing", Reduce(Reduction.MEAN), (np.zeros((2, 0), np.float32), _axes(1)), (np.float32([np.nan] * 2),)
    ),
    Case("sum", Reduce(Reduction.SUM), (_X, _axes(0, 0, 2)), (_X.sum(axis=(0, 2)),), constant=(1,)),
    Case("sum over no axis", Reduce(Reduction.SUM), (_X, _axes()), (_X,), constant=(1,)),
    Case("sum of a scalar", Reduce(Reduction.SUM), (np.float32(3), _axes(0)), (np.float32(3),), constant=(1,)),
    Case("sum of integers", Reduce(Reduction.SUM), (_I, _axes(1)), (_I.sum(axis=1).astype(np.int32),), constant=(1,)),
    Case(
        "sum of int64",
        Reduce(Reduction.SUM),
        (np.int64([2**40, -1]), _axes(0)),
        (np.int64(2**40 - 1),),
    ),
    Case("sum of nothing", Reduce(Reduction.SUM), (np.zeros((2, 0), np.float32), _axes(1)), (np.zeros(2, np.float32),)),
    Case("product", Reduce(Reduction.PROD), (_X, _axes(2)), (_X.prod(axis=2),), constant=(1,)),
    Case("product of integers", Reduce(Reduction.PROD), (np.int32([[2, -3], [4, 5]]), _axes(1)), (np.int32([-6, 20]),)),
    Case("largest", Reduce(Reduction.MAX), (_X, _axes(0)), (_X.max(axis=0),), constant=(1,)),
    Case(
        "largest integer", Reduce(Reduction.MAX, True), (_I, _axes(1)), (_I.max(axis=1, keepdims=True),), constant=(1,)
    ),
    Case("smallest", Reduce(Reduction.MIN), (_X, _axes(-2)), (_X.min(axis=1),), constant=(1,)),
    Case("any", Reduce(Reduction.ANY), (_I % 7 == 0, _axes(2)), ((_I % 7 == 0).any(axis=2),), constant=(1,)),
    Case("all", Reduce(Reduction.ALL), (_I % 7 != 0, _axes(2)), ((_I % 7 != 0).all(axis=2),), constant=(1,)),
    _stored(
        "int8 mean",
        Reduce(Reduction.MEAN),
        _I8,
        _axes(1),
        np.int8([[-119, -57, 4, -76], [52, -28, -109, -47]]),
        scaled(0.05, 3),
        scaled(0.03, -5),
    ),
    _stored(
        "uint8 mean",
        Reduce(Reduction.MEAN, True),
        spread((2, 3, 4), 0, 255).astype(np.uint8),
        _axes(1, 2),
        np.uint8([[[80]], [[109]]]),
        scaled(0.05, 100),
        scaled(0.03, 85),
    ),
    _stored(
        "int16 mean",
        Reduce(Reduction.MEAN),
        spread((2, 3, 4), -32768, 32767, 9973).astype(np.int16),
        _axes(0, 2),
        np.int16([-11871, 13656, -15431]),
        scaled(0.05),
        scaled(0.03),
    ),
    _stored(
        "int8 sum",
        Reduce(Reduction.SUM),
        np.int8([[10, 20, -30], [5, 6, 7]]),
        _axes(1),
        np.int8([-13, 23]),
        scaled(0.5, 2),
        scaled(0.25, -1),
    ),
    _stored(
        "int8 product",
        Reduce(Reduction.PROD),
        _I8,
        _axes(1),
        np.int8([[24, 30, 14, 11], [-16, 20, 27, 28]]),
        scaled(0.05, 3),
        scaled(1.5, 7),
    ),
    _stored("int8 largest", Reduce(Reduction.MAX), _I8, _axes(0), _I8.max(axis=0), scaled(0.05, 3), scaled(0.05, 3)),
    _stored(
        "int8 smallest in another scale",
        Reduce(Reduction.MIN),
        np.int8([7, 3, 11]),
        _axes(0),
        np.int8(5),
        scaled(0.5, 1),
        scaled(0.25, 1),
    ),
    Case(
        "index of the first largest",
        ArgReduce(Extreme.MAX, DType.INT32),
        (np.float32([[1, 5, 5], [3, 2, 3]]), _axes(1)),
        (np.int32([1, 0]),),
        constant=(1,),
    ),
    Case(
        "index of the first smallest",
        ArgReduce(Extreme.MIN),
        (np.int8([[1, 5, 1], [3, 2, 2]]), np.array(-2, np.int32)),
        (np.int64([0, 1, 0]),),
        (scaled(0.5, 1),),
        constant=(1,),
    ),
    Case(
        "index of the first true",
        ArgReduce(Extreme.MAX, DType.INT32),
        (np.array([False, True, True]), _axes(0)),
        (np.int32(1),),
        constant=(1,),
    ),
    Case(
        "running sum", CumSum(), (np.float32([[1, 2, 3], [4, 5, 6]]), _axes(1)), (np.float32([[1, 3, 6], [4, 9, 15]]),)
    ),
    Case("running sum without itself", CumSum(exclusive=True), (np.int32([1, 2, 3]), _axes(0)), (np.int32([0, 1, 3]),)),
    Case("running sum from the end", CumSum(reverse=True), (np.int64([1, 2, 3]), _axes(-1)), (np.int64([6, 5, 3]),)),
    Case(
        "running sum from the end without itself",
        CumSum(True, True),
        (np.int32([[1, 2], [3, 4], [5, 6]]), _axes(0)),
        (np.int32([[8, 10], [5, 6], [0, 0]]),),
    ),
    Case(
        "transform of an impulse",
        RFFT2D(),
        (np.float32([[1, 0, 0], [0, 0, 0]]), np.int32([4, 4])),
        (np.ones((4, 3), np.complex64),),
        constant=(1,),
    ),
    Case(
        "transform of rows, the last number cut off",
        RFFT(),
        (np.float32([[1, 0, -1, 0, 9], [1, 1, 1, 1, 9]]), np.int32([4])),
        (np.complex64([[0, 2, 0], [4, 0, 0]]),),
        constant=(1,),
    ),
    Case(
        "transform of a wave",
        RFFT2D(),
        (np.float32([[1, 0, -1, 0]] * 2), np.int32([2, 4])),
        (np.complex64([[0, 4, 0], [0, 0, 0]]),),
        constant=(1,),
    ),
]
