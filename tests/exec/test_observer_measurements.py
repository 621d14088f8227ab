"""What observers measure: times by a clock that kernels advance, rates, and ranges of real values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiler.test_program import program as toy_program
from compiler.toy import Draft, FusingBackend, ToyAdd, ToyBackend, ToyScale
from patience import PATIENCE

import onert
from onert.backend import Kernel, Sequence, Settings
from onert.exec import Execution
from onert.exec.observers import MemoryTimeline, MinMax, Observer, Profile, Trace
from onert.ir import DType, ExecutionError, Package, Quantization, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

from .slow import Clock, SlowBackend, SlowKernel, branches, chain, compiled

ONES = np.ones(4, np.float32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that observers read."""
    fake = Clock()
    for module in ("onert.exec.observers.watching", "onert.exec.observers.timeline", "onert.exec.run_modes"):
        monkeypatch.setattr(f"{module}.perf_counter_ns", fake.perf_counter_ns)
    return fake


def by_factor(clock: Clock) -> Any:
    """A kernel that takes as many milliseconds as its factor."""

    def take(sequence: Sequence) -> None:
        clock.now += sum(o.op.factor for o in sequence.body if isinstance(o.op, ToyScale)) / 1e3

    return take


@pytest.mark.parametrize("executor", ["Linear", "Dataflow"])
def test_a_profile_measures_the_time_of_each_operation(clock: Clock, executor: str) -> None:
    profile = Profile()
    execution = Execution(compiled(chain(2.0, 30.0, 8.0), by_factor(clock), executor), observers=(profile,))
    for _ in range(3):
        execution.run([ONES])
    rows = profile.rows
    assert [row.label for row in rows] == [f"operation {i} ToyScale" for i in (1, 2, 0)]  # the longest first
    assert [round(row.microseconds) for row in rows] == [30000, 8000, 2000]
    assert [round(row.share, 6) for row in rows] == [0.75, 0.2, 0.05]
    assert {row.runs for row in rows} == {3}


def test_times_are_means_over_runs(clock: Clock) -> None:
    taken = [0.005, 0.001]

    def take(sequence: Sequence) -> None:
        clock.now += taken.pop()

    profile = Profile()
    execution = Execution(compiled(chain(2.0), take), observers=(profile,))
    for _ in range(2):
        execution.run([ONES])
    assert [round(row.microseconds) for row in profile.rows] == [3000]


def test_rates_are_counts_divided_by_time(clock: Clock) -> None:
    class Slow(SlowBackend):
        def generate(self, sequence: Sequence, settings: Settings) -> SlowKernel:
            return SlowKernel(ToyBackend.generate(self, sequence, settings), sequence, self.before)

    backend = Slow(clock.taking(0.002))
    backend.kinds = [BatchMatMul]
    b = Builder()
    x, y = b.input(TensorType(DType.FLOAT32, (40, 50)), "x"), b.input(TensorType(DType.FLOAT32, (50, 60)), "y")
    package = Package((b.model([b.add(BatchMatMul(), x, y)]),))
    program = onert.compiler.compile(package, onert.Options(optimize=False), [backend, ToyBackend("builtin")])
    profile = Profile()
    execution = Execution(program, observers=(profile,))
    for _ in range(3):
        execution.run([np.ones((40, 50), np.float32), np.ones((50, 60), np.float32)])
    (row,) = profile.rows
    assert row.flops == 2 * 40 * 50 * 60
    assert row.nbytes == 4 * (40 * 50 + 50 * 60 + 40 * 60)
    assert row.gflops == pytest.approx(row.flops / 0.002 / 1e9)
    assert row.gbytes == pytest.approx(row.nbytes / 0.002 / 1e9)


@pytest.mark.parametrize("width", [1, 16, 17, 40])
def test_memory_in_use_is_counted_in_whole_alignment_units(width: int) -> None:
    program = compiled(chain(2.0, 3.0, 5.0, width=width), lambda s: None)
    memory = MemoryTimeline()
    Execution(program, observers=(memory,)).run([np.ones(width, np.float32)])
    assert memory.peaks == {"host": program.memory_plan["host"].lower_bound} == {"host": 2 * -(-width * 4 // 64) * 64}


def test_a_run_starts_with_no_memory_in_use_even_after_a_failed_one() -> None:
    failing = [True]

    def fail(sequence: Sequence) -> None:
        if failing[0] and "2" in str(sequence.body[0]):
            raise ExecutionError("no")

    program = compiled(chain(2.0, 3.0, 5.0, 7.0), fail)
    memory = MemoryTimeline()
    execution = Execution(program, observers=(memory,))
    with pytest.raises(ExecutionError, match="no"):
        execution.run([ONES])
    left = memory.samples[-1].nbytes
    assert left > 0
    failing[0] = False
    seen = len(memory.samples)
    execution.run([ONES])
    later = [sample.nbytes for sample in memory.samples[seen:]]
    assert later[0] == 64 < left or later[0] != left
    assert max(later) == program.memory_plan["host"].lower_bound
    assert later[-1] == 0


def test_fused_tensors_that_are_never_stored_are_not_counted_as_traffic() -> None:
    d = Draft()
    x = d.input(100, name="x")
    graph = d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x)))
    for backend, nbytes in ((FusingBackend("fusing"), 800), (ToyBackend("plain"), 1200)):
        profile = Profile()
        Execution(toy_program(graph, [backend], optimize=False), observers=(profile,)).run([np.ones(100, np.float32)])
        assert [row.nbytes for row in profile.rows] == [nbytes]


