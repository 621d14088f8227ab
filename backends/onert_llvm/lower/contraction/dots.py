"""Products of few rows with the rows of a matrix, as dot products along contiguous rows: nothing is transposed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.batched.dot_terms import DotTerms
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.schedule.cost_model import Shape

from .conv_geometry import offsets_of
from .epilogue import EpilogueTask
from .partition import partition


def dots(
    lowering: Lowering,
    at: int,
    rows: int,
    matrix: int,
    size: tuple[int, int, int],
    after: EpilogueTask,
    own: tuple[Sequence[int], Sequence[int]] = ((), ()),
    batches: Sequence[int] = (),
) -> None:
    """Emit the product of `rows[*batch, m, k]` and the rows of `matrix[*batch, n, k]`; `size` is (m, n, k). `own` has
    the batches of both, which broadcast to `batches`.
    """
    (m, n, depth), count, isa = size, math.prod(batches), lowering.isa
    tile = Tile(1, Columns(1, padded=True) if isa.free_masks else columns(n, 1, isa))
    work, slots = partition(lowering, Shape(m, n, depth), tile, depth * 4, lowering.operand(matrix), 0, count)
    slots |= {
        **after.slots,
        "a": lowering.operand(rows),
        "c": after.place,
        "offsets": offsets_of(lowering, own, batches, (m * depth, n * depth)),
        "per_batch": work.tiles,
        "k": depth,
        "a_row": depth,
        "ldb": depth,
    }
    algorithm = BatchedContraction(tile, DotTerms(), after.epilogue, rows=True)
    reads = (rows, matrix, *after.reads)
    lowering.emit(at, algorithm, slots, count * work.tiles, reads, after.writes, 2 * count * m * n * depth)
