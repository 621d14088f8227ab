"""Cases of StableHLO shape operations: scalars, empty tensors, clamped starts, negative padding."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import DType, Quantization
from onert.ir.ops.data_movement.dense import Dilate
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice
from onert.ir.ops.stablehlo import shapes_and_elements as hlo
from onert.ir.ops.stablehlo.gather import HloGather

from .case import Case

_X = floats((2, 3))
_CUBE = floats((2, 3, 4))
_Q = (Quantization((0.5,), (3,)),)
_BYTES = np.int8([[1, -2, 3], [4, 5, -6]])
_PLACES = np.int32([[0, 2], [9, -3], [1, 1]])
_SPECIAL = np.float32([np.nan, np.inf, -np.inf, -1, 1])


CASES = [
    Case("a scalar everywhere", hlo.HloBroadcastInDim((), (2, 2)), (np.float32(3),), (np.full((2, 2), 3, np.float32),)),
    Case("a scalar as it is", hlo.HloBroadcastInDim((), ()), (np.float32(3),), (np.float32(3),)),
    Case(
        "behind new dimensions",
        hlo.HloBroadcastInDim((0,), (2, 3)),
        (np.int64([1, 2]),),
        (np.int64([[1] * 3, [2] * 3]),),
    ),
    Case("into nothing", hlo.HloBroadcastInDim((1,), (0, 3)), (np.int32([1, 2, 3]),), (np.zeros((0, 3), np.int32),)),
    Case(
        "dimensions in another order",
        hlo.HloBroadcastInDim((2, 0), (3, 5, 2)),
        (_X,),
        (np.ascontiguousarray(np.broadcast_to(_X.T[:, None], (3, 5, 2))),),
    ),
    Case(
        "bytes in a scale",
        hlo.HloBroadcastInDim((0, 2), (2, 2, 3)),
        (_BYTES,),
        (np.ascontiguousarray(np.broadcast_to(_BYTES[:, None], (2, 2, 3))),),
        _Q,
        _Q,
    ),
    Case(
        "not a number and the infinities",
        hlo.HloClamp(),
        (np.float32(-2), _SPECIAL, np.float32(2)),
        (np.float32([np.nan, 2, -2, -1, 1]),),
    ),
    Case(
        "a bound that is not a number",
        hlo.HloClamp(),
        (np.float32(np.nan), _SPECIAL, np.float32(2)),
        (np.full(5, np.nan, np.float32),),
    ),
    Case("bytes between bounds", hlo.HloClamp(), (np.int8(-2), _BYTES, np.int8(3)), (np.clip(_BYTES, -2, 3),)),
    Case("a scalar between bounds", hlo.HloClamp(), (np.int64(2), np.int64(7), np.int64(3)), (np.int64(3),)),
    Case("a part of three dimensions", hlo.HloSlice((0, 1, 0), (2, 3, 4), (1, 1, 3)), (_CUBE,), (_CUBE[:, 1:, ::3],)),
    Case("a part in one piece", hlo.HloSlice((1, 0, 1), (2, 3, 3), (1, 1, 1)), (_CUBE,), (_CUBE[1:, :, 1:3],)),
    Case("a stride beyond the end", hlo.HloSlice((0, 1), (2, 3), (1 << 39, 7)), (_X,), (_X[:1, 1:2],)),
    Case("a scalar whole", hlo.HloSlice((), (), ()), (np.float32(4),), (np.float32(4),)),
    Case("nothing turned", hlo.HloTranspose((1, 0)), (np.zeros((0, 3), np.int32),), (np.zeros((3, 0), np.int32),)),
    Case("a cube turned", hlo.HloTranspose((2, 0, 1)), (_CUBE,), (np.ascontiguousarray(_CUBE.transpose(2, 0, 1)),)),
    Case("bytes in a scale turned", hlo.HloTranspose((1, 0)), (_BYTES,), (np.ascontiguousarray(_BYTES.T),), _Q, _Q),
    Case(
        "a part of a cube",
        hlo.HloDynamicSlice((1, 3, 2)),
        (_CUBE, np.int32(1), np.int32(5), np.int32(1)),
        (_CUBE[1:, :, 1:3],),
    ),
    Case("a part from before", hlo.HloDynamicSlice((2, 1)), (_X, np.int64([-7]), np.int64([-1])), (_X[:, :1],)),
    Case(
        "a part of nothing",
        hlo.HloDynamicSlice((0, 1)),
        (_X, np.int32(1), np.int32(0)),
        (np.zeros((0, 1), np.float32),),
    ),
    Case("a scalar part", hlo.HloDynamicSlice(()), (np.float32(4),), (np.float32(4),)),
    Case("a part from a byte", hlo.HloDynamicSlice((2,)), (np.int32([1, 2, 3]), np.uint8(200)), (np.int32([2, 3]),)),
    Case(
        "a row replaced",
        hlo.HloDynamicUpdateSlice(),
        (_X, floats((1, 3)) + 9, np.int64(9), np.int32(4)),
        (np.concatenate([_X[:1], floats((1, 3)) + 9]),),
    ),
    Case(
        "a row replaced from before",
        DynamicUpdateSlice(),
        (_X, floats((1, 3)) + 9, np.int64([-3, 5])),
        (np.concatenate([floats((1, 3)) + 9, _X[1:]]),),
    ),
    Case("a scalar replaced", hlo.HloDynamicUpdateSlice(), (np.array(1, np.float32), np.float32(2)), (np.float32(2),)),
    Case(
        "margins of two sides",
        hlo.HloPad((1, 0), (0, 2), (0, 0)),
        (_X, np.float32(9)),
        (np.pad(_X, ((1, 0), (0, 2)), constant_values=9),),
    ),
    Case("only what is cut", hlo.HloPad((-1, 0), (0, -2), (0, 0)), (_X, np.float32(9)), (_X[1:, :1],)),
    Case(
        "set apart and cut on both sides",
        hlo.HloPad((-1,), (-2,), (2,)),
        (np.int32([1, 2, 3]), np.int32(7)),
        (np.int32([7, 7, 2, 7]),),
    ),
    Case(
        "set apart in two dimensions",
        hlo.HloPad((0, 1), (1, 0), (1, 2)),
        (np.int32([[1, 2], [3, 4]]), np.int32([[7]]).reshape(())),
        (np.int32([[7, 1, 7, 7, 2], [7] * 5, [7, 3, 7, 7, 4], [7] * 5]),),
    ),
    Case(
        "cut whole, then filled up",
        hlo.HloPad((-5,), (7,), (0,)),
        (np.int32([1, 2]), np.int32(7)),
        (np.full(4, 7, np.int32),),
    ),
    Case(
        "nothing with margins",
        hlo.HloPad((1,), (1,), (3,)),
        (np.zeros(0, np.int32), np.int32(7)),
        (np.full(2, 7, np.int32),),
    ),
    Case(
        "margins that leave nothing",
        hlo.HloPad((-1,), (-1,), (0,)),
        (np.int32([1, 2]), np.int32(7)),
        (np.zeros(0, np.int32),),
    ),
    Case("a scalar without margins", hlo.HloPad((), (), ()), (np.float32(4), np.float32(7)), (np.float32(4),)),
    Case(
        "bytes in a scale with margins",
        hlo.HloPad((1, 0), (0, 0), (0, 1)),
        (_BYTES, np.int8(9)),
        (np.int8([[9] * 5, [1, 9, -2, 9, 3], [4, 9, 5, 9, -6]]),),
        (*_Q, *_Q),
        _Q,
    ),
    Case("bytes that count", hlo.HloIota(1, DType.INT8, (2, 3)), (), (np.int8([[0, 1, 2]] * 2),)),
    Case("bytes that count and wrap", hlo.HloIota(0, DType.UINT8, (258,)), (), (np.arange(258).astype(np.uint8),)),
    Case("nothing that counts", hlo.HloIota(1, DType.INT32, (0, 3)), (), (np.zeros((0, 3), np.int32),)),
    Case(
        "set apart in both dimensions",
        Dilate(),
        (np.int32([[1, 2], [3, 4]]), np.int64([3, 2]), np.int32(0)),
        (np.int32([[1, 0, 2], [0, 0, 0], [0, 0, 0], [3, 0, 4]]),),
        constant=(1,),
    ),
    Case(
        "nothing to set apart",
        Dilate(),
        (np.zeros((0, 1), np.int32), np.int64([3, 2]), np.int32(0)),
        (np.zeros((0, 1), np.int32),),
        constant=(1,),
    ),
    Case("rows of a table", HloGather((1,), (0,), (0,), 1, (1, 3)), (_X, np.int32([1, 0, 1])), (_X[[1, 0, 1]],)),
    Case(
        "columns of a cube, in front",
        HloGather((0, 2), (2,), (2,), 1, (2, 3, 1)),
        (_CUBE, np.int64([[3], [0]])),
        (np.ascontiguousarray(_CUBE[:, :, [3, 0]].transpose(0, 2, 1)),),
    ),
    Case(
        "neighbouring rows",
        HloGather((1, 2), (), (0,), 1, (2, 3)),
        (floats((4, 3)), np.int32([[0], [9]])),
        (np.stack([floats((4, 3))[:2], floats((4, 3))[2:]]),),
    ),
    Case(
        "elements of a cube",
        HloGather((1,), (1, 2), (2, 1), 1, (2, 1, 1)),
        (_CUBE, _PLACES),
        (np.stack([_CUBE[:, 2, 0], _CUBE[:, 0, 3], _CUBE[:, 1, 1]]),),
    ),
    Case(
        "blocks of a cube",
        HloGather((1, 2), (0,), (1, 2), 1, (1, 2, 2)),
        (_CUBE, _PLACES),
        (np.stack([_CUBE[0, :2, 2:], _CUBE[0, 1:, :2], _CUBE[0, 1:, 1:3]]),),
    ),
    Case(
        "one block",
        HloGather((0, 1), (1,), (2, 0), 0, (1, 1, 2)),
        (_CUBE, np.int32([1, 7])),
        (_CUBE[1:, 0, 1:3],),
    ),
    Case(
        "a part by no index",
        HloGather((1, 2), (), (), 1, (1, 2)),
        (_X, np.zeros((2, 0), np.int32)),
        (np.stack([_X[:1, :2]] * 2),),
    ),
    Case(
        "no rows",
        HloGather((1,), (0,), (0,), 1, (1, 3)),
        (_X, np.zeros((0, 1), np.int32)),
        (np.zeros((0, 3), np.float32),),
    ),
    Case("a row by a byte", HloGather((0,), (0,), (0,), 0, (1, 3)), (_X, np.uint8([200])), (_X[1],)),
    Case(
        "rows of bytes in a scale",
        HloGather((1,), (0,), (0,), 1, (1, 3)),
        (_BYTES, np.int32([[1], [0]])),
        (_BYTES[::-1],),
        _Q,
        _Q,
    ),
]
