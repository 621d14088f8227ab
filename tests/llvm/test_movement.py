"""Data movement equals NumPy's, on every target and for elements of every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.backend import Settings
from onert.ir import ExecutionError, Op
from onert.ir.ops.data_movement.element_indices import GatherElements
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import (
    BatchToSpaceND,
    DepthToSpace,
    Reverse,
    SpaceToBatchND,
    SpaceToDepth,
    Transpose,
)
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Mirror, MirrorPad, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.compile import lowered
from onert_llvm.kernels.data_movement.strided_copy import Move
from onert_llvm.target.isa import Isa, runnable, target

from .harness import Array
from .natively import check, natively, sequence_of, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = (np.int8, np.int16, np.float32, np.int64, np.complex128)


def _numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


def _ints(*values: Any) -> Array:
    return np.array(values, np.int32)


X = (3, 5, 4, 6)
WIDE = (2, 40, 3, 33)
# operation, shape of the first operand, the other operands (all constant)
MOVED: list[tuple[Op, tuple[int, ...], tuple[Array, ...]]] = [
    (Transpose(), X, (_ints(3, 1, 0, 2),)),
    (Transpose(), X, (_ints(0, 2, 1, 3),)),
    (Transpose(), (37, 50), (_ints(1, 0),)),
    (Transpose(), (3, 21, 5, 8), (_ints(2, 0, 3, 1),)),
    (Transpose(), (2, 6, 4, 4), (_ints(0, 2, 3, 1),)),
    (Transpose(), (1, 128, 4, 32), (_ints(0, 2, 3, 1),)),
    (Transpose(), WIDE, (_ints(2, 3, 0, 1),)),
    (Transpose(), (1, 9, 70, 83), (_ints(0, 2, 3, 1),)),  # more rows, which are written one after the other
    (Transpose(), (83, 70), (_ints(1, 0),)),
    (Transpose(), (1024, 40), (_ints(1, 0),)),  # rows whose lines share a set of a first-level cache
    (Transpose(), (40, 1024), (_ints(1, 0),)),
    (Transpose(), (7,), (_ints(0),)),
    (Transpose(), (5, 2, 19), (_ints(0, 2, 1),)),  # few rows are interleaved
    (Transpose(), (4, 3, 33), (_ints(0, 2, 1),)),
    (Transpose(), (8, 2100), (_ints(1, 0),)),
    (Transpose(), (5, 19, 2), (_ints(0, 2, 1),)),  # and deinterleaved
    (Transpose(), (4, 33, 7), (_ints(0, 2, 1),)),
    (Transpose(), (2100, 8), (_ints(1, 0),)),
    (Transpose(), (9000, 3), (_ints(1, 0),)),
    (Slice(), X, (_ints(1, 0, 2, 3), _ints(2, 5, -1, 2))),
    (Slice(), (9000,), (_ints(11), _ints(-1))),
    (StridedSlice(), X, (_ints(2, 4, 0, 5), _ints(0, 0, 4, -7), _ints(-1, -2, 3, -1))),
    (StridedSlice(shrink_axis_mask=2, new_axis_mask=1), X, (_ints(0, 2, 1), _ints(0, 0, 3), _ints(1, 1, 1))),
    (StridedSlice(shrink_axis_mask=1), (7,), (_ints(5), _ints(6), _ints(1))),
    (StridedSlice(shrink_axis_mask=3), (4, 7), (_ints(3, -1), _ints(4, 0), _ints(1, 1))),
    (Reverse(), X, (_ints(1, 3),)),
    (Tile(), (3, 1, 5), (_ints(2, 3, 4),)),
    (Tile(), (1, 1), (_ints(3, 70),)),
    (BroadcastTo(), (4, 1, 3), (_ints(2, 4, 5, 3),)),
    (BroadcastTo(), (4, 1), (_ints(4, 150),)),
    (SpaceToDepth(2), (2, 4, 6, 5), ()),
    (DepthToSpace(2), (2, 4, 6, 12), ()),
    (ResizeNearestNeighbor(), (2, 3, 5, 4), (_ints(6, 15),)),
    (ResizeNearestNeighbor(half_pixel_centers=True), (2, 3, 5, 3), (_ints(7, 4),)),
    (ResizeNearestNeighbor(align_corners=True), (1, 8, 5, 1), (_ints(3, 9),)),
    (Pad(), X, (_ints([0, 0], [1, 2], [3, 0], [0, 70]),)),
    (Pad(), (2, 3, 4, 2, 2), (_ints([1, 0], [0, 0], [2, 2], [0, 1], [1, 1]),)),
    (MirrorPad(), (2, 5, 6, 3), (_ints([0, 1], [4, 2], [0, 5], [2, 0]),)),
    (MirrorPad(Mirror.SYMMETRIC), (4, 6), (_ints([4, 1], [0, 6]),)),
    (SpaceToBatchND(), (2, 5, 6, 3), (_ints(2, 3), _ints([1, 2], [0, 0]))),
    (SpaceToBatchND(), (2, 6, 3), (_ints(3), _ints([0, 0]).reshape(1, 2))),
    (BatchToSpaceND(), (12, 3, 4, 2), (_ints(2, 3), _ints([1, 2], [0, 5]))),
    (Reshape((-1,)), (300, 100), ()),
]


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("at", range(len(MOVED)), ids=lambda i: f"{i}-{type(MOVED[i][0]).__name__}")
def test_data_movement_of_one_operand_matches_its_definition(isa: Isa, dtype: Any, at: int) -> None:
    op, shape, others = MOVED[at]
    check(*single(op, _numbers(*shape, dtype=dtype), *others, constant=range(1, 1 + len(others))), isa)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tensors_are_concatenated_and_split(isa: Isa, dtype: Any, axis: int) -> None:
    parts = [_numbers(3, 5, 7, dtype=dtype) + i for i in range(3)]
    check(*single(Concat(axis), *parts), isa, threads=2)
    check(*single(Pack(axis), *parts), isa)
    whole = _numbers(6, 6, 6, dtype=dtype)
    check(*single(Unpack(6, axis), whole), isa)
    check(*single(Split(3), _ints(axis), whole, constant=(0,)), isa)
    check(*single(SplitV(3), whole, _ints(1, -1, 3), _ints(axis), constant=(1, 2)), isa)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
def test_scalars_are_packed_and_unpacked(isa: Isa, dtype: Any) -> None:
    check(*single(Pack(0), *(np.array(i, dtype) for i in (3, 1, 2))), isa)
    check(*single(Unpack(3, 0), _numbers(3, dtype=dtype)), isa)


@ISAS
def test_padding_may_have_a_computed_value(isa: Isa) -> None:
    margins = _ints([1, 2], [0, 3])
    check(*single(Pad(), _numbers(4, 70), margins, np.array([7], np.float32), constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128], ids=lambda d: d.__name__)
@pytest.mark.parametrize("wide", [np.int32, np.int64], ids=lambda d: d.__name__)
def test_gather_and_embedding_lookup_match_their_definition(isa: Isa, dtype: Any, wide: Any) -> None:
    rng = np.random.default_rng(0)
    x = _numbers(4, 6, 5, 3, dtype=dtype)
    indices = rng.integers(0, 4, (4, 3)).astype(wide)
    for op in (Gather(0), Gather(1), Gather(-1), Gather(2, 1)):
        check(*single(op, x, indices % 3), isa, threads=2)
    check(*single(GatherNd(), x, indices), isa)
    check(*single(GatherNd(), x, indices[0, :1]), isa)
    if wide is np.int32:
        check(*single(EmbeddingLookup(), indices[0], _numbers(4, 300)), isa)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_with_constant_indices_copies_runs(isa: Isa, dtype: Any, axis: int) -> None:
    """Repeated edges, mirrored, reversed, a single one, a range, and separate ones."""
    there = np.arange(19)
    runs = (*([0] * 9, there, [18] * 8), there[:0:-1], there[::-1], [7], there[5:12], [3, 3, 4])
    x = _numbers(*(19 if i == axis else n for i, n in enumerate((3, 5, 4))), dtype=dtype)
    check(*single(Gather(axis), x, np.concatenate(runs).astype(np.int64), constant=(1,)), isa, threads=2)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("wide", [np.int32, np.int64], ids=lambda d: d.__name__)
def test_gather_elements_matches_its_definition(isa: Isa, dtype: Any, wide: Any) -> None:
    rng = np.random.default_rng(0)
    for axis, rows in ((0, 9), (1, 2)):
        shape = tuple(rows if i == axis else n for i, n in enumerate((4, 6, 5)))
        indices = rng.integers(0, 4, shape).astype(wide)
        check(*single(GatherElements(axis), _numbers(4, 6, 5, dtype=dtype), indices), isa, threads=2)


@pytest.mark.parametrize("bad", [-1, 6, 1 << 40])
def test_an_index_out_of_range_raises_and_the_next_run_succeeds(bad: int) -> None:
    isa = runnable()[-1]
    good = np.array([0, 5], np.int64)
    subgraph, (x, _) = single(Gather(0), _numbers(6, 3), good)
    with pytest.raises(ExecutionError, match=rf"Gather: index {bad} is outside of dimension 0 of 6"):
        natively(subgraph, [x, np.array([2, bad], np.int64)], isa)
    np.testing.assert_array_equal(natively(subgraph, [x, good], isa, runs=2)[0], x[good])


@pytest.mark.parametrize(
    ("dtype", "widths"),
    [
        (np.int8, (1, 15, 16)),
        (np.int8, (17, 32)),
        (np.int8, (64, 33, 128, 65, 1, 200, 7, 63)),
        (np.float32, (16, 5, 33)),
        (np.int8, (3,) * 9),
        (np.int8, (5000, 3)),
    ],
)
def test_rows_of_any_width_are_concatenated(dtype: Any, widths: tuple[int, ...]) -> None:
    parts = [_numbers(2, 7, width, dtype=dtype) for width in widths]
    subgraph, inputs = single(Concat(2), *parts)
    for threads in (1, 3):
        (found,) = natively(subgraph, inputs, runnable()[-1], threads)
        np.testing.assert_array_equal(found, np.concatenate(parts, 2))


@ISAS
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("shape", [(90, 320), (1500, 64), (2, 48, 1511), (3, 1021, 40)])
def test_threads_share_the_transposition_of_one_large_matrix(shape: tuple[int, ...], dtype: Any, isa: Isa) -> None:
    x = _numbers(*shape, dtype=dtype)
    axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    subgraph, inputs = single(Transpose(), x, _ints(*axes), constant=(1,))
    for threads in (2, 5):
        (found,) = natively(subgraph, inputs, isa, threads)
        np.testing.assert_array_equal(found, x.transpose(axes))
        settings = Settings(num_threads=threads, target=isa.name)
        commands = lowered(sequence_of(subgraph, settings), isa, settings).commands
        assert x.nbytes < 1 << 16 or max(command.pieces for command in commands) >= threads


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("shape", [(257, 100, 2), (65, 260, 4), (9001, 3, 2), (3, 9001, 2)])
def test_runs_that_are_moved_as_one_element_are_whole_in_every_piece(
    shape: tuple[int, ...], dtype: Any, isa: Isa
) -> None:
    """Large boxes are moved in pieces: by threads, and if the elements of few rows are interleaved or parted."""
    x = _numbers(*shape, dtype=dtype)
    subgraph, inputs = single(Transpose(), x, _ints(1, 0, 2), constant=(1,))
    for threads in (1, 2, 3):
        (found,) = natively(subgraph, inputs, isa, threads)
        np.testing.assert_array_equal(found, x.swapaxes(0, 1))


@pytest.mark.parametrize(
    ("shape", "square", "by_width"),
    [((1024, 32), 8, True), ((1040, 32), 16, False), ((64, 4096), 16, False), ((1024, 1024), 16, True)],
)
def test_lines_of_transposed_rows_stay_in_the_first_cache(shape: tuple[int, int], square: int, by_width: bool) -> None:
    """Rows that are a page apart share a set of it."""
    isa = target("x86-64-v4")
    subgraph, _ = single(Transpose(), np.zeros(shape, np.float32), _ints(1, 0), constant=(1,))
    settings = Settings(num_threads=1, target=isa.name)
    (command,) = lowered(sequence_of(subgraph, settings), isa, settings).commands
    assert isinstance(command.spec, KernelSpec)
    assert isinstance(command.spec.algorithm, Move)
    assert (command.spec.algorithm.square, command.spec.algorithm.by_width) == (square, by_width)