def test_shares_are_relative_to_a_total_without_calls(clock: Clock) -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(3.0), inner.op(ToyScale(1.0), inner.input(4))))
    outer = Draft()
    x = outer.input(4, name="x")
    top = outer.uninferred(outer.op(ToyScale(4.0), outer.op(Call(1), x)))
    backends = [SlowBackend(by_factor(clock)), *onert.backend.registry.load_backends(["reference"])]
    options = onert.Options(num_threads=1, optimize=False)
    program = onert.compiler.compile(Package((Subgraphs((top, body)),)), options, backends)
    profile = Profile()
    Execution(program, observers=(profile,)).run([ONES])
    shares = [("Call" in row.label, round(row.share, 6)) for row in profile.rows]
    assert sorted(shares) == [(False, 0.125), (False, 0.375), (False, 0.5), (True, 0.5)]


def test_a_trace_contains_the_times_of_runs_and_their_operations(clock: Clock) -> None:
    trace = Trace()
    execution = Execution(compiled(chain(2.0, 30.0), by_factor(clock)), observers=(trace,))
    execution.run([ONES])
    clock.now += 1.0
    execution.run([ONES])
    events = [(e["ph"], e["name"], round(e["ts"])) for e in trace.events() if e["ph"] in "BE"]
    one, two = "operation 0 ToyScale", "operation 1 ToyScale"
    once = [("B", 0), ("B", 0), ("E", 2000), ("B", 2000), ("E", 32000), ("E", 32000)]
    names = ["run 0", one, one, two, two, "run 0"]
    expected = [(phase, name, at) for name, (phase, at) in zip(names, once, strict=True)]
    names = ["run 1", one, one, two, two, "run 1"]
    assert events == expected + [(phase, name, 1032000 + at) for name, (phase, at) in zip(names, once, strict=True)]


def test_observers_are_notified_when_a_run_begins_and_ends(clock: Clock) -> None:
    seen: list[tuple[str, int]] = []

    class Noting(Observer):
        def run_begins(self, program: Any, tensors: Any) -> None:
            seen.append(("begins", 0))

        def ends(self, work: Any, tensors: Any, start: int, end: int) -> None:
            seen.append((work.label, end - start))

        def run_ends(self, program: Any, start: int, end: int, error: Any) -> None:
            seen.append(("ends", end - start))

    Execution(compiled(chain(2.0, 3.0), by_factor(clock)), observers=(Noting(),)).run([ONES])
    milli = 10**6
    assert [(name, round(t, -3)) for name, t in seen] == [
        ("begins", 0), ("operation 0 ToyScale", 2 * milli), ("operation 1 ToyScale", 3 * milli), ("ends", 5 * milli)
    ]  # fmt: skip


def test_native_operations_take_some_time() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1 << 18,)), "x")
    package = Package((b.model([b.add(Binary(BinaryKind.DIV), b.add(Binary(BinaryKind.ADD), x, x), x)]),))
    profile = Profile()
    execution = onert.Execution(onert.compile(package, num_threads=1), observers=(profile,))
    execution.run([np.ones(1 << 18, np.float32)])
    assert all(0 < row.microseconds < PATIENCE * 1e6 for row in profile.rows)
    assert all(row.gbytes == pytest.approx(row.nbytes / row.microseconds / 1e3) for row in profile.rows)


# ---- ranges


def quantized(dtype: DType, scale: float, zero: int) -> Any:
    d = Draft()
    x = d.quantized_input(dtype, Quantization((scale,), (zero,)), 4)
    op = Reshape((2, 2))
    like = TensorType(dtype, (2, 2), Quantization((scale,), (zero,)))
    return toy_program(d.graph(d.op(op, x, like=like)), [ToyBackend("one")], optimize=False)


@pytest.mark.parametrize(
    ("dtype", "scale", "zero", "stored", "low", "high"),
    [
        (DType.INT8, 0.5, 3, [-128, 3, 7, 127], -65.5, 62.0),
        (DType.UINT8, 0.25, 120, [0, 100, 130, 255], -30.0, 33.75),
        (DType.INT16, 2.0**-10, 0, [-32768, 1, 2, 32767], -32.0, 32767 / 1024),
    ],
)
def test_ranges_of_quantised_tensors_are_real_values(
    dtype: DType, scale: float, zero: int, stored: list[int], low: float, high: float
) -> None:
    ranges = MinMax()
    Execution(quantized(dtype, scale, zero), observers=(ranges,)).run([np.array(stored, dtype.numpy)])
    assert len(ranges.ranges) == 2  # of the input and the result
    assert [(r.low, r.high, r.runs) for r in ranges.ranges.values()] == [(low, high, 1)] * 2


def test_every_operation_of_a_parallel_run_is_measured(clock: Clock) -> None:
    profile = Profile()
    execution = Execution(compiled(branches(2, length=2), by_factor(clock), "Parallel"), observers=(profile,))
    execution.run([ONES])
    assert {row.runs for row in profile.rows} == {1}
    assert sum(row.label.startswith("operation") for row in profile.rows) == len(profile.rows) == 5


def test_a_sequence_that_runs_as_one_kernel_is_measured_as_a_whole(clock: Clock) -> None:
    d = Draft()
    x = d.input(4, name="x")
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(2.0), x), x))

    class Whole(ToyBackend):
        def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
            return SlowKernel(super().generate(sequence, settings), sequence, clock.taking(0.003))

    profile = Profile()
    Execution(toy_program(graph, [Whole("whole")], optimize=False), observers=(profile,)).run([ONES])
    assert [(row.label, round(row.microseconds)) for row in profile.rows] == [
        ("operation 0 ToyScale + operation 1 ToyAdd", 3000)
    ]
