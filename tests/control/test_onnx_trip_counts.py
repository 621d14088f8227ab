"""ONNX loops whose condition only counts run as many rounds as it says, natively and with their scan outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from attrs import frozen

import onert
from onert.ir.ops.control_flow.control import While

onnx_parser = pytest.importorskip("onnx.parser")

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
g (float[t,b,4] x, float[b,4] first) => (float[b,4] last, float[r,b,4] rows)
<int64 zero = {{0}}, int32 begin = {{{begin}}}, int32 one = {{1}}, bool start = {{{start}}}> {{
  sizes = Shape (x)
  length = Gather (sizes, zero)
  n = Cast <to = 6> (length)
  k9, last, rows = Loop ({most}, start, begin, first) <body = b (int64 i, bool c, int32 k, float[b,4] h)
    => (bool on, int32 k2, float[b,4] h2, float[b,4] row) {{
      at = Mod (i, length)
      entry = Gather <axis = 0> (x, at)
      s = Add (h, entry)
      h2 = Tanh (s)
      row = Identity (h2)
      k2 = Add (k, one)
      {on}
  }}>
}}"""


@frozen
class Case:
    """A condition as nodes, its meaning in terms of round, counter and length, and the loop's other operands."""

    on: str
    means: Callable[[int, int, int], bool]
    most: str = "length"
    begin: int = 0
    start: int = 1


FLOATS = "f = Cast <to = 1> (k2) m = Cast <to = 1> (n) p = Less (f, m) j = Cast <to = 1> (i) q = Less (j, m)"
COUNTED = {
    "as a loop over a sequence is written": Case(f"{FLOATS} on = And (p, q)", lambda i, k, n: k + 1 < n and i < n),
    "another counter": Case("on = Less (k2, n)", lambda i, k, n: k + 1 < n, begin=1),
    "without a number of rounds": Case("on = Greater (n, k)", lambda i, k, n: n > k, most=""),
    "the bound itself": Case("on = LessOrEqual (k2, n)", lambda i, k, n: k + 1 <= n, most="", begin=-2),
    "nothing": Case("on = Identity (c)", lambda i, k, n: True),
    "a counter that is past the bound": Case("on = Less (k2, n)", lambda i, k, n: k + 1 < n, most="", begin=99),
    "a loop that does not begin": Case("on = Less (k2, n)", lambda i, k, n: k + 1 < n, start=0),
}
OTHERS = {
    "what is computed": Case(
        "z = ReduceSum <keepdims = 0> (h2) r = Constant <value_float = 1e9> () on = Less (z, r)", lambda i, k, n: True
    ),
    "two numbers that grow": Case("j = Cast <to = 6> (i) on = Less (k2, j)", lambda i, k, n: k + 1 < i, begin=-9),
}


def _expected(case: Case, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    rows: list[np.ndarray] = []
    n, k, on = len(x), case.begin, bool(case.start)
    while on and (not case.most or len(rows) < n):
        i = len(rows)
        h = np.tanh(h + x[i % n])
        rows.append(h)
        on, k = case.means(i, k, n), k + 1
    return h, rows


@pytest.mark.parametrize("name", [*COUNTED, *OTHERS])
def test_a_loop_runs_the_rounds_that_its_condition_counts(name: str) -> None:
    case = (COUNTED | OTHERS)[name]
    text = MODEL.format(on=case.on, most=case.most, begin=case.begin, start=case.start)
    execution = onert.Execution(onert.compile(onert.load(onnx_parser.parse_model(text).SerializeToString())))
    for steps, batch in ((5, 2), (7, 3), (40, 2)):
        draw = np.random.default_rng(steps)
        x, h = (draw.normal(size=shape).astype(np.float32) for shape in ((steps, batch, 4), (batch, 4)))
        last, rows = execution.run([x, h]).values()
        wanted, each = _expected(case, x, h)
        np.testing.assert_allclose(last, wanted, atol=1e-5)
        assert len(rows) == len(each)
        if each:
            np.testing.assert_allclose(rows, each, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, case in COUNTED.items() if case.start])
def test_a_counting_loop_is_native_and_its_number_of_rows_is_known(name: str) -> None:
    case = COUNTED[name]
    text = MODEL.format(on=case.on, most=case.most, begin=case.begin, start=case.start)
    package = onert.load(onnx_parser.parse_model(text).SerializeToString())
    program = onert.compile(package, input_shapes={0: (40, 2, 4), 1: (2, 4)})
    kinds = [type(o.op) for o in program.main.subgraph.operations]
    assert While not in kinds
    assert all(info.shape[0] is not None for info in program.outputs)
