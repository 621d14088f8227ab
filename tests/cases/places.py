"""Cases of operations on positions and indices, and of normalisations in all their forms."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import DType, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.dense import Bucketize
from onert.ir.ops.data_movement.diagonal import MatrixBandPart, MatrixDiag, MatrixSetDiag
from onert.ir.ops.data_movement.fill import CountedWhere, FirstEntries, Within
from onert.ir.ops.data_movement.gather import OneHot
from onert.ir.ops.data_movement.layout import ReverseSequence
from onert.ir.ops.data_movement.reshape import Rank, ShapeOf
from onert.ir.ops.elementwise.unary import ZerosLike
from onert.ir.ops.reduction.norm import BatchNorm, InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm

from .case import Case

_Q = Quantization((0.5,), (3,))
_X = floats((2, 3, 4))
_SPECIAL = np.float32([[np.nan, 1, 2], [np.inf, 0, -1], [0, 0, 0]])
_PER_CHANNEL = tuple(floats((4,), step) for step in (11, 13, 17))
_VARIANCE = np.float32([0, 1, 0.25, 4])
_ONE = np.float32([2])


def _reversed() -> np.ndarray:
    out = _X.copy()
    out[:, :2, 1], out[:, :3, 2] = out[:, 1::-1, 1].copy(), out[:, ::-1, 2].copy()
    return out


CASES = [
    Case(
        "a mask of two axes, zeros behind",
        CountedWhere(),
        (np.array([[True, False, True], [False, False, True]]),),
        (np.int64([[0, 0], [0, 2], [1, 2], *[[0, 0]] * 3]), np.int64(3)),
    ),
    Case(
        "bytes beyond those looked at together",
        CountedWhere(),
        (np.arange(21) % 7 == 3,),
        (np.int64([3, 10, 17, *[0] * 18])[:, None], np.int64(3)),
    ),
    Case(
        "a mask of nothing in three axes",
        CountedWhere(),
        (np.zeros((2, 4, 5), np.bool_),),
        (np.zeros((40, 3), np.int64), np.int64(0)),
    ),
    Case(
        "a mask of all",
        CountedWhere(),
        (np.ones((2, 3, 2), np.bool_),),
        (np.argwhere(np.ones((2, 3, 2))), np.int64(12)),
    ),
    Case("two of three rows", FirstEntries(), (_X[0], np.int64(2)), (_X[0, :2],)),
    Case("indices below 5", Within(), (np.int32([[4, 0]]), np.int64(5)), (np.int32([[4, 0]]),)),
    Case("a number up to 5", Within(inclusive=True), (np.int64(5), np.int64([5])), (np.int64(5),)),
    Case(
        "two of three indices below 5",
        Within(),
        (np.int64([[4, 1], [2, 0], [9, -7]]), np.int64(5), np.int64(2)),
        (np.int64([[4, 1], [2, 0], [0, 0]]),),
    ),
    Case("no index below 0", Within(), (np.int32([7, -2]), np.int64(0), np.int64(0)), (np.int32([0, 0]),)),
    Case("no columns", FirstEntries(-1), (_X[0], np.int32([0])), (_X[0, :, :0],)),
    Case(
        "the first axis",
        OneHot(0),
        (np.int64([[0, 2], [-1, 3]]), np.int32(3), np.int8(7), np.int8(1)),
        (np.int8([[[7, 1], [1, 1]], [[1, 1], [1, 1]], [[1, 7], [1, 1]]]),),
        constant=(1,),
    ),
    Case(
        "a scalar among few",
        OneHot(),
        (np.uint8(1), np.int32([3]), np.array([True]), np.array([[False]])),
        (np.array([False, True, False]),),
        constant=(1,),
    ),
    Case(
        "no depth",
        OneHot(),
        (np.int32([1, 2]), np.int32(0), np.float32(1), np.float32(0)),
        (np.zeros((2, 0), np.float32),),
        constant=(1,),
    ),
    Case(
        "bytes in a scale chosen",
        OneHot(),
        (np.int32([1]), np.int32(2), np.int8(5), np.int8(3)),
        (np.int8([[3, 5]]),),
        (None, None, _Q, _Q),
        (_Q,),
        constant=(1,),
    ),
    Case(
        "bytes stored as they are, whatever the scales of constants",
        OneHot(),
        (np.int32([1, 0]), np.int32(2), np.int8(127), np.int8(0)),
        (np.int8([[0, 127], [127, 0]]),),
        (None, None, _Q, Quantization((1e-9,), (0,))),
        (Quantization((0.25,), (-128,)),),
        constant=(1, 2, 3),
    ),
    Case("the middle axis, batches last", ReverseSequence(1, -1), (_X, np.int64([0, 2, 3, 1])), (_reversed(),)),
    Case("nothing reversed", ReverseSequence(1, 0), (np.zeros((2, 0), np.int32), np.int32([0, 0]))),
    Case("diagonals of special numbers", MatrixDiag(), (_SPECIAL,)),
    Case("bytes in a scale on a diagonal", MatrixDiag(), (np.int8([5]),), (np.int8([[5]]),), (_Q,), (_Q,)),
    Case("no diagonal", MatrixDiag(), (np.zeros((2, 0), np.float32),), (np.zeros((2, 0, 0), np.float32),)),
    Case("diagonals of wide matrices", MatrixSetDiag(), (_X, floats((2, 3), 7))),
    Case("diagonals of high matrices", MatrixSetDiag(), (floats((2, 4, 3)), floats((2, 3), 7))),
    Case("all above", MatrixBandPart(), (_X, np.array(0), np.int64([-1]))),
    Case("a band of special numbers", MatrixBandPart(), (_SPECIAL, np.int32(0), np.int32(1))),
    Case("nothing of a scalar", ZerosLike(), (np.array(4, np.int8),), (np.array(0, np.int8),)),
    Case("nothing of nothing", ZerosLike(), (np.zeros((0, 2)),), (np.zeros((0, 2)),)),
    Case("of a scalar", ShapeOf(), (np.float32(1),), (np.zeros(0, np.int32),)),
    Case("of nothing", ShapeOf(DType.INT64), (np.zeros((0, 2), np.int8),), (np.int64([0, 2]),)),
    Case("of no dimensions", Rank(), (np.float32(1),), (np.array(0, np.int32),)),
    Case("buckets of special numbers", Bucketize((-1.0, 0.1, 2.0)), (_SPECIAL,)),
    Case(
        "buckets of integers",
        Bucketize((-1.5, 1.0, 1e30)),
        (np.int32([-2, -1, 1, 2**31 - 1]),),
        (np.int32([0, 1, 2, 2]),),
    ),
    Case("statistics for one channel", BatchNorm(), (_X, _ONE, _ONE, _ONE, _ONE), constant=(1, 2, 3, 4)),
    Case("statistics of the run", BatchNorm(), (_X, *_PER_CHANNEL, _VARIANCE)),
    Case("no variance", BatchNorm(0.0), (_X, *_PER_CHANNEL, _VARIANCE), constant=(1, 2, 3, 4)),
    Case(
        "statistics of special numbers",
        BatchNorm(),
        (_SPECIAL, *(floats((3,), s) for s in (7, 11, 13)), np.float32([1, 0, 2])),
    ),
    Case("images, one factor", InstanceNorm(activation=Activation.RELU), (floats((2, 3, 4, 2)), _ONE, _ONE)),
    Case("a factor for each channel", InstanceNorm(), (floats((2, 3, 4, 2)), floats((2,)), floats((2,), 7))),
    Case("vectors, channels first, one factor", InstanceNorm(), (_X, _ONE, floats((3,), 7))),
    Case("equal elements", InstanceNorm(), (np.full((1, 2, 2, 1), 3e37, np.float32), _ONE, _ONE)),
    Case("large means", InstanceNorm(), (np.full((1, 4, 4, 1), 3e38, np.float32), _ONE, _ONE)),
    Case("root mean square, a factor for all", RmsNorm(), (_X, _ONE)),
    Case("root mean square, both", RmsNorm(), (_X, floats((4,)), floats((4,), 7))),
    Case("root mean square of special numbers", RmsNorm(), (_SPECIAL, np.float32(2), _ONE)),
    Case("unit vectors between bounds", L2Normalization(Activation.RELU), (_X,)),
    *(
        Case(f"neighbours to the power {beta}", LocalResponseNormalization(1, 1.0, 0.5, beta), (floats((2, 5)),))
        for beta in (0.0, 0.5, 0.75, 1.0, 0.3)
    ),
    Case(
        "neighbours of special numbers",
        LocalResponseNormalization(1, 1.0, 1.0, 0.75),
        (floats((2, 1, 3)) * _SPECIAL[1:],),
    ),
]
