"""The greatest and least elements of rows longer than a register, including ties and NaN, in order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from onert.ir.ops.data_movement.fill import TopK
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, natively, single


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int64])
def test_top_k_of_long_rows_returns_the_greatest_or_least_in_order(isa: Isa, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 90, (4, 150)).astype(dtype)
    x[1] = np.sort(x[1])
    if dtype is np.float32:
        x[2, [20, 77, 149]], x[3] = np.nan, np.where(rng.random(150) < 0.5, np.nan, x[3])
    for k, least in product((1, 7, 60, 150), (False, True)):
        graph, inputs = single(TopK(least=least), x, np.int32(k), constant=(1,))
        assert_close(natively(graph, inputs, isa), evaluated(graph, inputs))


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint32])
def test_few_and_many_of_rows_with_zeros_of_both_signs_and_infinities_are_in_order(
    isa: Isa, dtype: type[np.generic]
) -> None:
    x = np.random.default_rng(5).choice([-3.5, -0.0, 0.0, 2.5, -np.inf, np.inf, np.nan], (3, 600))
    if not issubclass(dtype, np.floating):
        x = np.nan_to_num(x, nan=9, posinf=2**14, neginf=-(2**14))
    given = x.astype(np.int32).astype(dtype) if not issubclass(dtype, np.floating) else x.astype(dtype)
    for (width, k), least in product(((600, 1), (600, 599), (600, 300), (70, 70), (600, 600)), (False, True)):
        graph, inputs = single(TopK(least=least), given[:, :width], np.int32(k), constant=(1,))
        assert_close(natively(graph, inputs, isa), evaluated(graph, inputs))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 17, 31, 64, 65, 129, 257, 512, 513, 1025, 2049])
def test_whole_rows_of_any_width_are_in_order(width: int) -> None:
    x = np.random.default_rng(width).integers(0, 9 * width, (3, width)).astype(np.int32)
    graph, inputs = single(TopK(), x, np.int32(width), constant=(1,))
    assert_close(natively(graph, inputs, runnable()[-1]), evaluated(graph, inputs))


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal"])
def test_many_of_very_long_rows_are_the_greatest_or_least_in_order(
    isa: Isa, dtype: type[np.generic], order: str
) -> None:
    rng = np.random.default_rng(3)
    x = np.sort(rng.integers(-90, 90, (4, 1101)))
    x = {"random": rng.permuted(x, axis=1), "ascending": x, "descending": x[:, ::-1], "equal": x * 0}[order].astype(
        dtype
    )
    if dtype is np.float32:
        x[2, [0, 20, 77, 1100]], x[3] = np.nan, np.where(rng.random(1101) < 0.98, np.nan, x[3])
    for k, least in product((32, 40, 68), (False, True)):
        graph, inputs = single(TopK(least=least), x, np.int32(k), constant=(1,))
        assert_close(natively(graph, inputs, isa), evaluated(graph, inputs))
