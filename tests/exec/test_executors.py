"""Executors: equal results in any valid order, concurrent steps, and no hang on failure."""

from __future__ import annotations

from threading import Thread, active_count

import numpy as np
import pytest
from compiler.test_program import everything, graphs, numbers
from compiler.test_program import program as toy_program
from compiler.toy import Draft, ToyAdd, ToyBackend, ToyScale, ToyWrite
from hypothesis import HealthCheck, given, settings
from patience import PATIENCE
from shared_material import SHARED, needs_shared

import onert
from onert.backend import Kernel, Sequence, Settings
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import Array, ExecutionError, Package, Subgraph, Subgraphs
from onert.ir.ops.control_flow.control import Call

from .slow import Meeting, branches, chain, compiled, failing, sleeping

ONES = np.ones(4, np.float32)
EXECUTORS = ("Linear", "Dataflow", "Parallel")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_every_executor_gives_the_same_bits(graph: Subgraph) -> None:
    inputs = [numbers(*(d or 0 for d in graph.type(i).shape), seed=i) for i in graph.inputs]
    found: dict[str, list[list[Array]]] = {}
    for name in EXECUTORS:
        execution = Execution(toy_program(graph, everything(), executor=name, num_threads=4))
        found[name] = []
        for _ in range(3):  # state carries over from run to run
            execution.run(inputs)
            found[name].append([execution.get_output(i) for i in range(len(graph.outputs))])
    for name in EXECUTORS[1:]:
        for run, expected in zip(found[name], found["Linear"], strict=True):
            for got, array in zip(run, expected, strict=True):
                assert got.tobytes() == array.tobytes()


MODELS = (
    "mobilenet_v3_small_224_fp32.tflite",
    "movenet_single_pose_lightning_ptq.tflite",
    "face_detection_short_range.tflite",
    "cf_while_cond_fp32.tflite",
    "trained_lstm.tflite",
    "model_quant_1.tflite",
)


@needs_shared
@pytest.mark.parametrize("name", MODELS)
def test_real_models_give_the_same_bits(name: str) -> None:
    path = next((SHARED / "models").rglob(name), None)
    if path is None:
        pytest.skip(f"{name} is not among the shared models")
    package = onert.load(path)
    rng = np.random.default_rng(0)
    results = []
    inputs: list[Array] = []
    for executor in EXECUTORS:
        program = onert.compile(package, executor=executor, num_threads=2)
        if not inputs:
            shapes = [tuple(d or 1 for d in info.shape) for info in program.inputs]
            inputs = [
                rng.standard_normal(shape).astype(info.dtype.numpy)
                if info.dtype.is_float
                else rng.integers(0, 100, shape).astype(info.dtype.numpy)
                for shape, info in zip(shapes, program.inputs, strict=True)
            ]
        execution = onert.Execution(program)
        results.append([execution.run(inputs), execution.run(inputs)])
    for again in results[1:]:
        for mine, linear in zip(again, results[0], strict=True):
            assert {k: v.tobytes() for k, v in mine.items()} == {k: v.tobytes() for k, v in linear.items()}


def test_dataflow_runs_the_longest_path_first() -> None:
    order: list[float] = []
    d = Draft()
    x = d.input(4, name="x")
    short = d.op(ToyScale(3.0), x)
    long = d.op(ToyScale(6.0), d.op(ToyScale(5.0), d.op(ToyScale(4.0), x)))
    graph = d.graph(d.op(ToyAdd(), short, long))

    def note(sequence: Sequence) -> None:
        order.extend(o.op.factor for o in sequence.body if isinstance(o.op, ToyScale))

    noted = compiled(graph, note, "Dataflow")
    Execution(noted).run([ONES])
    assert order[:2] == [4.0, 5.0]
    assert sorted(order[2:]) == [3.0, 6.0]


