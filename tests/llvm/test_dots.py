"""Products of few rows with transposed matrices equal those of NumPy, and read nothing outside their operands."""

from __future__ import annotations

import numpy as np
import pytest

from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.batched.dot_terms import DotTerms
from onert_llvm.kernels.contraction.epilogue import ACC, Epilogue
from onert_llvm.kernels.contraction.register_tile import Columns, Tile, columns
from onert_llvm.target.isa import Isa, runnable

from .harness import guarded, run


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize(
    ("batch", "m", "n", "depth"),
    [(1, 1, 1, 1), (1, 1, 1, 300), (3, 1, 5, 7), (2, 4, 16, 64), (1, 1, 37, 129), (2, 3, 33, 1)],
)
def test_dot_products_of_rows_equal_numpy_s(isa: Isa, batch: int, m: int, n: int, depth: int, *, bias: bool) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(-9, 10, (batch, m, depth)).astype(np.float32)
    matrices = rng.integers(-9, 10, (batch, n, depth)).astype(np.float32)
    added = rng.integers(-9, 10, n).astype(np.float32)
    offsets = np.arange(batch)[:, None] * np.int64([[m * depth, n * depth]])
    tile = Tile(1, Columns(1, padded=True) if isa.free_masks else columns(n, 1, isa))
    panels = -(-n // isa.f32)
    c = guarded(np.zeros((batch, m, n), np.float32))
    slots = {"m": m, "n": n, "mc": m, "panels": panels, "panel_bytes": 0, "ldc": n, "per_batch": panels, "k": depth}
    slots |= {"a": guarded(rows), "b": guarded(matrices), "c": c, "a_row": depth, "ldb": depth}
    slots |= {"offsets": guarded(offsets), **({"bias": guarded(added)} if bias else {})}
    spec = KernelSpec(BatchedContraction(tile, DotTerms(), Epilogue(ACC, bias), rows=True), isa)
    run(spec, batch * panels, slots, pieces=2)
    np.testing.assert_array_equal(c, rows @ matrices.swapaxes(1, 2) + (added if bias else 0))
