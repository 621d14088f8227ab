"""Backends that do not share memory: what is copied and when, and what is freed."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

from onert.backend import CHANNELS_FIRST, HOST, Backend, Program
from onert.backend.registry import load_backends
from onert.backend.testing import CLAIMS, TRIALS, Skipped, align, hold
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import Array, DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.softmax import Softmax

from .channels_first import ChannelsFirst
from .remote import RemoteBackend, device

ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
EXECUTORS = ("Linear", "Dataflow", "Parallel")


def mixed() -> Subgraphs:
    """Operations of the device around one that it does not support."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (4, 8)), name) for name in "xy")
    both = b.add(ADD, x, y)
    product = b.add(MUL, both, x)
    shares = b.add(Softmax(), product)  # on the host
    bent = b.add(Unary(UnaryKind.TANH), b.add(ADD, b.add(MUL, shares, both), product))
    return b.model([bent, product])


def inputs() -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((4, 8)).astype(np.float32) for _ in range(2)]


def compiled(model: Subgraphs, *backends: Backend, **options: Any) -> Program:
    chosen = Options(num_threads=2, optimize=False, **options)
    return compile(Package((model,), "mixed"), chosen, (*backends, *load_backends(["reference"])))


def permutes(program: Program) -> list[tuple[str, str]]:
    return [(o.op.source, o.op.target) for o in program.main.subgraph.operations if isinstance(o.op, Permute)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_backend_in_another_process_gives_the_same_bits(remote: RemoteBackend, executor: str) -> None:
    expected = Execution(compiled(mixed())).run(inputs())
    program = compiled(mixed(), remote, executor=executor)
    assert {step.backend for step in program.main.steps} == {"remote", "builtin", "reference"}
    with Execution(program) as execution:
        for _ in range(3):
            got = execution.run(inputs())
            assert [a.tobytes() for a in got.values()] == [a.tobytes() for a in expected.values()]


def test_the_memory_is_in_the_other_process(remote: RemoteBackend) -> None:
    program = compiled(mixed(), remote)
    with Execution(program) as execution:
        execution.run(inputs())
        pid, arenas, nbytes = remote.device.ask("arenas")
        assert pid != os.getpid()
        assert arenas == 3  # the planned arena, and copies of both inputs
        assert nbytes == program.memory_plan["device"].size + sum(info.type.nbytes for info in program.inputs)
        assert program.memory_plan["device"].size == program.memory_plan["device"].lower_bound


def test_a_tensor_is_copied_once_and_only_between_memory_spaces(remote: RemoteBackend) -> None:
    program = compiled(mixed(), remote)
    # In: x, y and the host's result. Out: `product`, once for the host's operation and as an output, and `bent`.
    assert sorted(permutes(program)) == [("device", "host")] * 2 + [("host", "device")] * 3
    with Execution(program) as execution:
        execution.run(inputs())
        remote.memory.copies.clear()
        execution.run(inputs())
        assert sorted(remote.memory.copies) == ["in"] * 3 + ["out"] * 2


def test_tensors_used_only_on_the_device_are_never_copied(remote: RemoteBackend) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (16,)), "x")
    end = x
    for _ in range(6):
        end = b.add(ADD, b.add(Unary(UnaryKind.TANH), end), x)
    program = compiled(b.model([end]), remote)
    assert permutes(program) == [("host", "device"), ("device", "host")]
    assert program.memory_plan["device"].lower_bound == 2 * 64  # in addition to x


def test_device_memory_is_freed_when_an_execution_is_closed_or_deleted(remote: RemoteBackend) -> None:
    program = compiled(mixed(), remote)
    execution = Execution(program)
    execution.run(inputs())
    assert remote.device.ask("arenas")[1] == 3
    execution.close()
    assert remote.device.ask("arenas")[1] == 0
    dropped = Execution(program)
    dropped.run(inputs())
    del dropped
    assert remote.device.ask("arenas")[1] == 0


