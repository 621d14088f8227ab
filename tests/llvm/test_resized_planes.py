"""Planes resized to the nearest elements, row by row, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert_llvm.target.isa import Isa, runnable

from .natively import evaluated, natively, single

SIZES = [((2, 3, 5, 7), (11, 16)), ((1, 2, 9, 33), (9, 65)), ((1, 2, 8, 70), (3, 31)), ((2, 1, 1, 4), (4, 9))]
HOW = [(Coordinates.HALF_PIXEL, Rounding.DOWN_AT_HALF), (Coordinates.ALIGN_CORNERS, Rounding.CEIL)]


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64], ids=lambda dtype: dtype.__name__)
def test_planes_of_nearest_elements_match_their_definition(isa: Isa, dtype: Any) -> None:
    for (shape, after), (coordinates, rounding) in zip(SIZES * 2, np.repeat(HOW, len(SIZES), 0), strict=True):
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        op = Interpolate(Interpolation.NEAREST, (2, 3), coordinates, rounding)
        graph, inputs = single(op, x, np.int64(after), constant=(1,))
        found = natively(graph, inputs, isa, 1)
        np.testing.assert_array_equal(found, evaluated(graph, inputs))
        np.testing.assert_array_equal(found, natively(graph, inputs, isa, 3))
