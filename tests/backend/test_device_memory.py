"""What stays on a device, measured by what is sent to it, and the device's queues."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onert
from onert.backend import Backend, Program, Tensors
from onert.backend.registry import load_backend, load_backends
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.exec.frames.frame import Frame
from onert.exec.observers import Observer, Work
from onert.ir import Array, DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.softmax import Softmax

from .remote import Device, RemoteBackend
from .twelve import Place, Twelve, TwelveMemory

ROWS, WIDTH = 4, 64
X, STATE = TensorType(DType.FLOAT32, (ROWS, WIDTH)), TensorType(DType.FLOAT32, (ROWS, WIDTH))
WEIGHTS = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
BIAS = np.linspace(-1, 1, WIDTH, dtype=np.float32)
EXECUTORS = ("Linear", "Dataflow", "Parallel")


def _add(b: Builder, x: int, y: int) -> int:
    return b.add(Binary(BinaryKind.ADD), x, y)


def recurrent(rows: int | None = ROWS) -> Subgraphs:
    """`state = tanh(x * weights + bias + state)`; the output is the new state plus `shift`."""
    b = Builder()
    x, shift = b.input(TensorType(DType.FLOAT32, (rows, WIDTH)), "x"), b.input(TensorType(DType.FLOAT32, (1,)), "shift")
    state = b.variable(STATE, "state")
    product = b.add(Binary(BinaryKind.MUL), x, b.constant(WEIGHTS[: 1 if rows is None else ROWS]))
    new = b.add(Unary(UnaryKind.TANH), _add(b, _add(b, product, b.constant(BIAS)), state))
    b.update(state, new)
    return b.model([_add(b, new, shift)])


def feedforward() -> Subgraphs:
    """A dynamic number of rows, and no state."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, WIDTH)), "x")
    return b.model([b.add(Unary(UnaryKind.TANH), _add(b, x, b.constant(BIAS)))])


def compiled(model: Subgraphs, *backends: Backend, executor: str = "Linear") -> Program:
    options = Options(num_threads=2, optimize=False, executor=executor)
    return compile(Package((model,), "model"), options, (*backends, *load_backends(["reference"])))


def drawn(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((ROWS, WIDTH)).astype(np.float32), np.float32([seed])]


def check_same_bits(mine: Execution, host: Execution, inputs: Sequence[Array]) -> None:
    found, expected = mine.run(inputs), host.run(inputs)
    assert [a.tobytes() for a in found.values()] == [a.tobytes() for a in expected.values()]


# ---- what is sent to the device


def test_constants_are_sent_once_per_program_and_state_is_never_sent(remote: RemoteBackend) -> None:
    sent = remote.device.sent
    program = compiled(recurrent(), remote)
    assert sent == []
    executions = [Execution(program) for _ in range(3)]
    cleared = [STATE.nbytes] * 3  # the initial state of each
    assert sorted(sent) == sorted([WEIGHTS.nbytes, BIAS.nbytes, *cleared])
    sent.clear()
    host = [Execution(compiled(recurrent())) for _ in executions]
    for seed in range(3):
        for mine, theirs in zip(executions, host, strict=True):
            check_same_bits(mine, theirs, drawn(seed))
    assert sorted(sent) == sorted([X.nbytes, 4] * 9)
    assert remote.memory.copies.count("out") == 9  # only the output
    for execution in executions:
        execution.close()
    sent.clear()
    with Execution(program):  # the program still has its constants on the device
        assert sent == [STATE.nbytes]


def test_programs_for_other_shapes_share_constants_on_the_device(remote: RemoteBackend) -> None:
    sent = remote.device.sent
    with Execution(compiled(feedforward(), remote)) as execution:
        for rows in (1, 3, 5, 3):
            found = execution.run([np.ones((rows, WIDTH), np.float32)])
            assert found.popitem()[1].shape == (rows, WIDTH)
    assert sent.count(BIAS.nbytes) == 1 + 1  # the other is an input of one row


def test_only_inputs_that_are_set_again_are_sent(remote: RemoteBackend) -> None:
    sent, (x, shift) = remote.device.sent, drawn(1)
    with Execution(compiled(recurrent(), remote)) as execution:
        execution.run({"x": x, "shift": shift})
        sent.clear()
        execution.run({"shift": shift + 1})
        assert sent == [4]
        sent.clear()
        execution.run({})
        assert sent == []
        execution.run({"x": x + 1})
        assert sent == [X.nbytes]


def test_an_input_used_in_place_is_read_again_in_every_run(remote: RemoteBackend) -> None:
    x, shift = drawn(1)
    mine, host = Execution(compiled(recurrent(), remote)), Execution(compiled(recurrent()))
    with mine:
        for execution in (mine, host):
            execution.run([x + 5, shift])  # with arrays that are copied
            execution.set_input("x", x)
        for _ in range(3):
            x += 1
            for execution in (mine, host):
                execution.execute()
            assert mine.get_output(0).tobytes() == host.get_output(0).tobytes()


