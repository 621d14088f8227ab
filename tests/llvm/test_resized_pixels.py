"""Pictures with few channels resized several pixels at a time, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case, scaled

from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.target.isa import Isa, runnable

from .harness import whole_range
from .natively import evaluated, natively, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIZES = [
    ((2, 9, 11, 3), (5, 6)),
    ((1, 8, 8, 3), (16, 17)),
    ((1, 1, 5, 3), (3, 4)),
    ((1, 7, 30, 2), (4, 9)),
    ((2, 5, 6, 4), (7, 4)),
    ((1, 6, 9, 5), (6, 3)),
    ((1, 4, 5, 6), (9, 2)),
    ((1, 3, 4, 8), (6, 5)),
    ((1, 5, 1, 7), (2, 8)),
]
"""Pictures and their new heights and widths."""


@ISAS
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.int16], ids=lambda dtype: dtype.__name__)
def test_pictures_with_few_channels_match_their_definition_and_nothing_beyond_them_is_read(
    isa: Isa, dtype: Any
) -> None:
    for number, (shape, after) in enumerate(SIZES):
        op = ResizeBilinear(half_pixel_centers=number % 2 == 0, align_corners=number % 4 == 1)
        x = whole_range(np.int16, shape, number)
        x = (x / 77).astype(dtype) if dtype is np.float32 else x.astype(dtype)
        quantization = None if dtype is np.float32 else scaled(0.1)
        case = Case("", op, (x, np.int32(after)), quantization=(quantization,), result_quantization=(quantization,))
        graph = subgraph_of(case, constant=(1,))
        (found,) = natively(graph, [x], isa, 1)
        (wanted,) = evaluated(graph, [x])
        if dtype is np.float32:
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-4)
        else:
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(found, natively(graph, [x], isa, 3)[0])
