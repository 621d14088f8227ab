"""What follows a size that nothing bounds is compiled once, and runs natively at each size that a run computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from compiler.cached import Cached
from model_writer import LiteRt, Model

import onert
from onert.backend.registry import load_backends
from onert.backend.writers import WRITERS
from onert.compiler.compiler import Compilation
from onert.compiler.program_cache.transport import serialise
from onert.exec import RunTimeoutError
from onert.ir import Array, BackendError, DType, OnertError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.runtime.session import InferenceSession

onnx_parser = pytest.importorskip("onnx.parser")
onnxruntime = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 9, opset_import: ["" : 17]> g '
GIVEN = f"{HEAD}(float[t,4] x, int64[t] d) => "
WEIGHTS = "float[4,8] w = {" + ", ".join(f"{(i * 7 % 11 - 5) / 8}" for i in range(32)) + "}"
REPEATED = "shape = Concat <axis = 0> (n, four) row = ReduceMean <axes = [0]> (x) rows = Expand (row, shape)"
SUMS = """first = ReduceMean <axes = [1], keepdims = 0> (rows)
      last, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
        body = each (float[k] before, float[k] column) => (float[k] after, float[k] z)
        { after = Add (before, column) z = Tanh (after) }> (first, rows)"""
CHOSEN = "chosen = Greater (column, half) where = NonZero (chosen) at = Transpose (where)"
LAYER = "z = MatMul (rows, w) y = Relu (z)"
REGULATOR = f"""{GIVEN}(float[n,8] y)
<{WEIGHTS}, int64 zero = {{0}}, int64 one = {{1}}, int64[1] first = {{0}}, int64[1] second = {{1}},
 int64[1] end = {{-1}}> {{
  ends = CumSum (d, zero)
  last = Gather (ends, end)
  n = Squeeze (last, first)
  frames = Range (zero, n, one)
  row = Unsqueeze (frames, second)
  before = Sub (ends, d)
  a = Less (row, ends)
  b = GreaterOrEqual (row, before)
  both = And (a, b)
  path = Cast <to = 1> (both)
  rows = MatMul (path, x)
  {LAYER}
}}"""
"""A length regulator: each row of x is repeated as often as d says."""

MODELS: dict[str, str] = {
    "a length regulator": REGULATOR,
    "Expand": f"""{GIVEN}(float[n,8] y) <{WEIGHTS}, int64[1] four = {{4}}> {{
      n = ReduceSum <keepdims = 1> (d)
      {REPEATED}
      {LAYER}
    }}""",
    "ConstantOfShape and Tile, and a size computed behind them": f"""{GIVEN}(float[m,8] y)
    <{WEIGHTS}, int64[1] one = {{1}}, int64[1] four = {{4}}, int64[1] ones = {{1}}, float half = {{0.5}}> {{
      n = ReduceSum <keepdims = 1> (d)
      shape = Concat <axis = 0> (n, four)
      zeros = ConstantOfShape (shape)
      times = Concat <axis = 0> (n, one)
      row = ReduceMean <axes = [0]> (x)
      tiled = Tile (row, times)
      sum = Add (zeros, tiled)
      z = MatMul (sum, w)
      noisy = Sin (z)
      column = ReduceSum <keepdims = 0> (noisy, ones)
      {CHOSEN}
      picked = GatherND (z, at)
      y = Relu (picked)
    }}""",
    "OneHot": f"""{GIVEN}(float[t,k] y)
    <float[2] values = {{0, 1}}, int64 two = {{2}}> {{
      most = ReduceMax <keepdims = 0> (d)
      depth = Mul (most, two)
      hot = OneHot (d, depth, values)
      z = Softmax (hot)
      y = Neg (z)
    }}""",
    "Resize": f"""{GIVEN}(float[1,1,h,8] y)
    <int64[2] ends = {{0, 1}}, int64[3] front = {{1, 1, 8}}, int64[2] three = {{1, 1}}, int64[1] eight = {{8}},
     float[1] none = {{1.0}}> {{
      picture = Unsqueeze (x, ends)
      n = ReduceSum <keepdims = 1> (d)
      sizes = Concat <axis = 0> (three, n, eight)
      large = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (picture, , , sizes)
      z = Softmax (large)
      y = Neg (z)
    }}""",
    "repetitions from a sequence": f"""{GIVEN}(float[n,8] y)
    <{WEIGHTS}, int64[1] four = {{4}}, int64 place = {{0}}> {{
      sizes = Shape (d)
      ones = ConstantOfShape <value = int64[1] {{1}}> (sizes)
      parts = SplitToSequence (d, ones)
      part = SequenceAt (parts, place)
      n = Mul (part, four)
      {REPEATED}
      {LAYER}
    }}""",
    "a Scan of columns of this size": f"""{GIVEN}(float[n,8] y)
    <{WEIGHTS}, int64[1] four = {{4}}> {{
      n = ReduceSum <keepdims = 1> (d)
      {REPEATED}
      {SUMS}
      z = MatMul (sums, w) y = Relu (z)
    }}""",
    "a Scan of columns of this size, and a size computed from it": f"""{GIVEN}(float[n,8] y)
    <{WEIGHTS}, int64[1] four = {{4}}, int64[1] ones = {{1}}, float half = {{0.1}}> {{
      n = ReduceSum <keepdims = 1> (d)
      {REPEATED}
      {SUMS}
      column = ReduceSum <keepdims = 0> (sums, ones)
      {CHOSEN}
      picked = GatherND (sums, at)
      z = MatMul (picked, w)
      y = Relu (z)
    }}""",
    "an object between": f"""{GIVEN}(float[n,8] y)
    <{WEIGHTS}, int64[1] four = {{4}}, int64 place = {{1}}> {{
      n = ReduceSum <keepdims = 1> (d)
      {REPEATED}
      twice = Exp (rows)
      held = SequenceConstruct (rows, twice)
      taken = SequenceAt (held, place)
      z = MatMul (taken, w)
      y = Relu (z)
    }}""",
    "a node that becomes many operations": f"""{GIVEN}(float[n] y) {{
      n = ReduceSum <keepdims = 0> (d)
      y = HannWindow (n)
    }}""",
}
EACH = pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)


def content(text: str) -> bytes:
    found: bytes = onnx_parser.parse_model(text).SerializeToString()
    return found


def given(total: int, t: int = 5) -> dict[str, Array]:
    """Rows, and counts of this sum."""
    counts = np.bincount(np.arange(total) * 7 % t, minlength=t)
    return {"x": np.random.default_rng(t).normal(size=(t, 4)).astype(np.float32), "d": counts.astype(np.int64)}


class Counted:
    """Counts the programs that are compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        compiled = Compilation.compiled

        def counting(own: Compilation, *given: Any, **named: Any) -> Any:
            self.count += 1
            return compiled(own, *given, **named)

        monkeypatch.setattr(Compilation, "compiled", counting)


