"""The end of a row that is the start of the next: columns outside the image for both rows."""

from __future__ import annotations

from itertools import product

import pytest

from onert_llvm.kernels.contraction.direct.sliding_window import slide, together
from onert_llvm.target.isa import target

CASES = [c for c in product(range(1, 6), range(1, 4), range(1, 3), range(4), range(1, 8)) if c[3] < c[0] * c[2]]


@pytest.mark.parametrize("right", [0, 1, 3])
def test_steps_shared_by_rows_read_only_padding(right: int) -> None:
    isa = target("native")
    for window, stride, dilation, pad, size in CASES:
        out = (size + pad + right - (window - 1) * dilation - 1) // stride + 1
        if out < 1:
            continue
        shared = together(window, stride, dilation, pad, size, out)["shared"]
        path = slide((1, window), stride, dilation, isa.f32, isa)
        (part,) = path.parts(isa, 1)
        assert shared <= part.carried
        step = dilation * path.stride
        for first in range(min(step // stride, out)):
            count = -(-(out - first) // (step // stride))
            begin = first * stride - pad - part.carried * step
            steps = [[begin + m * step + c * dilation for c in part.columns] for m in range(count + part.carried)]
            outside = [all(not 0 <= x < size for x in columns) for columns in steps]
            assert all(outside[:shared])
            assert all(outside[len(outside) - shared :])


def test_rows_of_a_small_image_share_their_padding() -> None:
    assert together(3, 1, 1, 1, 7, 7)["shared"] == 1
    assert together(5, 1, 1, 2, 7, 7)["shared"] == 2
    assert together(3, 1, 1, 0, 9, 7)["shared"] == 0
    assert together(3, 1, 1, 1, 200, 200)["lines"] == 1
