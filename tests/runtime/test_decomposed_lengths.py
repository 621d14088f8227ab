"""Operations that are decomposed into products and gathers run natively at every length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from compilations import compilations
from formulas import floats

import onert
from onert.backend import EvaluatingKernel
from onert.ir import Array, DType, Op, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.data_movement.columns import FromColumns, PooledPlaces
from onert.ir.ops.reduction.norm import InstanceNorm
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.vision_audio.audio import AudioSpectrogram, Mfcc
from onert.ir.ops.vision_audio.fourier import Fourier
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor
from onert.ir.ops.vision_audio.sampling import DeformConv, RoiAlign

ONES = np.ones(3, np.float32)
LENGTHS = (5, 9, 12, 5, 17, 30)
FLOAT, DOUBLE, LONG = DType.FLOAT32, DType.FLOAT64, DType.INT64

Operand = tuple[DType, Callable[[int], tuple[int, ...]]]
"""The element type of an input, and its shape for a length."""

LINEAR, CUBIC = Interpolation.LINEAR, Interpolation.CUBIC
_spread = partial(Interpolate, axes=(1, 2), antialias=True)
SAME = Conv2D(Padding.SAME, 2, 1), np.float64(floats((3, 3, 3, 2))), np.float64(floats((3,)))
DEFORMED = DeformConv((1, 1), (1, 1), (1, 1, 1, 1))
TABLE: dict[str, tuple[Op, tuple[Operand | Array, ...]]] = {
    "frames": (Fourier(half=True), ((FLOAT, lambda n: (n, 40, 1)), np.int64(1))),
    "signals": (Fourier(), ((FLOAT, lambda n: (2, n, 1)), np.int64(1))),
    "half of their frequencies": (Fourier(half=True), ((FLOAT, lambda n: (2, n, 1)), np.int64(1))),
    "sound": (AudioSpectrogram(8, 3), ((FLOAT, lambda n: (n + 8, 2)),)),
    "spectra": (Mfcc(), ((FLOAT, lambda n: (1, n, 257)), np.int32([16000]))),
    "regions": (
        RoiAlign(2, 3, 2),
        ((FLOAT, lambda n: (2, 3, n, 7)), (FLOAT, lambda n: (n, 4)), (LONG, lambda n: (n,))),
    ),
    "moved taps": (
        DEFORMED,
        ((FLOAT, lambda n: (1, 2, n, n + 2)), floats((3, 2, 3, 3)), (FLOAT, lambda n: (1, 18, n, n + 2))),
    ),
    "warped": (DenseImageWarp(), ((FLOAT, lambda n: (1, n, 6, 2)), (FLOAT, lambda n: (1, n, 6, 2)))),
    "features": (TransformTensor(3, 4), ((FLOAT, lambda n: (n, 5, 6, 2)), (FLOAT, lambda n: (n, 4, 4)))),
    "points": (TransformLandmarks(), ((FLOAT, lambda n: (1, n, 3)), (FLOAT, lambda n: (1, 4, 4)))),
    "matrices": (LandmarksToMatrix(0, 1, (0, 1, 2), 4, 2), ((FLOAT, lambda n: (n, 5, 3)),)),
    "pictures in double": (SAME[0], ((DOUBLE, lambda n: (1, n, 6, 2)), *SAME[1:])),
    "batches in double": (SAME[0], ((DOUBLE, lambda n: (n, 6, 6, 2)), *SAME[1:])),
    "averages in double": (Pool2D(Pooling.AVERAGE, 3, 2, Padding.SAME, 2, 1), ((DOUBLE, lambda n: (1, n, 6, 2)),)),
    "largest in double": (Pool2D(Pooling.MAX, 3, 2, Padding.SAME, 2, 1), ((DOUBLE, lambda n: (1, n, 6, 2)),)),
    "places": (PooledPlaces((2, 2), (2, 2), (1, 1), (0, 0, 0, 0)), ((FLOAT, lambda n: (1, 2, n, 6)),)),
    "smaller pictures": (_spread(LINEAR, scales=(0.4, 0.7)), ((FLOAT, lambda n: (1, 7 * n, n + 3, 2)),)),
    "pictures of one size": (_spread(CUBIC), ((FLOAT, lambda n: (1, 2 * n, 7 * n, 2)), np.int64([12, 20]))),
    "integers of one size": (_spread(LINEAR), ((DType.INT32, lambda n: (1, n, 9 * n, 2)), np.int64([9, 9]))),
    "parts of pictures": (
        Interpolate(LINEAR, (1, 2), Coordinates.CROP, starts=(0.1, 0.3), ends=(0.7, 1.0)),
        ((FLOAT, lambda n: (1, 2 * n, 9 * n, 2)), np.int64([7, 4])),
    ),
    "columns": (FromColumns(), ((FLOAT, lambda n: (n, 8, 9)), np.int64([4, 4]), np.int64([2, 2]))),
}


def _package(op: Op, operands: tuple[Operand | Array, ...]) -> Package:
    """The operation alone; input dimensions that depend on the length are dynamic."""
    b, given = Builder("main"), list[int]()
    for operand in operands:
        if not isinstance(operand, tuple):
            given.append(b.constant(operand))
            continue
        dtype, shape = operand
        dims = tuple(d if d == other else None for d, other in zip(shape(5), shape(9), strict=True))
        given.append(b.input(TensorType(dtype, dims)))
    return Package((Subgraphs((b.subgraph([b.add(op, *given)]),)),), "one")


@pytest.mark.parametrize("name", TABLE)
def test_a_decomposed_operation_is_native_and_matches_the_reference_at_every_length(name: str) -> None:
    op, operands = TABLE[name]
    package = _package(op, operands)
    reference, execution = (
        onert.Execution(onert.compile(package, **options)) for options in ({"backends": ("reference",)}, {})
    )
    for length in LENGTHS:
        shapes = [(dtype, shape(length)) for dtype, shape in (o for o in operands if isinstance(o, tuple))]
        inputs = [np.abs(floats(shape)).astype(dtype.numpy) % 2 for dtype, shape in shapes]
        (found,), (wanted,) = (each.run(inputs).values() for each in (execution, reference))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max(), strict=True)
    assert not any(isinstance(step.kernel, EvaluatingKernel) for step in execution.program.main.steps)


def _normed() -> Package:
    b = Builder("main")
    x = b.input(TensorType(FLOAT, (1, None, None, 3)))
    return Package((Subgraphs((b.subgraph([b.add(InstanceNorm(1e-5), x, *map(b.constant, (ONES, ONES)))]),)),), "norm")


def test_a_few_recipes_serve_instance_normalisation_of_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compilations(monkeypatch)
    execution = onert.Execution(onert.compile(_normed()))
    for length in range(20, 40):
        x = floats((1, length, length + 3, 3))
        (found,) = execution.run([x]).values()
        if length % 7 == 0:
            (alone,) = onert.Execution(onert.compile(_normed(), input_shapes={0: x.shape})).run([x]).values()
            np.testing.assert_array_equal(found, alone)
    assert len(compiled) < 10


FEW = ("signals", "half of their frequencies", "sound", "regions", "moved taps", "warped", "places")


@pytest.mark.parametrize("name", [*FEW, "smaller pictures", "parts of pictures"])
def test_a_few_recipes_serve_a_decomposed_operation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op, operands = TABLE[name]
    compiled = compilations(monkeypatch)
    execution = onert.Execution(onert.compile(_package(op, operands)))
    for length in range(20, 80, 3):
        shapes = [(dtype, shape(length)) for dtype, shape in (o for o in operands if isinstance(o, tuple))]
        execution.run([np.abs(floats(shape)).astype(dtype.numpy) % 2 for dtype, shape in shapes])
    assert len(compiled) < 6
    assert execution.program.stretch is not None
