"""Calls of subgraphs bind kernels once, whatever sizes they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.backend import EvaluatingKernel
from onert.runtime.session import InferenceSession

onnx_parser = pytest.importorskip("onnx.parser")

SLICES = """<ir_version: 9, opset_import: ["" : 17]>
g (float[20,4] x, int64[t] o, int64[t] l, int64 n) => (float[t,4] y)
<int64[1] first = {0}, bool yes = {1}> {
  y = Loop (n, yes) <body = each (int64 i, bool go) => (bool on, float[4] s) {
    a = Gather <axis = 0> (o, i)
    c = Gather <axis = 0> (l, i)
    b = Add (a, c)
    start = Unsqueeze (a, first)
    stop = Unsqueeze (b, first)
    rows = Slice (x, start, stop, first)
    s = ReduceSum <keepdims = 0> (rows, first)
    on = Identity (go)
  }>
}"""


def test_rounds_with_slices_of_other_sizes_bind_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[Any] = []
    bind = EvaluatingKernel.bind

    def counted(self: EvaluatingKernel, *given: Any) -> Any:
        bound.append(self)
        return bind(self, *given)

    monkeypatch.setattr(EvaluatingKernel, "bind", counted)
    session = InferenceSession(onnx_parser.parse_model(SLICES).SerializeToString())
    x = np.arange(80, dtype=np.float32).reshape(20, 4)
    offsets, lengths = np.array([0, 3, 5, 9]), np.array([3, 2, 4, 7])
    for rounds in (4, 4, 4):
        before = len(bound)
        (y,) = session.run(None, {"x": x, "o": offsets, "l": lengths, "n": np.array(rounds)})
        expected = [x[a : a + n].sum(0) for a, n in zip(offsets, lengths, strict=True)]
        np.testing.assert_array_equal(y, expected)
    assert bound
    assert len(bound) == before
