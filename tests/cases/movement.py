"""Cases of operations that move, select, join and create elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, DType, Op, Quantization, TensorType
from onert.ir.ops.data_movement.fill import Fill, PerLength, Range, TopK, Unique, Where
from onert.ir.ops.data_movement.gather import (
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherNd,
    HashtableLookup,
    OneHot,
    PutRow,
    ScatterNd,
)
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import (
    BatchToSpaceND,
    DepthToSpace,
    Reverse,
    ReverseSequence,
    SpaceToBatchND,
    SpaceToDepth,
    Transpose,
)
from onert.ir.ops.data_movement.part_update import Overwritten
from onert.ir.ops.data_movement.reshape import ExpandDims, Rank, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import (
    BroadcastArgs,
    BroadcastTo,
    Mirror,
    MirrorPad,
    Pad,
    Repeat,
    Slice,
    StridedSlice,
    Tile,
)

from .case import Case


def _n(*values: int) -> Array:
    return np.array(values, np.int32)


def _upto(*shape: int) -> Array:
    """0, 1, 2, ... in row-major order."""
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _rows(rows: Sequence[object]) -> Array:
    return np.array(rows, np.float32)


def _case(name: str, op: Op, inputs: Sequence[Array], *expected: Array, constant: tuple[int, ...] = ()) -> Case:
    return Case(name, op, tuple(inputs), expected, constant=constant)


_SHAPES = [
    _case("-1 is what is left", Reshape(), [_upto(2, 6), _n(3, -1)], _upto(3, 4), constant=(1,)),
    _case("by attribute", Reshape((4, 3)), [_upto(2, 6)], _upto(4, 3)),
    _case("every 1", Squeeze(), [_upto(1, 3, 1)], _upto(3)),
    _case("the last 1", Squeeze((-1,)), [_upto(1, 3, 1)], _upto(1, 3)),
    _case("at the end", ExpandDims(), [_upto(3), _n(-1)], _upto(3, 1), constant=(1,)),
    _case("as int64", ShapeOf(DType.INT64), [_upto(2, 3)], np.int64([2, 3])),
    _case("of a matrix", Rank(), [_upto(2, 3)], np.array(2, np.int32)),
    _case("larger of each", BroadcastArgs(), [_n(2, 1), _n(4, 1, 3)], _n(4, 2, 3), constant=(0, 1)),
    _case("of a scalar and another", BroadcastArgs(), [_n(), _n(4, 3)], _n(4, 3)),
]

_LAYOUTS = [
    _case("a matrix", Transpose(), [_upto(2, 3), _n(1, 0)], _rows([[0, 3], [1, 4], [2, 5]]), constant=(1,)),
    _case(
        "three axes around",
        Transpose(),
        [_upto(2, 2, 2), _n(2, 0, 1)],
        _rows([[[0, 2], [4, 6]], [[1, 3], [5, 7]]]),
        constant=(1,),
    ),
    _case("blocks of 2", SpaceToDepth(2), [_upto(1, 2, 4, 1)], _rows([0, 1, 4, 5, 2, 3, 6, 7]).reshape(1, 1, 2, 4)),
    _case("blocks of 2", DepthToSpace(2), [_upto(1, 1, 2, 4)], _rows([0, 1, 4, 5, 2, 3, 6, 7]).reshape(1, 2, 4, 1)),
    _case(
        "padded in front",
        SpaceToBatchND(),
        [_rows([[1, 2, 3]]).reshape(1, 3, 1), _n(2), _n(1, 0).reshape(1, 2)],
        _rows([[0, 2], [1, 3]]).reshape(2, 2, 1),
        constant=(1, 2),
    ),
    _case(
        "cropped in front",
        BatchToSpaceND(),
        [_rows([[0, 2], [1, 3]]).reshape(2, 2, 1), _n(2), _n(1, 0).reshape(1, 2)],
        _rows([1, 2, 3]).reshape(1, 3, 1),
        constant=(1, 2),
    ),
    _case("along the last axis", Reverse(), [_upto(2, 3), _n(-1)], _rows([[2, 1, 0], [5, 4, 3]]), constant=(1,)),
    _case(
        "the first entries of each row",
        ReverseSequence(1, 0),
        [_upto(2, 3), _n(2, 3)],
        _rows([[1, 0, 2], [5, 4, 3]]),
    ),
]

_PARTS = [
    _case("to the end", Slice(), [_upto(3, 3), _n(1, 0), _n(-1, 2)], _rows([[3, 4], [6, 7]]), constant=(1, 2)),
    _case(
        "backwards by two",
        StridedSlice(),
        [_upto(5), _n(4), _n(0), _n(-2)],
        _rows([4, 2]),
        constant=(1, 2, 3),
    ),
    _case(
        "the whole way",
        StridedSlice(begin_mask=1, end_mask=1),
        [_upto(4), _n(2), _n(2), _n(-1)],
        _rows([3, 2, 1, 0]),
        constant=(1, 2, 3),
    ),
    _case(
        "an axis dropped, one put in",
        StridedSlice(shrink_axis_mask=1, new_axis_mask=2),
        [_upto(2, 3), _n(1, 0, 1), _n(2, 0, 3), _n(1, 1, 1)],
        _rows([[4, 5]]),
        constant=(1, 2, 3),
    ),
    _case(
        "an ellipsis",
        StridedSlice(ellipsis_mask=1),
        [_upto(2, 2, 2), _n(0, 1), _n(0, 2), _n(1, 1)],
        _rows([[[1], [3]], [[5], [7]]]),
        constant=(1, 2, 3),
    ),
    _case("ends count from begins", StridedSlice(offset=True), [_upto(5), _n(2), _n(2), _n(1)], _rows([2, 3])),
    _case("zeros", Pad(), [_rows([[1, 2]]), _n(1, 0, 0, 1).reshape(2, 2)], _rows([[0, 0, 0], [1, 2, 0]])),
    _case("a value", Pad(), [_rows([1]), _n(1, 1).reshape(1, 2), _rows([9])], _rows([9, 1, 9])),
    Case(
        "the zero point",
        Pad(),
        (np.int8([5]), _n(0, 1).reshape(1, 2)),
        (np.int8([5, -3]),),
        (Quantization((0.5,), (-3,)),),
        (Quantization((0.5,), (-3,)),),
    ),
    _case(
        "without the border", MirrorPad(Mirror.REFLECT), [_upto(3), _n(2, 1).reshape(1, 2)], _rows([2, 1, 0, 1, 2, 1])
    ),
    _case(
        "with the border", MirrorPad(Mirror.SYMMETRIC), [_upto(3), _n(2, 1).reshape(1, 2)], _rows([1, 0, 0, 1, 2, 2])
    ),
    _case("twice across", Tile(), [_rows([[1, 2]]), _n(1, 2)], _rows([[1, 2, 1, 2]])),
    _case("columns", Repeat(1), [_upto(2, 3), _n(2, 0, 1)], _rows([[0, 0, 2], [3, 3, 5]])),
    _case("each row twice", Repeat(), [_upto(2, 1), _n(2)], _rows([[0], [0], [1], [1]]), constant=(1,)),
    _case("a column", BroadcastTo(), [_rows([[1], [2]]), _n(2, 2, 2)], _rows([[[1, 1], [2, 2]]] * 2)),
]

_JOINTS = [
    _case("columns", Concat(-1), [_rows([[1], [2]]), _rows([[3, 4], [5, 6]])], _rows([[1, 3, 4], [2, 5, 6]])),
    Case(
        "on two scales",
        Concat(0),
        (np.int8([4]), np.int8([4])),
        (np.int8([4, 8]),),
        (Quantization((0.5,), (0,)), Quantization((1.0,), (0,))),
        (Quantization((0.5,), (0,)),),
    ),
    _case("behind", Pack(1), [_rows([1, 2]), _rows([3, 4])], _rows([[1, 3], [2, 4]])),
    _case("columns", Unpack(2, -1), [_rows([[1, 3], [2, 4]])], _rows([1, 2]), _rows([3, 4])),
    _case("halves", Split(2), [_n(1), _upto(1, 4)], _rows([[0, 1]]), _rows([[2, 3]]), constant=(0,)),
    _case(
        "one size left open",
        SplitV(2),
        [_upto(4), _n(1, -1), np.array(0, np.int32)],
        _rows([0]),
        _rows([1, 2, 3]),
        constant=(1, 2),
    ),
]

_PICKS = [
    _case("rows", Gather(), [_upto(3, 2), _n(2, 0)], _rows([[4, 5], [0, 1]])),
    _case("every second column", Gather(1), [_upto(2, 5), _n(1, 3)], _rows([[1, 3], [6, 8]]), constant=(1,)),
    _case("one column", Gather(-1), [_upto(2, 3), _n(2).reshape(())], _rows([2, 5]), constant=(1,)),
    _case("rows twice", Gather(), [_upto(3, 1), _n(1, 1)], _rows([[1], [1]]), constant=(1,)),
    _case("of each batch", Gather(1, 1), [_upto(2, 2), _n(1, 0).reshape(2, 1)], _rows([[1], [2]])),
    _case("elements and rows", GatherNd(), [_upto(2, 2), _n(1, 0).reshape(1, 2)], _rows([2])),
    _case("rows", EmbeddingLookup(), [_n(1, 1), _upto(2, 3)], _rows([[3, 4, 5], [3, 4, 5]])),
    Case(
        "bytes as floats",
        EmbeddingLookup(),
        (_n(1), np.int8([[1, 2], [3, 4]])),
        (_rows([[1.5, 2]]),),
        (None, Quantization((0.5,), (0,))),
    ),
    Case(
        "bytes as floats, a scale for each row",
        EmbeddingLookup(),
        (_n(1, 0), np.int8([[1, 2], [3, 4]])),
        (_rows([[1, 1.5], [0, 0.25]]),),
        (None, Quantization((0.25, 0.5), (1, 1), 0)),
        constant=(1,),
    ),
    Case(
        "bytes as floats, a scale for each run",
        EmbeddingLookup(),
        (_n(1, 0), np.int8([[1, 2, 3, 4], [5, 6, 7, 8]])),
        (_rows([[5, 6, 14, 16], [0.25, 0.5, 1.5, 2]]),),
        (None, Quantization((0.25, 0.5, 1, 2), (0, 0, 0, 0), 1, 2)),
        constant=(1,),
    ),
    _case(
        "one there, one not",
        HashtableLookup(),
        [_n(7, 8), _n(5, 7), _upto(2, 2)],
        _rows([[2, 3], [0, 0]]),
        np.uint8([1, 0]),
    ),
    _case("twice the same place", ScatterNd(), [_n(1, 1).reshape(2, 1), _rows([2, 3]), _n(3)], _rows([0, 5, 0])),
    _case("outside is off", OneHot(), [_n(1, 5), np.array(2, np.int32), _rows(9), _rows(1)], _rows([[1, 9], [1, 1]])),
    _case("two rows", PutRow(), [_upto(3, 1), _rows([[8], [9]]), np.int32([1])], _rows([[0], [8], [9]])),
    _case("one row", PutRow(), [_upto(3, 2), _rows([[8, 9]]), np.array(1, np.int32)], _rows([[0, 1], [8, 9], [4, 5]])),
    _case(
        "a part that is moved so that it fits",
        Overwritten(),
        [_upto(4), _rows([8, 9]), _n(3)],
        _rows([2, 3]),
        _n(3),
        np.array(True),
    ),
    _case(
        "one row",
        Overwritten(clamps=False),
        [_upto(3, 2), _rows([[8, 9]]), np.array(1, np.int32)],
        _rows([[2, 3]]),
        np.array(1, np.int32),
        np.array(True),
    ),
    _case("moved so that it fits", DynamicUpdateSlice(), [_upto(4), _rows([8, 9]), _n(3)], _rows([0, 1, 8, 9])),
]

_MADE = [
    _case("sevens", Fill(), [_n(2, 1), np.array(7, np.int64)], np.int64([[7], [7]]), constant=(0,)),
    _case("downwards", Range(), [np.array(v, np.int32) for v in (5, 0, -2)], _n(5, 3, 1), constant=(0, 1, 2)),
    _case("for a length", PerLength(TensorType(DType.FLOAT32, (2, 1)), _rows([[0.5], [2]])), [], _rows([[0.5], [2]])),
    _case("empty", Range(may_be_empty=True), [np.array(v, np.int64) for v in (5, 3, 1)], np.zeros(0, np.int64)),
    _case("in halves", Range(), [np.array(v, np.float32) for v in (0, 1.2, 0.5)], _rows([0, 0.5, 1.0])),
    _case("first of equals first", TopK(), [_rows([1, 3, 3, 2]), np.array(3, np.int32)], _rows([3, 3, 2]), _n(1, 2, 3)),
    _case(
        "the least, first of equals first, NaN last",
        TopK(least=True),
        [_rows([3, np.nan, 1, np.inf, 1]), np.array(5, np.int32)],
        _rows([1, 1, 3, np.inf, np.nan]),
        _n(2, 4, 0, 3, 1),
    ),
    _case("places", Where(), [_rows([[0, 1], [2, 0]])], np.int64([[0, 1], [1, 0]])),
    _case("as they come", Unique(), [_n(3, 1, 3)], _n(3, 1), _n(0, 1, 0)),
]

CASES = [*_SHAPES, *_LAYOUTS, *_PARTS, *_JOINTS, *_PICKS, *_MADE]
