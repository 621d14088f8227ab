"""A loop that makes exactly one round, as over the tokens of a step of decoding, becomes its body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.enclosed import Loop

onnx_parser = pytest.importorskip("onnx.parser")
reference = pytest.importorskip("onnx.reference")

HEAD = '<ir_version: 9, opset_import: ["" : 17]> g '
SCAN = """{ last, y = Scan <num_scan_inputs = 1, body = each (float[4] before, float[4] row)
    => (float[4] after, float[4] half) { after = Add (before, row) half = Mul (after, after) }> (s, x) }"""
LOOP = """{ last, y = Loop <body = each (int64 i, bool go, float[4] before) => (bool on, float[4] after, float[4] half)
    { row = Gather <axis = 0> (x, i) after = Add (before, row) half = Mul (after, after) on = Identity (go) }>
    (rounds, more, s) }"""


def _model(rows: str, body: str, more: str = "") -> Any:
    ends = "=> (float[4] last, float[n,4] y)"
    return onnx_parser.parse_model(f"{HEAD}(float[{rows},4] x, float[4] s{more}) {ends} {body}")


def _loops(program: Any) -> int:
    return sum(isinstance(o.op, Loop | While) for step in program.main.steps for o in step.sequence.body)


@pytest.mark.parametrize(("rows", "loops"), [(1, 0), (2, 1)])
def test_a_loop_over_one_row_becomes_its_body(rows: int, loops: int) -> None:
    model = _model(str(rows), SCAN)
    program = onert.compile(onert.load(model.SerializeToString()), num_threads=1)
    assert _loops(program) == loops
    feed = {"x": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4), "s": np.float32([1, 2, 3, 4])}
    found = onert.Execution(program).run(feed)
    for mine, wanted in zip(found.values(), reference.ReferenceEvaluator(model).run(None, feed), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("more", [True, False])
def test_a_loop_of_one_round_or_none_stays(more: bool) -> None:
    model = _model("1", LOOP.replace("rounds", "one"), ", int64 one, bool more")
    feed = {"x": np.ones((1, 4), np.float32), "s": np.zeros(4, np.float32), "one": np.int64(1), "more": np.array(more)}
    found = onert.InferenceSession(model.SerializeToString()).run(None, feed)
    assert found[0].tolist() == [float(more)] * 4
    assert found[1].shape == (int(more), 4)


def test_a_session_may_alternate_between_one_row_and_several() -> None:
    model = _model("rows", SCAN)
    session, peer = onert.InferenceSession(model.SerializeToString()), reference.ReferenceEvaluator(model)
    for rows in (1, 3, 1, 2, 1):
        feed = {"x": np.random.default_rng(rows).random((rows, 4), np.float32), "s": np.float32([1, 2, 3, 4])}
        for mine, wanted in zip(session.run(None, feed), peer.run(None, feed), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-6)