def test_executions_on_a_device_can_run_in_several_threads(remote: RemoteBackend) -> None:
    program = compiled(mixed(), remote, executor="Parallel")
    expected = [a.tobytes() for a in Execution(compiled(mixed())).run(inputs()).values()]

    def work(_: int) -> list[bytes]:
        with Execution(program) as execution:
            for _ in range(5):
                found = execution.run(inputs())
            return [a.tobytes() for a in found.values()]

    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(work, range(8)))


def test_a_device_out_of_memory_is_reported(remote: RemoteBackend) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1 << 18,)), "x")
    program = compiled(b.model([b.add(ADD, b.add(Unary(UnaryKind.TANH), x), x)]), remote)
    with pytest.raises(ExecutionError, match="the device refuses allocate: MemoryError: "):
        Execution(program)
    gc.collect()


def test_a_device_that_disappears_raises_an_error_and_does_not_hang() -> None:
    with device() as machine:
        execution = Execution(compiled(mixed(), RemoteBackend(machine), executor="Parallel"))
        execution.run(inputs())
        machine.process.kill()
        machine.process.join(PATIENCE)
        with pytest.raises(ExecutionError, match="the device has gone away"):
            execution.run(inputs())
        execution._frame._free.detach()  # nothing is left to free


def test_tensors_of_unknown_size_stay_on_the_host(remote: RemoteBackend) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 8)), "x")
    program = compiled(b.model([b.add(ADD, b.add(Unary(UnaryKind.TANH), x), x)]), remote)
    assert {step.backend for step in program.main.steps} == {"reference"}
    assert any("cannot be stored in device memory" in note for note in program.notes)
    with Execution(program) as execution:
        (out,) = execution.run([np.zeros((3, 8), np.float32)]).values()
        assert out.shape == (3, 8)
        assert "remote" in {step.backend for step in execution.program.main.steps}  # this shape is known


# ---- layouts


def pictures() -> Subgraphs:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 6, 8, 3)), "x")
    pooled = b.add(Pool2D(Pooling.MAX, 2, 2, stride_height=2, stride_width=2), x)
    summed = b.add(ADD, pooled, pooled)
    softened = b.add(Softmax(), summed)
    return b.model([b.add(MUL, softened, summed)])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_channels_first_backend_gets_channels_first_tensors(executor: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 6, 8, 3)).astype(np.float32)
    expected = Execution(compiled(pictures())).run([x])
    program = compiled(pictures(), ChannelsFirst(), executor=executor)
    execution = Execution(program)
    for _ in range(2):
        got = execution.run([x])
        assert [a.tobytes() for a in got.values()] == [a.tobytes() for a in expected.values()]
    inside = [i for i, memory in program.main.memories.items() if memory is CHANNELS_FIRST]
    shapes = {execution._frame.tensors[i].buffer.shape for i in inside if i in execution._frame.tensors}
    assert shapes == {(2, 3, 6, 8), (2, 3, 3, 4)}


def test_backends_with_the_same_layout_exchange_images_without_copies() -> None:
    options = {"op_backend": {"Pool2D": "one", "ADD": "other", "MUL": "one"}}
    program = compiled(pictures(), ChannelsFirst("one"), ChannelsFirst("other"), **options)
    first, host = CHANNELS_FIRST.name, HOST.name
    assert {step.backend for step in program.main.steps} >= {"one", "other"}
    assert sorted(permutes(program)) == sorted([(host, first), (first, host), (host, first), (first, host)])


# ---- the kit on such backends


def test_backends_with_separate_memory_pass_the_conformance_kit(remote: RemoteBackend) -> None:
    for backend in (remote, ChannelsFirst()):
        for claim in CLAIMS:
            hold(backend, claim)
        counts = {"run": 0, "skipped": 0}
        for trial in TRIALS:
            try:
                align(backend, trial)
                counts["run"] += 1
            except Skipped:
                counts["skipped"] += 1
        assert counts["run"] >= 4
