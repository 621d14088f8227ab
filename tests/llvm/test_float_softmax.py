"""Softmax of float rows: short ones a few at a time, long ones alone, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, evaluated, natively, single


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("op", [Softmax(), Softmax(0.25), Softmax(-2.0), LogSoftmax()], ids=repr)
@pytest.mark.parametrize("width", [3, 2048, 2049, 2200])
def test_float_softmax_matches_its_definition(isa: Isa, op: Softmax | LogSoftmax, width: int) -> None:
    x = np.random.default_rng(width).normal(size=(5, width)).astype(np.float32) * 30
    x[2, 1], x[3, 1:] = -np.inf, -1e30
    graph, inputs = single(op, x if op != Softmax(-2.0) else np.maximum(x, -1e3))
    found = natively(graph, inputs, isa, 1)
    assert_close(found, evaluated(graph, inputs), 1e-5)
    np.testing.assert_array_equal(found, natively(graph, inputs, isa, 3))
