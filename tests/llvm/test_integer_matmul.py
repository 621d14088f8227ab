"""Batched integer matrix products equal the reference bit for bit on every target."""

from __future__ import annotations

import numpy as np
import pytest
from cases.case import Case
from compute_trials import Draw, case, per_tensor

from onert.ir import DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.target.isa import Isa, runnable

from .harness import whole_range
from .natively import check, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = {"8 by 8": (np.int8, np.int8), "16 by 16": (np.int16, np.int16), "16 by 8": (np.int16, np.int8)}
SIZES = [(1, 1, 1), (1, 65, 200), (17, 64, 32), (33, 7, 48), (5, 32, 65), (130, 16, 9)]
"""Rows, depth and columns."""


def _case(
    kind: str, batches: tuple[tuple[int, ...], tuple[int, ...]], size: tuple[int, int, int], op: BatchMatMul
) -> Case:
    (m, k, n), draw = size, Draw(f"{kind} {batches} {size} {op}")
    left, right = TYPES[kind]
    short = left is np.int16
    x = draw.stored(left, (*batches[0], *((k, m) if op.adjoint_x else (m, k))), per_tensor(0.01, 0 if short else 5))
    y = draw.stored(right, (*batches[1], *((n, k) if op.adjoint_y else (k, n))), per_tensor(0.02, 0 if short else -128))
    x[0].reshape(-1)[:k], y[0].reshape(-1)[:k] = np.iinfo(left).min, np.iinfo(right).min
    scale = {"8 by 8": 0.02, "16 by 16": 100.0, "16 by 8": 0.5}[kind] * k**0.5
    return case("", op, [x, y], per_tensor(scale, 0 if short else -7))


@ISAS
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_matmuls_of_any_size_are_exact(
    isa: Isa, kind: str, size: tuple[int, int, int], turned: tuple[bool, bool]
) -> None:
    found = _case(kind, ((2, 3), (2, 3)), size, BatchMatMul(*turned))
    check(subgraph_of(found), [a for a in found.inputs if a is not None], isa, threads=2)


@ISAS
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("batches", [((), ()), ((3, 1), (2,)), ((4,), ()), ((), (2, 2)), ((1, 2), (3, 1))], ids=str)
def test_matmuls_broadcast_their_batches(isa: Isa, kind: str, batches: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    found = _case(kind, batches, (4, 9, 20), BatchMatMul())
    check(subgraph_of(found), [a for a in found.inputs if a is not None], isa, threads=2)
    constant = subgraph_of(found, constant=(1,))
    check(constant, [found.inputs[0]], isa)


@ISAS
@pytest.mark.parametrize("left", [np.int8, np.uint8], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("right", [np.int8, np.uint8], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("size", [(1, 6, 320), (2, 33, 64), (7, 13, 80), (9, 10, 200)], ids=str)
def test_sums_of_products_of_computed_bytes_are_exact(
    isa: Isa, left: type, right: type, size: tuple[int, int, int]
) -> None:
    m, k, n = size
    x, y = whole_range(left, (2, m, k)), whole_range(right, (2, k, n), 1)
    x.reshape(-1)[:k], y.reshape(-1)[-n:] = np.iinfo(left).max, np.iinfo(right).max
    check(subgraph_of(Case("", BatchMatMul(output=DType.INT32), (x, y))), [x, y], isa, threads=2)


def test_sums_that_may_overflow_are_not_native() -> None:
    assert why_not(subgraph_of(_case("8 by 8", ((), ()), (1, 33100, 1), BatchMatMul())))
