"""Pictures assembled from overlapping blocks, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.data_movement.columns import FromColumns
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, natively, single

CASES = {
    "one axis": (FromColumns(), (2, 3, 40), [42], [3]),
    "one axis, more padding than blocks reach": (FromColumns(pads=(5, 4)), (1, 6, 44), [37], [3]),
    "two axes": (FromColumns(pads=(1, 1, 1, 1)), (2, 27, 6 * 37), [6, 37], [3, 3]),
    "rows apart, steps apart": (FromColumns((2, 1), (1, 3), (0, 2, 1, 4)), (1, 12, 4 * 38), [8, 35], [3, 2]),
    "short rows": (FromColumns(pads=(1, 1, 1, 1)), (2, 18, 5 * 13), [5, 13], [3, 3]),
    "long rows": (FromColumns((2, 1), pads=(2, 2, 1, 3)), (1, 10, 3 * 150), [3, 149], [2, 5]),
    "rows that no block meets": (FromColumns((3, 1)), (1, 4, 3 * 48), [8, 49], [2, 2]),
}


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("name", CASES)
def test_overlapping_blocks_are_added_where_they_meet(name: str, isa: Isa) -> None:
    op, shape, sizes, block = CASES[name]
    x = np.random.default_rng(1).integers(-90, 90, shape).astype(np.float32)
    graph, inputs = single(op, x, np.int64(sizes), np.int64(block), constant=(1, 2))
    assert_close(natively(graph, inputs, isa), evaluated(graph, inputs))
