"""Cases of ONNX's image and signal operations; results by hand."""

from __future__ import annotations

import numpy as np
from formulas import floats, spread

from onert.ir.ops.data_movement.columns import FromColumns, PooledPlaces
from onert.ir.ops.reduction.coupling import CoupledProbabilities
from onert.ir.ops.reduction.determinant import Determinant, Inverse
from onert.ir.ops.reduction.scan import CumProd
from onert.ir.ops.vision_audio.boxes import BoxesPerClass, CountedBoxes, MaxRoiPool
from onert.ir.ops.vision_audio.fourier import Fourier, MelWeights
from onert.ir.ops.vision_audio.image_decoder import ImageDecoder, Pixels
from onert.ir.ops.vision_audio.interpolate import Interpolation
from onert.ir.ops.vision_audio.sampling import DeformConv, GridSample, Outside, RoiAlign

from .case import Case

_PLANE = np.float32([[[[1, 2], [3, 4]]]])
_ROWS = np.float32([[[1, 2, 3, 4]]])


def _at(*points: tuple[float, float]) -> np.ndarray:  # type: ignore[type-arg]
    return np.float32([[points]])


def _sampled(name: str, op: GridSample, points: list[tuple[float, float]], values: list[float]) -> Case:
    return Case(name, op, (_PLANE, _at(*points)), (np.float32([[[values]]]),))


_POINTS = (spread((2, 3, 2, 2), -180, 180) / 128).astype(np.float32)
_POINTS[0, 0] = [[np.nan, 0], [np.inf, -np.inf]]
_OFFSETS = floats((1, 3, 7)) * np.float32(2)
_OFFSETS[0, 0, 0], _OFFSETS[0, 1, 0], _OFFSETS[0, 2, 0] = np.nan, np.inf, -1e30
_REGIONS = np.float32([[0, 0, 9, 9], [1, 2, 7.5, 3.25], [6, 6, 2, 1], [-9, -4, 40, 30], [1e30, 2, -1e30, 4]])