def test_steps_of_one_backend_run_concurrently() -> None:
    # Each of the three kernels waits until all three have started: with one worker per backend this would never end.
    execution = Execution(compiled(branches(3), Meeting(3), "Parallel", threads=3))
    (out,) = execution.run([ONES]).values()
    assert out.tolist() == [9.0] * 4


def test_equal_steps_of_two_branches_run_concurrently() -> None:
    # Each kernel waits for its counterpart in the other branch, so the eight steps take no longer than four.
    meeting = Meeting(2)
    execution = Execution(compiled(branches(2, length=4), meeting, "Parallel", threads=2))
    for _ in range(5):
        (out,) = execution.run([ONES]).values()
        assert out.tolist() == [2.0**4 + 3.0**4] * 4
    assert meeting.barrier.n_waiting == 0


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failing_step_ends_the_run_with_its_error_and_other_runs_complete(executor: str) -> None:
    execution = Execution(compiled(branches(4, length=2, factor=11.0), failing, executor, threads=3))
    for _ in range(20):
        with pytest.raises(ExecutionError, match="thirteen"):
            execution.run([ONES])
    fine = Execution(compiled(branches(4, length=2), failing, executor, threads=3))
    assert fine.run([ONES])


def test_runs_share_a_small_number_of_threads() -> None:
    program = compiled(branches(3), sleeping(0.001), "Parallel", threads=3)

    def work() -> None:
        execution = Execution(program)
        for _ in range(20):
            execution.run([ONES])

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert active_count() < 100


def test_effects_keep_their_order_in_parallel() -> None:
    d = Draft()
    x, y = d.input(2), d.input(2)
    writes = [d.op(ToyWrite(), i) for i in (x, y, x, y)]
    graph = d.graph(*writes)
    program = toy_program(
        graph, [ToyBackend("single", single=True), ToyBackend("builtin")], executor="Parallel", num_threads=4
    )
    state: dict[str, list[list[float]]] = {}
    Execution(program, state).run([np.zeros(2, np.float32), np.ones(2, np.float32)])
    assert state["notes"] == [[0, 0], [1, 1], [0, 0], [1, 1]]


def test_concurrent_steps_may_call_the_same_subgraph() -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(3.0), inner.op(ToyScale(2.0), inner.input(4))))
    outer = Draft()
    x = outer.input(4, name="x")
    calls = [outer.op(Call(1), outer.op(ToyScale(float(i)), x)) for i in range(1, 5)]
    total = calls[0]
    for call in calls[1:]:
        total = outer.op(ToyAdd(), total, call)
    model = Subgraphs((outer.uninferred(total), body))
    program = compile(
        Package((model,)), Options(executor="Parallel", num_threads=4, optimize=False), load_backends(["reference"])
    )
    execution = Execution(program)
    for _ in range(50):
        assert execution.run([ONES])[program.outputs[0].name].tolist() == [60.0] * 4


def test_concurrent_steps_divide_the_threads() -> None:
    seen: dict[str, int] = {}

    class Asking(ToyBackend):
        def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
            seen[str(sequence.body[0])] = settings.num_threads
            return super().generate(sequence, settings)

    d = Draft()
    x = d.op(ToyScale(2.0), d.input(4, name="x"))
    left, right = d.op(ToyScale(3.0), x), d.op(ToyScale(4.0), x)
    graph = d.graph(d.op(ToyScale(5.0), d.op(ToyAdd(), left, right)))
    toy_program(
        graph,
        [Asking("asking", single=True), ToyBackend("builtin")],
        executor="Parallel",
        num_threads=4,
        optimize=False,
    )
    assert seen == {
        "operation 0 ToyScale": 4,
        "operation 1 ToyScale": 2,
        "operation 2 ToyScale": 2,
        "operation 3 ToyAdd": 4,
        "operation 4 ToyScale": 4,
    }


def test_a_model_without_branches_is_one_step_for_every_executor() -> None:
    for executor in EXECUTORS:
        program = toy_program(chain(2.0, 3.0, 4.0), [ToyBackend("builtin")], executor=executor)
        assert len(program.main.steps) == 1
