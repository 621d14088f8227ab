"""Cases of operations that ONNX has and TFLite lacks; results by hand, some from ONNX's operator pages."""

from __future__ import annotations

import math

import numpy as np
from formulas import floats, spread

from onert.ir.ops.data_movement.element_indices import (
    Combination,
    GatherElements,
    OverwrittenSlices,
    ScatterElements,
    ScatterSlices,
)
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding

from .case import Case

_SQUARE = np.float32([[1, 2], [3, 4]])
_ROWS = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
_LINE = np.float32([[1, 2, 3, 4]])


def _function(kind: UnaryKind, *pairs: tuple[float, float]) -> Case:
    x, y = (np.float32(side) for side in zip(*pairs, strict=True))
    return Case(f"{kind.name.lower()} of a few", Unary(kind), (x,), (y,))


def _resized(name: str, op: Interpolate, expected: list[float], *, sizes: int | None = None) -> Case:
    inputs = (_LINE,) if sizes is None else (_LINE, np.array([sizes]))
    return Case(name, op, inputs, (np.float32([expected]),), constant=(1,))


CASES: list[Case] = [
    _function(UnaryKind.TAN, (0, 0), (math.pi / 4, 1)),
    _function(UnaryKind.ASIN, (0, 0), (1, math.pi / 2)),
    _function(UnaryKind.ACOS, (1, 0), (-1, math.pi)),
    _function(UnaryKind.ATAN, (0, 0), (1, math.pi / 4)),
    _function(UnaryKind.SINH, (0, 0), (1, (math.e - 1 / math.e) / 2)),
    _function(UnaryKind.COSH, (0, 1), (1, (math.e + 1 / math.e) / 2)),
    _function(UnaryKind.ASINH, (0, 0), ((math.e - 1 / math.e) / 2, 1)),
    _function(UnaryKind.ACOSH, (1, 0), ((math.e + 1 / math.e) / 2, 1)),
    _function(UnaryKind.ATANH, (0, 0), ((math.e**2 - 1) / (math.e**2 + 1), 1)),
    _function(UnaryKind.SOFTPLUS, (0, math.log(2)), (200, 200), (-200, 0)),
    Case(
        "elements along rows",
        GatherElements(1),
        (_SQUARE, np.array([[0, 0], [1, 0]])),
        (np.float32([[1, 1], [4, 3]]),),
    ),
    Case(
        "elements along columns",
        GatherElements(),
        (_ROWS, np.array([[1, 2, 0], [2, 0, 0]])),
        (np.float32([[4, 8, 3], [7, 2, 3]]),),
    ),
    Case(
        "elements of a part",
        GatherElements(-2),
        (floats((3, 4, 5)), spread((2, 6, 3), 0, 3)),
        (np.take_along_axis(floats((3, 4, 5))[:2, :, :3], spread((2, 6, 3), 0, 3), 1),),
    ),
    Case(
        "put along rows",
        ScatterElements(1),
        (np.float32([[1, 2, 3, 4, 5]]), np.array([[1, 3]]), np.float32([[1.5, 2.5]])),
        (np.float32([[1, 1.5, 3, 2.5, 5]]),),
    ),
    Case(
        "the last of two counts",
        ScatterElements(1),
        (np.float32([[1, 2, 3]]), np.array([[1, 1]]), np.float32([[7, 8]])),
        (np.float32([[1, 8, 3]]),),
    ),
    Case(
        "both of two are added",
        ScatterElements(1, Combination.ADD),
        (np.float32([[1, 2, 3]]), np.array([[1, 1]]), np.float32([[7, 8]])),
        (np.float32([[1, 17, 3]]),),
    ),
    Case(
        "rows are put in",
        ScatterSlices(),
        (_ROWS, np.array([[2], [0]]), np.float32([[1, 1, 1], [2, 2, 2]])),
        (np.float32([[2, 2, 2], [4, 5, 6], [1, 1, 1]]),),
    ),
    Case(
        "rows that are about to be replaced",
        OverwrittenSlices(),
        (_ROWS, np.float32([[1, 1, 1], [2, 2, 2]]), np.array([[2], [0]])),
        (np.float32([[7, 8, 9], [1, 2, 3]]), np.array([[2], [0]]), np.array(True)),
    ),
    Case(
        "rows but for one without a place",
        ScatterSlices(skips=True),
        (_ROWS, np.array([[2], [-1], [0]]), np.float32([[1, 1, 1], [3, 3, 3], [2, 2, 2]])),
        (np.float32([[2, 2, 2], [4, 5, 6], [1, 1, 1]]),),
    ),
    Case(
        "rows that are about to be replaced but for one without a place",
        OverwrittenSlices(skips=True),
        (_ROWS, np.float32([[1, 1, 1], [2, 2, 2]]), np.int32([[-1], [1]])),
        (np.float32([[0, 0, 0], [4, 5, 6]]), np.int32([[-1], [1]]), np.array(True)),
    ),
    Case(
        "elements are multiplied",
        ScatterSlices(Combination.MUL),
        (_SQUARE, np.array([[0, 1], [0, 1], [1, 0]]), np.float32([2, 3, -1])),
        (np.float32([[1, 12], [-3, 4]]),),
    ),
    Case(
        "the largest of all",
        ScatterSlices(Combination.MAX),
        (_SQUARE, np.zeros((1, 0), np.int64), np.float32([[[3, 0], [0, 9]]])),
        (np.float32([[3, 2], [3, 9]]),),
    ),
    _resized(
        "each twice",
        Interpolate(Interpolation.NEAREST, (1,), scales=(2.0,)),
        [1, 1, 2, 2, 3, 3, 4, 4],
    ),
    _resized(
        "halves with centres on centres",
        Interpolate(Interpolation.LINEAR, (1,), scales=(2.0,)),
        [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4],
    ),
    _resized(
        "corners on corners",
        Interpolate(Interpolation.LINEAR, (1,), Coordinates.ALIGN_CORNERS),
        [1, 1.5, 2, 2.5, 3, 3.5, 4],
        sizes=7,
    ),
    _resized(
        "every other one",
        Interpolate(Interpolation.NEAREST, (1,), Coordinates.ASYMMETRIC, Rounding.FLOOR),
        [1, 3],
        sizes=2,
    ),
    _resized(
        "the one that a centre lies in, counted from the border",
        Interpolate(Interpolation.NEAREST, (1,), Coordinates.TF_NEAREST, Rounding.FLOOR),
        [1, 2, 2, 3, 4, 4],
        sizes=6,
    ),
    _resized(
        "the next one, but as long as before",
        Interpolate(Interpolation.NEAREST, (1,), Coordinates.TF_NEAREST, Rounding.CEIL),
        [1, 2, 3, 4],
        sizes=4,
    ),
    _resized(
        "the next one where it shrinks",
        Interpolate(Interpolation.NEAREST, (1,), Coordinates.ASYMMETRIC, Rounding.OUTWARD, (0.75,)),
        [1, 3, 4],
    ),
    _resized(
        "the one before where it grows",
        Interpolate(Interpolation.NEAREST, (1,), Coordinates.ASYMMETRIC, Rounding.OUTWARD, (1.25,)),
        [1, 1, 2, 3, 4],
    ),
    _resized(
        "wide weights where it shrinks",
        Interpolate(Interpolation.LINEAR, (1,), antialias=True),
        [1.625, 3.375],
        sizes=2,
    ),
    _resized(
        "cubic between two",
        Interpolate(Interpolation.CUBIC, (1,), Coordinates.ALIGN_CORNERS),
        [1, 2, 3, 4],
        sizes=4,
    ),
    *(
        Case(name, op, (floats(shape), np.array(sizes)), constant=(1,))
        for name, op, shape, sizes in (
            ("an image, nearest", Interpolate(Interpolation.NEAREST, (1, 2)), (2, 3, 4, 2), (6, 3)),
            ("an image, each twice", Interpolate(Interpolation.NEAREST, (1, 2)), (2, 3, 4, 2), (6, 8)),
            ("an image as it is, but for one axis", Interpolate(Interpolation.CUBIC, (1, 2)), (1, 5, 4, 3), (5, 7)),
            ("all axes, nearest", Interpolate(Interpolation.NEAREST, (0, 1, 2)), (2, 3, 4), (3, 5, 2)),
            ("lines far apart, linear", Interpolate(Interpolation.LINEAR, (0, 2)), (2, 3, 4, 20), (3, 7)),
            ("an image, linear", Interpolate(Interpolation.LINEAR, (1, 2)), (2, 3, 4, 2), (6, 9)),
            ("an image, one axis", Interpolate(Interpolation.LINEAR, (2,)), (2, 3, 4, 2), (9,)),
            ("an image, cubic", Interpolate(Interpolation.CUBIC, (1, 2)), (1, 5, 4, 3), (3, 7)),
            ("planes, linear", Interpolate(Interpolation.LINEAR, (2, 3)), (2, 3, 4, 5), (3, 7)),
            ("planes, nearest", Interpolate(Interpolation.NEAREST, (2, 3)), (2, 3, 4, 5), (3, 7)),
            ("a long axis", Interpolate(Interpolation.CUBIC, (1,), antialias=True), (2, 70, 3), (33,)),
        )
    ),
    _resized(
        "a part, and beyond it",
        Interpolate(Interpolation.LINEAR, (1,), Coordinates.CROP, starts=(0.0,), ends=(2.0,), extrapolation=-1.0),
        [1, 3, -1, -1],
        sizes=4,
    ),
    *(
        Case(
            f"a part of planes, {how.value}",
            Interpolate(
                how, (2, 3), Coordinates.CROP, starts=(0.25, -0.5), ends=(1.0, 0.75), extrapolation=2.5, cubic=-0.5
            ),
            (floats((2, 3, 4, 5)), np.array([3, 6])),
            constant=(1,),
        )
        for how in Interpolation
    ),
    Case(
        "a part that an operand says",
        Interpolate(Interpolation.LINEAR, (1,), Coordinates.CROP, extrapolation=7.0),
        (_LINE, np.array([4]), None, np.float32([0, 2])),
        (np.float32([[1, 3, 7, 7]]),),
        constant=(1, 3),
    ),
    *(
        Case(
            f"{dtype.__name__}, {how.value}",
            Interpolate(how, (1, 2), cubic=-0.5),
            (spread((2, 3, 4, 2), *limits).astype(dtype), np.array([6, 8])),
            constant=(1,),
        )
        for how in (Interpolation.LINEAR, Interpolation.CUBIC)
        for dtype, limits in (
            (np.uint8, (0, 255)),
            (np.int8, (-128, 127)),
            (np.int16, (-(1 << 15), (1 << 15) - 1)),
            (np.int32, (-1000000, 1000000)),
            (np.float64, (-5, 5)),
        )
    ),
    Case(
        "a part of bytes, and beyond it",
        Interpolate(Interpolation.LINEAR, (1,), Coordinates.CROP, starts=(0.0,), ends=(1.5,), extrapolation=999.0),
        (np.uint8([[1, 3, 5]]), np.array([4])),
        constant=(1,),
    ),
    Case(
        "a size of nothing",
        Interpolate(Interpolation.CUBIC, (0, 1)),
        (floats((3, 4)), np.array([5, 0])),
        (np.zeros((5, 0), np.float32),),
        constant=(1,),
    ),
    *(
        Case(
            f"three axes of {np.dtype(dtype)}, {combination.name.lower()}",
            ScatterElements(-2, combination),
            (
                spread((3, 5, 4), -9, 9).astype(dtype),
                spread((2, 6, 3), 0, 4).astype(index),
                spread((2, 6, 3), 1, 4).astype(dtype),
            ),
        )
        for combination, dtypes, index in (
            (Combination.REPLACE, (np.int8,), np.int32),
            (Combination.ADD, (np.float32,), np.int64),
            (Combination.MUL, (np.int32,), np.int32),
            (Combination.MAX, (np.int64, np.float32), np.int64),
            (Combination.MIN, (np.float32,), np.int32),
        )
        for dtype in dtypes
    ),
    Case(
        "nothing is put",
        ScatterElements(),
        (floats((3, 4)), np.zeros((0, 4), np.int64), np.zeros((0, 4), np.float32)),
        (floats((3, 4)),),
    ),
]
