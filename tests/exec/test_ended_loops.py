"""Loops that a backend runs as a whole end between two rounds if the run is cancelled or its time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

import onert
from onert.capi.onnxruntime_pybind11_state import Fail
from onert.exec import RunCancelledError, RunTimeoutError
from onert.ir import Array
from onert.ir.ops.control_flow.enclosed import Loop

onnx_parser = pytest.importorskip("onnx.parser")

ROUND = """{
    b = MatMul (a, x)
    on = Identity (c)
  }"""
LOOPS = {
    "one loop": f"""
  y = Loop (n, go, x) <body = each (int64 i, bool c, float[64,64] a) => (bool on, float[64,64] b) {ROUND}>
""",
    "a loop in a loop": f"""
  y = Loop (n, go, x) <body = outer (int64 k, bool d, float[64,64] s) => (bool still, float[64,64] t) {{
    t = Loop (n, d, s) <body = each (int64 i, bool c, float[64,64] a) => (bool on, float[64,64] b) {ROUND}>
    still = Identity (d)
  }}>
""",
}
"""Products with an identity matrix."""
X, MANY, WORK = np.eye(64, dtype=np.float32), 900_000, 1 << 50
"""The identity, a number of rounds that takes many seconds, and a limit that allows them."""


def _model(body: str) -> bytes:
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
g (float[64,64] x, bool go, int64 n) => (float[64,64] y) {{{body}}}"""
    content: bytes = onnx_parser.parse_model(text).SerializeToString()
    return content


def _inputs(rounds: int) -> dict[str, Array]:
    return {"x": X, "go": np.array(True), "n": np.int64(rounds)}


@pytest.fixture(params=[(name, threads) for name in LOOPS for threads in (1, 2)], ids=lambda p: f"{p[0]}, {p[1]}")
def execution(request: pytest.FixtureRequest) -> Iterator[Any]:
    name, threads = request.param
    program = onert.compile(onert.load(_model(LOOPS[name])), num_threads=threads, max_work=WORK)
    assert any(isinstance(o.op, Loop) for routine in program.routines for o in routine.subgraph.operations)
    with onert.Execution(program) as made:
        made.run(_inputs(1))
        yield made


def _assert_runs(execution: Any) -> None:
    np.testing.assert_array_equal(execution.run(_inputs(3))["y"], X)


def test_a_loop_ends_at_the_deadline(execution: Any) -> None:
    for _ in range(2):
        with pytest.raises(RunTimeoutError, match=r"the run did not end within 0\.05 seconds"):
            execution.run(_inputs(MANY), timeout=0.05)
        _assert_runs(execution)


def test_a_background_run_s_loop_ends_when_its_future_is_cancelled(execution: Any) -> None:
    for name, array in _inputs(MANY).items():
        execution.set_input(name, array)
    future = execution.execute_async()
    while not future.running():
        sleep(0.001)
    assert future.cancel()
    with pytest.raises(RunCancelledError):
        future.result()
    _assert_runs(execution)


def test_another_thread_cancels_a_loop(execution: Any) -> None:
    def cancel() -> None:
        while not execution.cancel():
            sleep(0.001)

    thread = Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelledError, match="the run was cancelled"):
        execution.run(_inputs(MANY))
    thread.join()
    _assert_runs(execution)


def test_a_deadline_ends_no_later_run(execution: Any) -> None:
    for seconds in (0.0003, 0.001, 0.002) * 5:
        with suppress(RunTimeoutError):
            execution.run(_inputs(3), timeout=seconds)
        np.testing.assert_array_equal(execution.run(_inputs(30))["y"], X)


def test_a_run_that_ends_in_time_is_whole(execution: Any) -> None:
    np.testing.assert_array_equal(execution.run(_inputs(5), timeout=600)["y"], X)


ENDED: dict[str, Callable[[Any, Any], object]] = {
    "run": lambda session, options: session.run(None, _inputs(MANY), options),
    "values": lambda session, options: session.run_with_ort_values(
        None, {name: onert.OrtValue.ortvalue_from_numpy(array) for name, array in _inputs(MANY).items()}, options
    ),
    "a binding": lambda session, options: session.run_with_iobinding(_bound(session), options),
}


def _session() -> Any:
    choices = onert.SessionOptions()
    choices.onert = {"max_work": WORK}
    return onert.InferenceSession(_model(LOOPS["one loop"]), choices)


def _bound(session: Any) -> Any:
    binding = session.io_binding()
    for name, array in _inputs(MANY).items():
        binding.bind_cpu_input(name, np.asarray(array))
    binding.bind_output("y")
    return binding


@pytest.mark.parametrize("way", ENDED)
def test_a_session_s_run_ends_when_its_options_say_terminate(way: str) -> None:
    session = _session()
    session.run(None, _inputs(1))
    options = onert.RunOptions()

    def terminate() -> None:
        sleep(0.05)
        options.terminate = True

    thread = Thread(target=terminate)
    thread.start()
    with pytest.raises(Fail, match=r"the run was cancelled|termination"):
        ENDED[way](session, options)
    thread.join()
    with pytest.raises(Fail, match="termination"):
        session.run(None, _inputs(1), options)
    options.terminate = False
    np.testing.assert_array_equal(session.run(None, _inputs(3), options)[0], X)


def test_a_run_of_a_session_s_thread_ends_when_its_options_say_terminate() -> None:
    session, options, found = _session(), onert.RunOptions(), list[str]()
    session.run_async(None, _inputs(MANY), lambda results, _, error: found.append(error), None, options)
    sleep(0.05)
    options.terminate = True
    while not found:
        sleep(0.001)
    assert "cancelled" in found[0] or "termination" in found[0]
