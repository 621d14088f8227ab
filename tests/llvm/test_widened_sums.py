"""Sums of bytes as 32-bit integers read the bytes themselves, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.backend import Sequence
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.compile import fuse
from onert_llvm.target.isa import Isa, runnable

from .natively import evaluated, natively

SUMS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "rows": ((3, 5, 77), (2,)),
    "planes": ((2, 3, 9, 8), (2, 3)),
    "columns": ((2, 50, 35), (1,)),
    "all": ((7, 130), (0, 1)),
    "with an axis of size 1": ((4, 1, 66), (1, 2)),
}


def _summed(dtype: Any, shape: tuple[int, ...], axes: tuple[int, ...], *, kept: bool = False) -> Subgraph:
    b = Builder()
    x = b.input(TensorType(DType.from_numpy(np.dtype(dtype)), shape))
    wide = b.add(Cast(DType.INT32), x)
    total = b.add(Reduce(Reduction.SUM, keep_dims=True), wide, b.constant(np.int32(axes)))
    return b.model([total, wide] if kept else [total]).primary


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8], ids=["uint8", "int8"])
def test_sums_of_bytes_match_their_definition(isa: Isa, dtype: Any) -> None:
    info = np.iinfo(dtype)
    for shape, axes in SUMS.values():
        graph = _summed(dtype, shape, axes)
        x = np.random.default_rng(1).integers(info.min, info.max, shape, dtype, endpoint=True)
        np.testing.assert_array_equal(natively(graph, [x], isa), evaluated(graph, [x]))


@pytest.mark.parametrize(
    ("axes", "kept", "groups"), [((2,), False, 1), ((1, 2), False, 1), ((0, 2), False, 2), ((2,), True, 2)]
)
def test_a_sum_reads_bytes_if_its_axes_are_adjacent_and_nothing_else_reads_the_integers(
    axes: tuple[int, ...], kept: bool, groups: int
) -> None:
    graph = _summed(np.uint8, (2, 3, 40), axes, kept=kept)
    assert len(fuse(Sequence(graph, (0, 1), graph.inputs, graph.outputs))) == groups