CASES: list[Case] = [
    *(
        Case(
            f"planes, {sampling.name}, {outside.name}{', corners' if corners else ''}",
            GridSample(sampling, outside, corners=corners),
            (floats((2, 3, 4, 5)), _POINTS),
        )
        for sampling in Interpolation
        for outside in Outside
        for corners in (False, True)
    ),
    Case("rows at points", GridSample(Interpolation.CUBIC), (floats((2, 3, 7)), _POINTS.reshape(2, 6, 2)[..., :1])),
    _sampled("the middle, and a corner beside zeros", GridSample(), [(0, 0), (-1, -1)], [2.5, 0.25]),
    _sampled("the border goes on", GridSample(outside=Outside.BORDER), [(-1, -1), (9, 9)], [1, 4]),
    _sampled("nearest, x first", GridSample(Interpolation.NEAREST, corners=True), [(1, -1), (-1, 1)], [2, 3]),
    _sampled("mirrored at pixels' borders", GridSample(outside=Outside.REFLECTION), [(-1.5, -0.5), (1.5, 0.5)], [1, 4]),
    _sampled(
        "mirrored at pixels",
        GridSample(Interpolation.NEAREST, Outside.REFLECTION, corners=True),
        [(3, -1), (5, 1)],
        [1, 4],
    ),
    Case(
        "a cubic through a constant",
        GridSample(Interpolation.CUBIC, Outside.BORDER),
        (np.full((1, 1, 3, 3), 7, np.float32), _at((0.3, -0.2))),
        (np.full((1, 1, 1, 1), 7, np.float32),),
    ),
    Case(
        "a picture in three dimensions",
        GridSample(),
        (np.arange(8, dtype=np.float32).reshape(1, 1, 2, 2, 2), np.zeros((1, 1, 1, 1, 3), np.float32)),
        (np.full((1, 1, 1, 1, 1), 3.5, np.float32),),
    ),
    Case(
        "taps moved by half a pixel",
        DeformConv((1, 1), (1, 1), (0, 0, 0, 0)),
        (
            np.float32([[[[1, 3]]]]),
            np.full((1, 1, 1, 1), 2, np.float32),
            np.float32([[[[0, 0]], [[0.5, 0.5]]]]),
            np.float32([10]),
            np.float32([[[[1, 0.5]]]]),
        ),
        (np.float32([[[[14, 11.5]]]]),),
    ),
    Case(
        "two groups without offsets are a convolution",
        DeformConv((1, 1), (1, 1), (0, 0, 0, 0), groups=2, offset_groups=2),
        (
            np.float32([[[[1]], [[2]]]]),
            np.float32([[[[3]]], [[[4]]]]),
            np.zeros((1, 4, 1, 1), np.float32),
        ),
        (np.float32([[[[3]], [[8]]]]),),
    ),
    Case(
        "taps of two groups moved far, each with a share of its own",
        DeformConv((2, 1), (1, 2), (1, 0, 0, 2), groups=2, offset_groups=2),
        (
            floats((2, 4, 5, 6)),
            floats((6, 2, 2, 3)),
            floats((2, 24, 3, 4)) * np.float32(3),
            floats((6,)),
            floats((2, 12, 3, 4)),
        ),
    ),
    Case(
        "moved taps of lines",
        DeformConv((1,), (1,), (1, 1)),
        (floats((1, 3, 7)), floats((2, 3, 3)), _OFFSETS),
    ),
    *(
        Case(
            f"regions of {samples} samples{', the largest' * largest}{', by half pixels' * half}",
            RoiAlign(3, 2, samples, 0.5, half, largest),
            (floats((2, 3, 5, 6)), _REGIONS, np.int32([0, 1, 1, 0, 0])),
        )
        for samples, largest, half in ((2, False, True), (3, True, False), (1, False, False), (0, False, True))
    ),
    Case(
        "a region is the mean of its samples",
        RoiAlign(1, 1, 2),
        (_PLANE, np.float32([[0, 0, 2, 2], [0, 0, 1, 1]]), np.int64([0, 0])),
        (np.float32([[[[2.5]]], [[[1.375]]]]),),
    ),
    Case(
        "the largest sample of a region of at least a pixel",
        RoiAlign(1, 1, 1, half_pixel=False, largest=True),
        (_PLANE, np.float32([[0.5, 0.5, 0.5, 0.5]]), np.int64([0])),
        (np.float32([[[[4]]]]),),
    ),
    Case(
        "one of two boxes on each other goes",
        BoxesPerClass(),
        (
            np.float32([[[0, 0, 1, 1], [1, 0.9, 0, 0], [2, 2, 3, 3]]]),
            np.float32([[[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]]]),
            np.int64(3),
            np.float32(0.5),
            np.float32(0.25),
        ),
        (np.int64([[0, 0, 0], [0, 0, 2], [0, 1, 2]]),),
    ),
    Case(
        "boxes by their centres, one of a class at most",
        BoxesPerClass(centred=True),
        (np.float32([[[0, 0, 2, 2], [0, 0, 1, 1]]]), np.float32([[[0.1, 0.2]]]), np.int64([1])),
        (np.int64([[0, 0, 1]]),),
    ),
    *(
        Case(
            f"boxes in memory for more, {kind.__name__} says how many stay",
            CountedBoxes(4),
            (
                np.float32([[[0, 0, 1, 1], [1, 0.9, 0, 0], [2, 2, 3, 3]]]),
                np.float32([[[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]]]),
                kind(2),
                np.float32(0.5),
                np.float32(0.25),
            ),
            (np.int64([[0, 0, 0], [0, 0, 2], [0, 1, 2], [0, 0, 0]]), np.int64(3)),
            constant=(2,),
        )
        for kind in (np.int32, np.int64)
    ),
    Case(
        "boxes of two pictures that score anything, and nothing",
        CountedBoxes(6, centred=True),
        (
            np.float32([[[0, 0, 2, 2], [9, 9, 1, 1], [9, 9, 1, 1]], [[0, 0, 2, 2], [9, 9, 1, 1], [5, 5, 1, 1]]]),
            np.float32([[[0.1, -np.inf, np.nan]], [[0.1, 0.2, np.nan]]]),
            np.int64([9]),
        ),
        (np.int64([[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 2], [0, 0, 0]]), np.int64(5)),
    ),
    Case(
        "two cells of a region",
        MaxRoiPool(1, 2),
        (_PLANE, np.float32([[0, 0, 0, 1, 1]])),
        (np.float32([[[[3, 4]]]]),),
    ),
    Case(
        "an impulse has all frequencies",
        Fourier(),
        (np.float32([[1], [0], [0], [0]]), np.int64(0)),
        (np.float32([[1, 0]] * 4),),
        constant=(1,),
    ),
    Case(
        "half of the frequencies of a longer signal",
        Fourier(half=True),
        (np.float32([[1], [1]]), np.int64(-2), np.int64(4)),
        (np.float32([[2, 0], [1, -1], [0, 0]]),),
        constant=(1, 2),
    ),
    Case(
        "back from half of them",
        Fourier(inverse=True, half=True),
        (np.float32([[4, 0], [0, 0], [0, 0]]), np.int64(0)),
        (np.ones((4, 1), np.float32),),
        constant=(1,),
    ),
    *(
        Case(
            f"{'back' if inverse else 'forth'}, {'half of ' * half}{parts} numbers each, of {length} {dtype.__name__}",
            Fourier(inverse, half),
            (floats((2, 5, 3, parts)).astype(dtype), np.int64(1), *((np.int64(length),) if length != 5 else ())),
            constant=(1, 2),
        )
        for dtype in (np.float32, np.float64)
        for inverse, half, parts in ((False, False, 1), (False, False, 2), (True, False, 2), (True, True, 2))
        for length in (4, 5, 8)
    ),
    Case(
        "half of the frequencies of many frames",
        Fourier(half=True),
        (floats((2, 3, 100, 1)), np.int64(2), np.int64(128)),
        constant=(1, 2),
    ),
    Case(
        "one band",
        MelWeights(),
        (np.int64(1), np.int64(4), np.int64(8), np.float32(0), np.float32(4)),
        (np.float32([[1], [0], [0]]),),
        constant=(0, 1),
    ),
    *(
        Case(
            f"{dtype.__name__} blocks {name}",
            op,
            (spread((2, 12, blocks), -90, 90).astype(dtype), np.int64(picture), np.int64(block)),
            constant=(1, 2),
        )
        for name, op, blocks, picture, block in (
            ("apart, with margins", FromColumns((2, 1), (1, 2), (1, 0, 0, 2)), 9, [5, 5], [2, 3]),
            (
                "beside each other, cropped and short of the end",
                FromColumns((2, 3), (1, 1), (1, 0, 0, 0)),
                4,
                [3, 7],
                [2, 2],
            ),
        )
        for dtype in (np.float32, np.float64, np.int8, np.int64)
    ),
    *(
        Case(
            f"blocks of {channels} channels that overlap in pieces, with margins",
            FromColumns((2, 2), (1, 1), (0, 1, 2, 0)),
            (spread((2, channels * 15, 6), -9, 9), np.int64([5, 6]), np.int64([3, 5])),
            constant=(1, 2),
        )
        for channels in (2, 9)
    ),
    *(
        Case(
            f"places in {dtype.__name__} windows with margins, {order}",
            PooledPlaces((2, 3), (2, 1), (1, 2), (1, 0, 0, 2), order == "columns first"),
            (spread((2, 3, 5, 4), -9, 9).astype(dtype),),
        )
        for dtype, order in ((np.float32, "columns first"), (np.int8, "rows first"), (np.float64, "rows first"))
    ),
    Case(
        "blocks that meet are added",
        FromColumns(),
        (np.float32([[[1, 2], [3, 4]]]), np.int64([3]), np.int64([2])),
        (np.float32([[[1, 5, 4]]]),),
        constant=(1, 2),
    ),
    Case(
        "blocks apart, with a pad",
        FromColumns((2,), (1,), (1, 0)),
        (np.float32([[[1, 2], [3, 4]]]), np.int64([3]), np.int64([2])),
        (np.float32([[[3, 2, 4]]]),),
        constant=(1, 2),
    ),
    Case("places in a row", PooledPlaces((2,), (2,), (1,), (0, 0)), (_ROWS,), (np.int64([[[1, 3]]]),)),
    Case(
        "places in columns of two planes, a pad before",
        PooledPlaces((2, 2), (2, 2), (1, 1), (1, 1, 1, 1), columns_first=True),
        (np.float32([[[[1, 2], [3, 4]], [[4, 3], [2, 1]]]]),),
        (np.int64([[[[0, 2], [1, 3]], [[4, 6], [5, 7]]]]),),
    ),
    Case(
        "determinants",
        Determinant(),
        (np.float32([[[1, 2], [3, 4]], [[2, 0], [0, 3]]]),),
        (np.float32([-2, 6]),),
    ),
    Case(
        "inverses, one of which there is not",
        Inverse(),
        (np.float32([[[1, 2], [3, 4]], [[2, 1], [4, 2]]]),),
        (np.float32([[[-2, 1], [1.5, -0.5]], [[np.nan, np.nan], [np.nan, np.nan]]]),),
    ),
    Case(
        "two classes, one more probable, and two that are alike",
        CoupledProbabilities(),
        (np.float32([[[0, 0.75], [0.25, 0]], [[0.5, 0.5], [0.5, 0.5]]]),),
        (np.float32([[0.75, 0.25], [0.5, 0.5]]),),
    ),
    Case("a running product", CumProd(), (np.int32([1, 2, 3]), np.int32(0)), (np.int32([1, 2, 6]),), constant=(1,)),
    Case(
        "a running product of the others from the end",
        CumProd(exclusive=True, reverse=True),
        (np.float32([[1, 2, 3]]), np.int32([-1])),
        (np.float32([[6, 3, 1]]),),
        constant=(1,),
    ),
    Case(
        "two pixels",
        ImageDecoder(),
        (np.frombuffer(b"P6 2 1 255\n\x01\x02\x03\xff\x80\x00", np.uint8),),
        (np.uint8([[[1, 2, 3], [255, 128, 0]]]),),
    ),
    Case(
        "two pixels the other way round",
        ImageDecoder(Pixels.BGR),
        (np.frombuffer(b"P6 2 1 255\n\x01\x02\x03\xff\x80\x00", np.uint8),),
        (np.uint8([[[3, 2, 1], [0, 128, 255]]]),),
    ),
]
