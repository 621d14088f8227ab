"""Cases of StableHLO operations."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import DType
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.stablehlo import shapes_and_elements as hlo
from onert.ir.ops.stablehlo.gather import BitGenerator, HloGather, HloRngBitGenerator
from onert.ir.ops.stablehlo.products import HloConvolution, HloDotGeneral, Places
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.ops.stablehlo.with_bodies import HloReduce, HloReduceWindow, HloScatter, HloSort

from .case import Case

_X = floats((2, 3))
_NCHW, _OIHW = Places(0, 1, (2, 3)), Places(1, 0, (2, 3))
_ONES, _NONE = (1, 1), (0, 0)


CASES = [
    Case(
        "between bounds", hlo.HloClamp(), (np.int32(2), np.int32([1, 2, 3, 4]), np.int32(3)), (np.int32([2, 2, 3, 3]),)
    ),
    Case(
        "bounds of its shape",
        hlo.HloClamp(),
        (np.float32([0, 5]), np.float32([1, 2]), np.float32([0, 9])),
        (np.float32([0, 5]),),
    ),
    Case("repeated", hlo.HloBroadcastInDim((1,), (2, 3)), (np.int32([1, 2, 3]),), (np.int32([[1, 2, 3]] * 2),)),
    Case(
        "turned and repeated",
        hlo.HloBroadcastInDim((1, 0), (3, 2)),
        (
            np.int32(
                [
                    [1, 2, 3],
                ]
            ),
        ),
        (np.int32([[1, 1], [2, 2], [3, 3]]),),
    ),
    Case("every other", hlo.HloSlice((0, 1), (2, 3), (2, 1)), (_X,), (_X[::2, 1:3],)),
    Case("nothing", hlo.HloSlice((1, 3), (1, 3), (1, 1)), (_X,), (_X[1:1, 3:3],)),
    Case("other order", hlo.HloTranspose((1, 0)), (_X,), (_X.T,)),
    Case("a scalar in no order", hlo.HloTranspose(()), (np.float32(1),), (np.float32(1),)),
    Case("a part", hlo.HloDynamicSlice((1, 2)), (_X, np.int32(1), np.int64(9)), (_X[1:, 1:],)),
    Case(
        "a part replaced",
        hlo.HloDynamicUpdateSlice(),
        (np.int8([1, 2, 3]), np.int8([9, 8]), np.int32(-1)),
        (np.int8([9, 8, 3]),),
    ),
    Case("margins", hlo.HloPad((1,), (-1,), (1,)), (np.int32([1, 2, 3]), np.int32(0)), (np.int32([0, 1, 0, 2, 0]),)),
    Case("numbers", hlo.HloIota(0, DType.FLOAT32, (3, 2)), (), (np.float32([[0, 0], [1, 1], [2, 2]]),)),
    Case("a matrix product", HloDotGeneral(DType.FLOAT32, (), (), (1,), (0,)), (_X, _X.T), (_X @ _X.T,)),
    Case(
        "integers that are wider than their factors",
        HloDotGeneral(DType.INT32, (), (), (0,), (0,)),
        (np.int8([100, 100]), np.int8([100, 50])),
        (np.int32(15000),),
    ),
    Case("products of a batch", HloDotGeneral(DType.FLOAT32, (0,), (0,), (1,), (1,)), (_X, _X), ((_X * _X).sum(1),)),
    Case(
        "an image",
        HloConvolution(DType.FLOAT32, _NCHW, _OIHW, _NCHW, Sliding(_ONES, (0, 1), _NONE, _ONES, _ONES), (False, True)),
        (np.float32([[[[1, 2], [3, 4]]]]), np.float32([[[[10, 1]]]])),
        (np.float32([[[[10, 21], [30, 43]]]]),),
    ),
    Case("the sum of columns", HloReduce(0, (0,), BinaryKind.ADD), (_X, np.float32(1)), (_X.sum(0) + 1,)),
    Case(
        "the largest of two tensors",
        HloReduce(0, (0, 1), BinaryKind.MAXIMUM),
        (_X, -_X, np.float32(-9), np.float32(-9)),
        (_X.max(), (-_X).max()),
    ),
    Case(
        "what is left of integers", HloReduce(0, (0,), BinaryKind.SUB), (np.int32([1, 2]), np.int32(9)), (np.int32(6),)
    ),
    Case(
        "sums of neighbours",
        HloReduceWindow(0, (2,), Sliding((1,), (1,), (0,), (1,), (1,)), BinaryKind.ADD),
        (np.int32([1, 2, 3]), np.int32(0)),
        (np.int32([1, 3, 5]),),
    ),
    Case(
        "updates added",
        HloScatter(0, (), (0,), (0,), 1, BinaryKind.ADD),
        (np.int32([1, 2, 3]), np.int32([[0], [2], [0], [3]]), np.int32([10, 20, 30, 40])),
        (np.int32([41, 2, 23]),),
    ),
    Case(
        "rows replaced",
        HloScatter(0, (1,), (0,), (0,), 1, BinaryKind.ADD, replaces=True),
        (np.zeros((2, 2), np.float32), np.int32([1]), np.float32([[5, 6]])),
        (np.float32([[0, 0], [5, 6]]),),
    ),
    Case(
        "ascending",
        HloSort(0, 0, descending=False),
        (np.int32([3, 1, 2]), np.float32([0, 1, 2])),
        (np.int32([1, 2, 3]), np.float32([1, 2, 0])),
    ),
    Case("descending", HloSort(0, 1, descending=True), (np.float32([[1, 3, 2]]),), (np.float32([[3, 2, 1]]),)),
    Case(
        "rows that are named",
        HloGather((1,), (0,), (0,), 1, (1, 3)),
        (_X, np.int64([[1], [7], [-1]])),
        (_X[[1, 1, 0]],),
    ),
    Case(
        "random bits",
        HloRngBitGenerator(BitGenerator.PHILOX, DType.UINT32, (2,)),
        (np.zeros(3, np.uint64),),
        # the published test vector of Philox-4x32-10 for a counter and a key of zeros
        (np.uint64([0, 1, 0]), np.uint32([0x6627E8D5, 0xE169C58D])),
    ),
    Case(
        "random bits of another kind",
        HloRngBitGenerator(BitGenerator.THREEFRY, DType.UINT64, (1,)),
        (np.zeros(2, np.uint64),),
        # the published test vector of Threefry-2x32-20 for a counter and a key of zeros
        (np.uint64([0, 1]), np.uint64([0x99BA4EFE_6B200159])),
    ),
]