def test_resetting_variables_clears_state_on_the_device(remote: RemoteBackend) -> None:
    with Execution(compiled(recurrent(), remote)) as mine:
        host = Execution(compiled(recurrent()))
        for _ in range(2):
            for seed in range(2):
                check_same_bits(mine, host, drawn(seed))
            for execution in (mine, host):
                execution.reset_variables()


def test_state_that_the_host_also_reads_stays_on_the_host(remote: RemoteBackend) -> None:
    def model() -> Subgraphs:
        b = Builder()
        x, state = b.input(X, "x"), b.variable(STATE)
        b.update(state, _add(b, x, b.add(Softmax(), state)))
        return b.model([b.add(Unary(UnaryKind.TANH), state)])

    program = compiled(model(), remote)
    assert {step.backend for step in program.main.steps} == {"remote", "reference", "builtin"}
    with Execution(program) as mine:
        host = Execution(compiled(model()))
        for seed in range(3):
            check_same_bits(mine, host, drawn(seed)[:1])


def test_state_of_a_whole_network_stays_in_the_memory_of_its_backend() -> None:
    b = Builder()
    x, state = b.input(X, "x"), b.variable(STATE)
    b.update(state, b.add(Softmax(), _add(b, x, state)))
    program = compile(Package((b.model([b.add(Softmax(), state)]),)), Options(), (Twelve(), load_backend("builtin")))
    copies = [o.op for o in program.main.subgraph.operations if isinstance(o.op, Permute)]
    assert copies == [Permute("host", "twelve"), Permute("twelve", "host")]  # x and the output


# ---- runs that fail


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failure_on_the_device_fails_the_run_and_keeps_the_old_state(remote: RemoteBackend, executor: str) -> None:
    with Execution(compiled(recurrent(), remote, executor=executor)) as mine:
        host = Execution(compiled(recurrent()))
        check_same_bits(mine, host, drawn(0))
        remote.device.ask("fail", "too hot")
        with pytest.raises(ExecutionError, match="ValueError: too hot"):
            mine.run(drawn(1))
        for seed in (2, 3):
            check_same_bits(mine, host, drawn(seed))


def test_a_failure_that_affects_no_output_still_fails_its_run(remote: RemoteBackend) -> None:
    def model() -> Subgraphs:
        b = Builder()
        x, state = b.input(X, "x"), b.variable(STATE)
        b.update(state, _add(b, x, state))
        return b.model([b.add(Softmax(), x)])  # on the host

    with Execution(compiled(model(), remote)) as mine:
        mine.run(drawn(0)[:1])
        remote.device.ask("fail", "too hot")
        with pytest.raises(ExecutionError, match="too hot"):
            mine.run(drawn(1)[:1])
        mine.run(drawn(2)[:1])


@pytest.mark.parametrize("waits", [False, True], ids=["nobody looks", "observed"])
def test_a_failure_is_reported_to_the_execution_whose_work_failed(remote: RemoteBackend, waits: bool) -> None:
    program = compiled(recurrent(), remote)
    observers = [Observer()] if waits else []
    with Execution(program, observers=observers) as one, Execution(program, observers=observers) as other:
        wanted = Execution(compiled(recurrent())).run(drawn(0)).popitem()[1]
        remote.device.ask("fail", "too hot")
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(execution.run, drawn(0)) for execution in (one, other)]
        errors = [run.exception() for run in runs]
        assert sorted(error is None for error in errors) == [False, True]
        for error, run in zip(errors, runs, strict=True):
            if error is None:
                assert run.result().popitem()[1].tobytes() == wanted.tobytes()
            else:
                assert "too hot" in str(error)


def test_state_on_the_device_is_not_updated_if_the_host_rejects_its_own(remote: RemoteBackend) -> None:
    def model() -> Subgraphs:
        b = Builder()
        x, state = b.input(X, "x"), b.variable(STATE)
        new = _add(b, x, state)
        b.update(state, new)
        shape, own = b.input(TensorType(DType.INT32, (2,)), "shape"), b.variable(TensorType(DType.INT32, (2, 2)))
        b.update(own, b.add(Fill(), shape, b.constant(np.int32([3]))))
        return b.model([new])

    with Execution(compiled(model(), remote)) as mine:
        x = drawn(0)[0]
        assert mine.run([x, np.int32([2, 2])]).popitem()[1].tobytes() == x.tobytes()
        with pytest.raises(ExecutionError, match="a variable is given"):
            mine.run([x, np.int32([3, 2])])
        assert mine.run([x, np.int32([2, 2])]).popitem()[1].tobytes() == (x + x).tobytes()


class InterruptedMemory(TwelveMemory):
    """Memory in which the second copy is interrupted."""

    def __init__(self) -> None:
        self.copies = 0

    def copy(self, source: Place, target: Place, type_: TensorType) -> None:
        self.copies += 1
        if self.copies == 2:
            raise KeyboardInterrupt
        super().copy(source, target, type_)


