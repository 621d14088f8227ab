"""Loops whose number of rounds is known set the entries of their results, however large these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.enclosed import Loop
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf

from .loops import LESS, MUL, ONE, one_more

onnx_parser = pytest.importorskip("onnx.parser")

HEAD = '<ir_version: 9, opset_import: ["" : 17]> g '
SCAN = """each (float[w] before, float[w] row) => (float[w] after, float[w] half)
  { after = Add (before, row) half = Mul (after, h) }"""
ROUNDS, WIDTH = 3000, 400


def _scanning(rows: str, options: str = "", body: str = SCAN) -> str:
    return f"""{HEAD}(float[{rows},{WIDTH}] x, float[{WIDTH}] s) => (float[{WIDTH}] last, float[n,{WIDTH}] y)
    <float h = {{0.5}}> {{ last, y = Scan <num_scan_inputs = 1, {options} body = {body}> (s, x) }}"""


MODELS = {
    "Scan": (_scanning(str(ROUNDS)), False),
    "Scan of any number of rows": (_scanning("t"), False),
    "Scan from the last row to the first": (_scanning(str(ROUNDS), "scan_input_directions = [1],"), True),
    "Loop": (
        f"""{HEAD}(float[{ROUNDS},{WIDTH}] x, float[{WIDTH}] s) => (float[{WIDTH}] last, float[n,{WIDTH}] y)
        <int64 rounds = {{{ROUNDS}}}, float h = {{0.5}}, int64 zero = {{0}}> {{
          last, y = Loop <body = each (int64 i, bool go, float[{WIDTH}] before)
            => (bool on, float[{WIDTH}] after, float[{WIDTH}] half)
            {{ row = Gather <axis = 0> (x, i) after = Add (before, row) half = Mul (after, h)
               on = Constant <value = bool {{1}}> () }}> (rounds, , s)
        }}""",
        False,
    ),
}


def _program(text: str, **options: Any) -> Any:
    content = onnx_parser.parse_model(text).SerializeToString()
    return onert.compile(onert.load(content), input_shapes={0: (ROUNDS, WIDTH)}, **options)


@pytest.mark.parametrize("name", MODELS)
def test_a_loop_of_known_rounds_sets_the_rows_of_a_result_of_any_size(name: str) -> None:
    text, is_reversed = MODELS[name]
    program = _program(text)
    (loop,) = [o.op for o in program.main.subgraph.operations if isinstance(o.op, Loop)]
    kinds = [type(o.op) for o in loop.body.operations]
    assert PutRow in kinds
    assert Concat not in kinds
    x: Array = np.random.default_rng(1).integers(-8, 9, (ROUNDS, WIDTH)).astype(np.float32)
    start: Array = np.arange(WIDTH, dtype=np.float32)
    last, y = onert.Execution(program).run([x, start]).values()
    sums = start + np.cumsum(x[::-1] if is_reversed else x, axis=0, dtype=np.float64)
    np.testing.assert_array_equal(last, sums[-1])
    np.testing.assert_array_equal(y, sums / 2)


@pytest.mark.parametrize("start", [-3, 0, 2, 9, 11])
def test_a_counter_may_start_at_any_number(start: int) -> None:
    """for i from start below 9: squares.append(i * i)"""
    types = (ONE, ONE, TensorType(DType.INT32, (None, 1)))
    top, condition, body = Builder(), Builder("condition"), Builder("body")
    given = [top.constant(np.int32(start)), top.input(ONE), top.constant(np.zeros((0, 1), np.int32))]
    results = top.add_many(While(1, 2, types), *given)
    (i, *_) = (condition.input(t) for t in types)
    counter, other, squares = (body.input(t) for t in types)
    row = body.add(Reshape(), body.add(MUL, counter, counter), body.constant(np.int32([1, 1])))
    graphs = (
        top.subgraph(results[1:]),
        condition.subgraph([condition.add(LESS, i, condition.constant(np.int32(9)))]),
        body.subgraph([one_more(body, counter), other, body.add(Concat(0), squares, row)]),
    )
    program = onert.compile(Package((Subgraphs(graphs),), "squares"))
    _, found = onert.Execution(program).run([np.int32(5)]).values()
    np.testing.assert_array_equal(found[:, 0], [i * i for i in range(start, 9)])
    assert program.outputs[1].shape == ((9 - start if start < 9 else None), 1)


def test_a_list_that_a_round_reads_has_the_entries_of_earlier_rounds_only() -> None:
    """for i in range(9): counts.append(len(counts))"""
    types = (ONE, ONE, TensorType(DType.INT32, (None, 1)))
    top, condition, body = Builder(), Builder("condition"), Builder("body")
    given = [top.constant(np.int32(0)), top.input(ONE), top.constant(np.zeros((0, 1), np.int32))]
    results = top.add_many(While(1, 2, types), *given)
    (i, *_) = (condition.input(t) for t in types)
    counter, other, counts = (body.input(t) for t in types)
    size = body.add(Gather(axis=0), body.add(ShapeOf(), counts), body.constant(np.int32([0])))
    row = body.add(Reshape(), size, body.constant(np.int32([1, 1])))
    graphs = (
        top.subgraph(results[1:]),
        condition.subgraph([condition.add(LESS, i, condition.constant(np.int32(9)))]),
        body.subgraph([one_more(body, counter), other, body.add(Concat(0), counts, row)]),
    )
    _, found = onert.Execution(onert.compile(Package((Subgraphs(graphs),), "counts"))).run([np.int32(5)]).values()
    np.testing.assert_array_equal(found[:, 0], np.arange(9))


def test_the_work_of_a_round_is_what_it_moves() -> None:
    """A round reads and writes a row of 1600 bytes; counted as whole tensors, all rounds would exceed this limit."""
    program = _program(MODELS["Scan"][0], max_work=1 << 30)
    assert any(isinstance(o.op, Loop) for o in program.main.subgraph.operations)


def test_a_known_number_of_rounds_is_limited_by_memory() -> None:
    with pytest.raises(onert.ir.CompileError, match="max_memory"):
        _program(MODELS["Scan"][0], max_memory=4 << 20)
