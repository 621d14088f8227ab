"""Logarithms of 8-bit softmax equal TFLite's fixed-point arithmetic bit for bit, for rows of any width and scale."""

from __future__ import annotations

import numpy as np
import pytest
from cases.case import Case

from onert.ir import Quantization
from onert.ir.ops.reduction.softmax import LogSoftmax
from onert_llvm.target.isa import Isa, runnable

from .natively import check, subgraph_of, why_not

SHAPES = [(1, 1), (1, 7), (9, 3), (5, 21), (33, 8), (3, 300), (70, 16)]


def logarithm(shape: tuple[int, int], scale: float, signed: bool) -> Case:
    """Rows of a few near and many far elements, and rows of any elements."""
    dtype = np.int8 if signed else np.uint8
    limits, rng = np.iinfo(dtype), np.random.default_rng(shape)
    x = rng.integers(limits.min, limits.max + 1, shape)
    x[::3] = np.clip(rng.normal(limits.max, 4, x[::3].shape), limits.min, limits.max)
    scales = (Quantization((scale,), (3,)),), (Quantization((1 / 16,), (limits.max,)),)
    return Case("", LogSoftmax(), (x.astype(dtype),), quantization=scales[0], result_quantization=scales[1])


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("signed", [True, False], ids=["int8", "uint8"])
@pytest.mark.parametrize("scale", [2.0**-26, 1e-4, 1 / 256, 0.03, 0.1, 0.5, 3.7, 32.0, 100.0])
def test_logarithms_of_int8_softmax_are_exact(isa: Isa, signed: bool, scale: float) -> None:
    for shape in SHAPES:
        case = logarithm(shape, scale, signed)
        assert isinstance(case.inputs[0], np.ndarray)
        check(subgraph_of(case), [case.inputs[0]], isa, threads=2)


def test_logarithms_of_finer_steps_than_their_format_have_no_native_form() -> None:
    assert why_not(subgraph_of(logarithm((2, 3), 2.0**-29, True))) is not None