def test_an_interrupted_update_of_device_variables_is_completed() -> None:
    def model() -> Subgraphs:
        b = Builder()
        x, one, other = b.input(X, "x"), b.variable(STATE), b.variable(STATE)
        sums = [_add(b, x, one), _add(b, _add(b, x, x), other)]
        b.update(one, sums[0])
        b.update(other, sums[1])
        return b.model([_add(b, *sums)])

    backend = Twelve()
    backend._memory = InterruptedMemory()
    mine = Execution(compile(Package((model(),)), Options(), (backend, load_backend("builtin"))))
    host = Execution(compiled(model()))
    with pytest.raises(KeyboardInterrupt):
        mine.run(drawn(0)[:1])
    host.run(drawn(0)[:1])  # the run was complete, so its whole state was updated
    for seed in (1, 2):
        check_same_bits(mine, host, drawn(seed)[:1])


# ---- queues


def test_the_host_waits_once_per_run_when_it_reads_the_output(remote: RemoteBackend) -> None:
    asked = remote.device.asked
    with Execution(compiled(recurrent(), remote)) as execution:
        execution.run(drawn(0))
        asked.clear()
        for seed in range(5):
            execution.run(drawn(seed))
        assert dict(asked) == {"read": 5}


def between(b: Builder) -> list[int]:
    """Sums in one lane and products in another, which reuse the same memory repeatedly."""
    x, shift = b.input(X, "x"), b.input(TensorType(DType.FLOAT32, (1,)), "shift")
    state = b.variable(STATE)
    end, other = _add(b, x, state), x
    for _ in range(3):
        end = b.add(Binary(BinaryKind.MUL), _add(b, end, shift), x)
        other = _add(b, b.add(Binary(BinaryKind.MUL), other, shift), end)
    b.update(state, end)
    return [end, other]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("slow", ["sums", "products"])
def test_a_queue_waits_for_results_of_another_queue(machine: Device, executor: str, slow: str) -> None:
    def model() -> Subgraphs:
        b = Builder()
        return b.model(between(b))

    lanes = [RemoteBackend(machine, name, lane, 0.01 * (name == slow)) for lane, name in ((1, "sums"), (2, "products"))]
    options = Options(num_threads=2, optimize=False, executor=executor, op_backend={"ADD": "sums", "MUL": "products"})
    program = compile(Package((model(),), "model"), options, (*lanes, *load_backends(["reference"])))
    assert {step.backend for step in program.main.steps} == {"sums", "products", "builtin"}
    with Execution(program) as mine:
        host = Execution(compiled(model()))
        machine.asked.clear()
        for seed in range(3):
            check_same_bits(mine, host, drawn(seed))
        assert machine.asked["wait"] == 0


def test_memory_is_reused_only_when_no_queue_reads_it_any_more(machine: Device) -> None:
    def model() -> Subgraphs:
        b = Builder()
        x = b.input(X, "x")
        twice = _add(b, x, x)
        late = b.add(Binary(BinaryKind.MUL), twice, x)  # reads `twice` after others have moved on
        bent = b.add(Unary(UnaryKind.TANH), twice)
        end = _add(b, _add(b, bent, x), x)  # the first sum reuses the memory of `twice`
        return b.model([b.add(Binary(BinaryKind.SUB), late, end)])

    names = ("sums", "products", "functions", "differences")
    lanes = [RemoteBackend(machine, name, lane, 0.05 * (name == "products")) for lane, name in enumerate(names, 1)]
    chosen = {"ADD": "sums", "MUL": "products", "TANH": "functions", "SUB": "differences"}
    options = Options(optimize=False, op_backend=chosen)
    program = compile(Package((model(),), "model"), options, (*lanes, *load_backends(["reference"])))
    places = program.memory_plan["device"].placements
    twice, first = (program.main.subgraph.operations[at].outputs[0] for at in (1, 4))
    assert places[twice].offset == places[first].offset
    with Execution(program) as mine:
        for seed in range(3):
            check_same_bits(mine, Execution(compiled(model())), drawn(seed)[:1])


def test_observers_are_notified_when_a_step_has_finished(remote: RemoteBackend) -> None:
    waited: list[int] = []

    class Witness(Observer):
        def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
            if work.backend == "remote":
                waited.append(remote.device.asked["wait"])

    with Execution(compiled(recurrent(), remote), observers=[Witness()]) as mine:
        remote.device.asked.clear()
        check_same_bits(mine, Execution(compiled(recurrent())), drawn(0))
    assert waited
    assert all(waited)


# ---- no cost for other programs


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_programs_in_host_memory_use_plain_frames_without_copies(backend: str) -> None:
    execution = Execution(onert.compile(Package((recurrent(),), "model"), backends=(backend,)))
    execution.run(drawn(0))
    assert type(execution._frame) is Frame
    assert Frame.put is Frame.place
    assert not any(isinstance(o.op, Permute) for o in execution.program.main.subgraph.operations)
