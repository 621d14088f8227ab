"""Cases of scatters: windows, indices out of range, repeated indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from formulas import floats

from onert.ir import Array
from onert.ir.ops.data_movement.dense import SparseToDense
from onert.ir.ops.data_movement.gather import GatherNd, ScatterNd
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment
from onert.ir.ops.stablehlo.with_bodies import HloScatter

from .case import Case

_CUBE = floats((3, 4, 2))
_PAIRS = np.int64([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]])
_BLOCKS = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) + 20
_NAN = np.float32(np.nan)


def _scatter(
    name: str, dimensions: tuple[Any, ...], *arrays: Array, function: BinaryKind | None = BinaryKind.ADD
) -> Case:
    return Case(name, HloScatter(0, *dimensions, function, replaces=function is None), arrays)


def _replaced(name: str, dimensions: tuple[Any, ...], *arrays: Array) -> Case:
    return _scatter(name, dimensions, *arrays, function=None)


CASES = [
    _scatter("blocks added to a cube", ((2, 3), (0,), (1, 0), 2), _CUBE, _PAIRS, _BLOCKS),
    _replaced("blocks of a cube replaced", ((2, 3), (0,), (1, 0), 2), _CUBE, _PAIRS, _BLOCKS),
    _scatter("largest blocks", ((2, 3), (0,), (1, 0), 2), _CUBE, _PAIRS, _BLOCKS - 30, function=BinaryKind.MAXIMUM),
    _scatter(
        "products of integers",
        ((), (0,), (0,), 1),
        np.int32([1, 2, 3]),
        np.int32([[0], [2], [0], [-1]]),
        np.int32([10, 1 << 30, 30, 40]),
        function=BinaryKind.MUL,
    ),
    _scatter("columns, windows in front", ((0,), (1,), (1,), 1), floats((2, 3)), np.int32([[2], [0]]), floats((2, 2))),
    _scatter("places in no vector", ((), (0,), (0,), 1), np.int32([1, 2, 3]), np.int32([2, 2]), np.int32([5, 6])),
    _scatter(
        "places in the first dimension", ((1,), (0,), (0,), 0), floats((3, 2)), np.int64([[2, 0]]), floats((2, 2))
    ),
    _replaced("one part replaced", ((0, 1), (), (0, 1), 0), floats((3, 4)), np.int32([1, 2]), floats((2, 2)) + 9),
    _replaced("one part that leaves", ((0, 1), (), (0, 1), 0), floats((3, 4)), np.int32([2, 3]), floats((2, 2)) + 9),
    _replaced(
        "bytes replaced",
        ((1,), (0,), (0,), 1),
        np.int8([[1, 2], [3, 4]]),
        np.uint8([[1], [200]]),
        np.int8([[5, 6]] * 2),
    ),
    _replaced("all replaced", ((0, 1), (), (), 0), floats((2, 2)), np.zeros(0, np.int32), floats((2, 2)) + 9),
    _scatter(
        "either is true",
        ((), (0,), (0,), 1),
        np.array([True, False, False]),
        np.int32([[1], [1]]),
        np.array([True, False]),
        function=BinaryKind.LOGICAL_OR,
    ),
    _scatter("nothing added", ((1,), (0,), (0,), 1), floats((3, 2)), np.zeros((0, 1), np.int32), floats((0, 2))),
    Case(
        "rows added to a cube",
        ScatterNd(),
        (np.int64([[1, 0], [0, 1], [1, 0]]), np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([2, 2, 2])),
        (np.int32([[[0, 0], [3, 4]], [[6, 8], [0, 0]]]),),
        constant=(2,),
    ),
    Case(
        "whole tensors added",
        ScatterNd(),
        (np.zeros((2, 0), np.int32), np.float32([[1, 2], [3, 4]]), np.int32([2])),
        (np.float32([4, 6]),),
        constant=(2,),
    ),
    Case(
        "whole tensors picked",
        GatherNd(),
        (np.float32([1, 2]), np.zeros((3, 0), np.int32)),
        (np.float32([[1, 2]] * 3),),
    ),
    Case(
        "truth added",
        ScatterNd(),
        (np.int32([[2], [2]]), np.array([True, False]), np.int32([3])),
        (np.array([False, False, True]),),
        constant=(2,),
    ),
    Case(
        "a scalar's place",
        SparseToDense(),
        (np.int32(2), np.int64([4]), np.float32(5), np.float32(1)),
        (np.float32([1, 1, 5, 1]),),
        constant=(1,),
    ),
    Case(
        "one value at pairs of indices",
        SparseToDense(),
        (np.int64([[0, 1], [1, 1]]), np.int64([2, 2]), np.int8(9), np.int8([1])),
        (np.int8([[1, 9], [1, 9]]),),
        constant=(1,),
    ),
    *(
        Case(
            f"segments of special numbers: {kind.value}",
            UnsortedSegment(kind),
            (np.float32([[_NAN, 1], [2, _NAN], [np.inf, -np.inf]]), np.int32([1, 1, 0]), np.int32(3)),
            constant=(2,),
        )
        for kind in SegmentReduction
    ),
]