def check(session: InferenceSession, expected: Any, arrays: Mapping[str, Array]) -> None:
    for mine, theirs in zip(session.run(None, dict(arrays)), expected.run(None, dict(arrays)), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@EACH
def test_sizes_of_runs_give_the_results_of_onnx_runtime_and_soon_nothing_is_compiled(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    session, expected = InferenceSession(content(text)), onnxruntime.InferenceSession(content(text))
    for total in (20, 21, 22, 23, 40):
        check(session, expected, given(total))
    before = counted.count
    for total in (24, 31, 38, 33, 29):
        check(session, expected, given(total))
    assert counted.count == before


@EACH
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_every_executor_runs_what_follows_natively(text: str, executor: str) -> None:
    package = onert.load(content(text))
    execution = onert.Execution(onert.compile(package, executor=executor))
    expected = onnxruntime.InferenceSession(content(text))
    for total, t in ((9, 5), (30, 5), (12, 7), (30, 7)):
        (mine,) = execution.run(given(total, t)).values()
        (theirs,) = expected.run(None, given(total, t))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    kinds = {type(operation.op).__name__ for operation in execution.program.main.subgraph.operations}
    assert "Rest" in kinds
    assert not kinds & {"BatchMatMul", "FullyConnected", "Softmax", "While", "SequenceOf"}


@pytest.mark.parametrize("name", ["a length regulator", "Expand", "an object between"])
def test_a_size_may_be_zero(name: str) -> None:
    session, expected = InferenceSession(content(MODELS[name])), onnxruntime.InferenceSession(content(MODELS[name]))
    for total in (0, 4, 0, 6, 5, 0):
        check(session, expected, given(total))


@EACH
@pytest.mark.parametrize("count", [-3, 1 << 30, 1 << 40, (1 << 63) - 1])
def test_a_size_that_cannot_be_is_an_error_and_the_next_run_works(text: str, count: int) -> None:
    execution = onert.Execution(onert.compile(onert.load(content(text)), max_memory=1 << 26))
    expected = onnxruntime.InferenceSession(content(text))
    arrays = given(12)
    (before,) = execution.run(arrays).values()
    hostile = {**arrays, "d": np.array([count, *4 * [min(count, 0)]], np.int64)}
    if text is not REGULATOR or count > 0:  # a Range to a negative number is empty
        with pytest.raises(OnertError):
            execution.run(hostile)
    (after,) = execution.run(arrays).values()
    np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(after, expected.run(None, arrays)[0], rtol=1e-5, atol=1e-5)


def test_a_size_is_checked_against_the_limit_before_anything_is_allocated() -> None:
    """The rows would take 64 MiB, and the product with them 1 GiB."""
    ones = ", ".join("1" * 16)
    text = f"""{HEAD}(float[t,1] x, int64[t] d) => (float y) <int64[1] one = {{1}}, float[1,16] w = {{{ones}}}> {{
      n = ReduceSum <keepdims = 1> (d)
      shape = Concat <axis = 0> (n, one)
      row = ReduceMean <axes = [0]> (x)
      rows = Expand (row, shape)
      wide = MatMul (rows, w)
      z = Exp (wide)
      y = ReduceSum <keepdims = 0> (z)
    }}"""
    execution = onert.Execution(onert.compile(onert.load(content(text)), max_memory=1 << 28))
    execution.run([np.ones((2, 1), np.float32), np.array([3, 4])])
    with pytest.raises(OnertError, match="max_memory"):
        execution.run([np.ones((2, 1), np.float32), np.array([1 << 24, 0])])


def test_an_output_of_known_shape_behind_such_sizes_is_written_into_the_callers_buffer() -> None:
    mean = "y = Relu (z) m = ReduceMean <axes = [0], keepdims = 0> (y)"
    text = REGULATOR.replace("float[n,8] y)", "float[8] m)").replace("y = Relu (z)", mean)
    execution = onert.Execution(onert.compile(onert.load(content(text))))
    expected = onnxruntime.InferenceSession(content(text))
    arrays = given(12)
    execution.run(arrays)
    out = np.zeros(8, np.float32)
    execution.set_output("m", out)
    execution.execute()
    np.testing.assert_allclose(out, expected.run(None, arrays)[0], rtol=1e-5, atol=1e-5)


def test_random_numbers_between_stay_in_the_entry_and_what_follows_them_is_native() -> None:
    noise = "noise = RandomNormalLike <scale = 0.0> (rows) noisy = Add (rows, noise)"
    text = REGULATOR.replace("z = MatMul (rows, w)", f"{noise} z = MatMul (noisy, w)")
    execution = onert.Execution(onert.compile(onert.load(content(text))))
    expected = onnxruntime.InferenceSession(content(REGULATOR))
    for total in (9, 14, 30):
        (mine,) = execution.run(given(total)).values()
        np.testing.assert_allclose(mine, expected.run(None, given(total))[0], rtol=1e-5, atol=1e-5)
    kinds = [type(operation.op).__name__ for operation in execution.program.main.subgraph.operations]
    assert kinds.count("Rest") == 2


FIXED = REGULATOR.replace("float[t,4] x, int64[t] d", "float[5,4] x, int64[5] d")


def test_the_parts_of_a_program_are_cached_for_the_sizes_that_they_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached, expected = Cached(tmp_path, monkeypatch), onnxruntime.InferenceSession(content(FIXED))
    for totals, compiled in (((9, 14, 30), 1), ((9, 14, 30), 1), ((10, 29, 13), 1), ((12, 900), 2), ((800,), 2)):
        program = onert.compile(onert.load(content(FIXED)), num_threads=1)
        execution = onert.Execution(program)
        for total in totals:
            (mine,) = execution.run(given(total)).values()
            np.testing.assert_allclose(mine, expected.run(None, given(total))[0], rtol=1e-5, atol=1e-5)
        WRITERS.finish()
        assert cached.count == compiled, totals


def test_a_program_cached_for_these_shapes_by_another_process_compiles_its_parts_when_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first program had these shapes; here, the model's own shapes are open, and inputs determine them."""
    Cached(tmp_path, monkeypatch)
    expected = onnxruntime.InferenceSession(content(REGULATOR))
    for shapes in ({0: (5, 4), 1: (5,)}, {}):
        execution = onert.Execution(onert.compile(onert.load(content(REGULATOR)), num_threads=1, input_shapes=shapes))
        WRITERS.finish()
        for total in (9, 14, 30):
            (mine,) = execution.run(given(total)).values()
            np.testing.assert_allclose(mine, expected.run(None, given(total))[0], rtol=1e-5, atol=1e-5)


def test_parts_of_programs_that_were_cut_for_other_shapes_are_cached_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cached(tmp_path, monkeypatch)
    expected = onnxruntime.InferenceSession(content(REGULATOR))
    for steps in (5, 7):
        inputs = given(20, steps)
        execution = onert.Execution(onert.compile(onert.load(content(REGULATOR)), num_threads=1))
        (mine,) = execution.run(inputs).values()
        np.testing.assert_allclose(mine, expected.run(None, inputs)[0], rtol=1e-5, atol=1e-5)
        WRITERS.finish()
    parts = [option for entry in onert.cache.entries() for option in entry.options if option.startswith("part ")]
    assert {steps for steps in (5, 7) if any(f"of [(0, ({steps}, 4))" in part for part in parts)} == {5, 7}


def test_a_program_with_parts_is_not_sent_and_one_without_computes_the_same() -> None:
    package, backends = onert.load(content(FIXED)), load_backends(("llvm", "reference"))
    program = onert.compile(package)
    with pytest.raises(BackendError, match="cannot be sent"):
        serialise(program, backends)
    whole = onert.compile(package, disabled_passes={"cut"})
    assert "Rest" not in whole.describe()
    for mine, theirs in zip(*(onert.Execution(p).run(given(17)).values() for p in (program, whole)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_a_run_that_has_no_time_left_ends_before_its_parts() -> None:
    execution = onert.Execution(onert.compile(onert.load(content(FIXED))))
    execution.run(given(12))
    with pytest.raises(RunTimeoutError):
        execution.execute(timeout=0.0)
    execution.execute(timeout=60.0)


def test_state_is_updated_by_what_follows_a_size_unless_the_run_fails() -> None:
    b = Builder()
    total = b.variable(TensorType(DType.FLOAT32, (3,)))
    x, n = b.input(TensorType(DType.FLOAT32, (1, 2))), b.input(TensorType(DType.INT32, (1,)))
    shape = b.add(Concat(0), n, b.constant([1], dtype=DType.INT32))
    column = b.add(Fill(), shape, b.constant(np.float32(2)))
    rows = b.add(BatchMatMul(), b.add(Binary(BinaryKind.MUL), column, x), b.constant(np.ones((2, 3), np.float32)))
    new = b.add(Binary(BinaryKind.ADD), total, b.add(Reduce(Reduction.SUM), rows, b.constant([0], dtype=DType.INT32)))
    b.update(total, new)
    graph = b.subgraph([rows, new])
    named = tuple(evolve(operand, name=operand.name or f"tensor {at}") for at, operand in enumerate(graph.operands))
    program = onert.compile(Package((Subgraphs((evolve(graph, operands=named),)),), "made"))
    execution, sum_ = onert.Execution(program), 0.0
    for count in (3, 1, 0, 7):
        made, added = execution.run([np.float32([[1, 2]]), np.int32([count])]).values()
        sum_ += 6.0 * count
        assert made.shape == (count, 3)
        assert added.tolist() == [sum_] * 3
    with pytest.raises(OnertError):
        execution.run([np.float32([[1, 2]]), np.int32([-1])])
    assert "Rest" in {type(operation.op).__name__ for operation in program.main.subgraph.operations}


def test_a_tflite_model_gives_the_results_of_litert() -> None:
    model = Model()
    graph = model.graph()
    n, value = graph.input(DType.INT32, (1,)), graph.constant(np.float32(2))
    row, column, wide, y = (graph.tensor(DType.FLOAT32, shape) for shape in ((1,), (1, 1), (1, 3), (1, 3)))
    graph.operator("FILL", [n, value], [row], ("FillOptions", {}))
    graph.operator("RESHAPE", [row, graph.constant(np.int32([-1, 1]))], [column], ("ReshapeOptions", {}))
    weights, bias = graph.constant(np.float32([[1], [0.5], [-1]])), graph.constant(np.float32([0, 1, 0.25]))
    graph.operator("FULLY_CONNECTED", [column, weights, bias], [wide], ("FullyConnectedOptions", {}))
    graph.operator("TANH", [wide], [y])
    graph.outputs(y)
    execution, litert = onert.Execution(onert.compile(onert.load(model.done()))), LiteRt(model.done())
    for count in (3, 1, 7, 2):
        (mine,) = execution.run([np.int32([count])]).values()
        np.testing.assert_allclose(mine, litert(np.int32([count]))[0], rtol=1e-5)
    kinds = [type(operation.op).__name__ for operation in execution.program.main.subgraph.operations]
    assert kinds == ["Fill", "Rest"]


def test_sizes_computed_one_behind_the_other_are_cut_up_to_a_depth() -> None:
    step = """a{0} = Range (zero, n{0}, one) f{0} = Cast <to = 1> (a{0}) s{0} = Sin (f{0}) g{0} = Greater (s{0}, half)
      c{0} = Cast <to = 7> (g{0}) r{0} = ReduceSum <keepdims = 0> (c{0}) n{1} = Add (r{0}, n)"""
    text = f"""{HEAD}(int64 n) => (int64 n30) <int64 zero = {{0}}, int64 one = {{1}}, float half = {{0.5}}> {{
      n0 = Mul (n, one) {" ".join(step.format(at, at + 1) for at in range(30))}
    }}"""
    session, expected = InferenceSession(content(text)), onnxruntime.InferenceSession(content(text))
    for n in (5, 9, 6):
        assert session.run(None, {"n": np.array(n)}) == expected.run(None, {"n": np.array(n)})
