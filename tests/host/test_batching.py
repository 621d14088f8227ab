"""Batching: several requests in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from host.dividing import layers
from host.gated import GatedDevice, squares
from onert.host import BatchConfig, ConfigurationError, DeadlineError, DeviceConfig, HostConfig, HostManager, placement
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.softmax import Softmax

WIDTH = 16


def rows(count: int) -> list[Array]:
    return list(np.random.default_rng(1).uniform(-1, 1, (count, 1, WIDTH)).astype(np.float32))


def value(future: Future[dict[str, Array]]) -> Array:
    (found,) = future.result(PATIENCE).values()
    return found


def alone(package: Package, inputs: Sequence[Array]) -> list[Array]:
    execution = onert.Execution(onert.compile(package, num_threads=1))
    return [next(iter(execution.run([x]).values())) for x in inputs]


@pytest.fixture
def gated() -> Iterator[tuple[HostManager, GatedDevice]]:
    """A host on a gated device that doubles its input."""
    device = GatedDevice(outputs=lambda _, inputs: [2 * inputs[0]])
    with HostManager([device]) as host:
        yield host, device
        device.gate.set()


def _waiting(device: GatedDevice, host: HostManager, inputs: Sequence[Array], **more: Any) -> list[Future[Any]]:
    """Futures of requests: the first is running, the others wait for the device."""
    futures = [host.run_network("n", [inputs[0]])]
    device.begun()
    return futures + [host.run_network("n", [x], **more) for x in inputs[1:]]


# ---- one run for several requests


def test_requests_that_wait_for_a_device_are_run_as_one_batch(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    dag = host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4))
    assert dag.notes == ("batches are one run, of 1, 2, 4 requests",)
    inputs = rows(11)
    futures = _waiting(device, host, inputs)
    device.gate.set()
    for x, future in zip(inputs, futures, strict=True):
        np.testing.assert_array_equal(value(future), 2 * x)
    began = [device.begun() for _ in range(device.began.qsize())]
    assert began == ["n/batch4", "n/batch4", "n/batch2"]
    counted = host.statistics().networks["n"]
    assert (counted.requests_succeeded, counted.requests_active) == (11, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_partial_batch_is_padded_to_a_compiled_size(gated: tuple[HostManager, GatedDevice], count: int) -> None:
    host, device = gated
    shapes = []
    device.outputs = lambda _, inputs: shapes.append(inputs[0].shape) or [2 * inputs[0]]  # type: ignore[func-returns-value]
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=5))
    inputs = rows(1 + count)
    futures = _waiting(device, host, inputs)
    device.gate.set()
    for x, future in zip(inputs, futures, strict=True):
        np.testing.assert_array_equal(value(future), 2 * x)
    answers = [value(future) for future in futures]
    assert not any(np.shares_memory(one, other) for one, other in combinations(answers, 2))
    assert shapes[1:] == [({1: 1, 2: 2, 3: 4, 4: 4, 5: 5}[count], WIDTH)]


def test_the_next_batch_consists_of_the_most_urgent_requests(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=2))
    inputs = rows(6)
    seen: list[Array] = []
    device.outputs = lambda _, given: seen.append(given[0].copy()) or [given[0]]  # type: ignore[func-returns-value]
    futures = [host.run_network("n", [inputs[0]])]
    device.begun()
    futures += [host.run_network("n", [x], priority=p) for x, p in zip(inputs[1:], [2, 1, 2, 0, 1], strict=True)]
    device.gate.set()
    wait(futures, PATIENCE)
    order = [0, 4, 2, 5, 1, 3]
    np.testing.assert_array_equal(np.concatenate(seen)[: len(order)], np.concatenate([inputs[i] for i in order]))


@pytest.mark.parametrize("parts", [None, 2])
def test_batches_give_the_results_of_single_requests(parts: int | None) -> None:
    package = layers(WIDTH, 32, 32, 8)
    inputs = rows(200)
    want = alone(package, inputs)
    with HostManager([DeviceConfig(threads=1)] * 2, HostConfig(max_queue_size=500)) as host:
        host.add_network("n", package, parts=parts, batch=BatchConfig(max_size=8))
        futures = [host.run_network("n", [x]) for x in inputs]
        for future, expected in zip(futures, want, strict=True):
            np.testing.assert_allclose(value(future), expected, rtol=1e-5, atol=1e-5)
        (found,) = host.run_network_blocking("n", [inputs[0]]).values()
        np.testing.assert_allclose(found, want[0], rtol=1e-5, atol=1e-5)
        host.remove_network("n")
        assert [device.functions for device in host.devices] == [(), ()]


def test_an_error_of_a_batch_fails_each_of_its_requests(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4))

    def outputs(function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        if function == "n/batch4":
            raise onert.ExecutionError("four")
        return inputs

    device.outputs = outputs
    futures = _waiting(device, host, rows(6))
    device.gate.set()
    errors = [future.exception(PATIENCE) for future in futures]
    assert [str(error) for error in errors] == ["None", *["four"] * 4, "None"]
    counted = host.statistics().networks["n"]
    assert (counted.requests_succeeded, counted.requests_failed) == (2, 4)


def test_requests_past_their_deadline_are_left_out_of_batches(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4))
    futures = _waiting(device, host, rows(4), timeout=0)
    device.gate.set()
    errors = [type(future.exception(PATIENCE)).__name__ for future in futures]
    assert errors == ["NoneType", "DeadlineError", "DeadlineError", "DeadlineError"]
    assert value(host.run_network("n", [rows(1)[0]])).shape == (1, WIDTH)


# ---- waiting for others


def test_a_request_that_misses_its_deadline_in_a_batch_is_counted_once(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4))
    inputs = rows(3)
    late, *futures = (host.run_network("n", [x], timeout=None if at else 0.01) for at, x in enumerate(inputs))
    assert isinstance(late.exception(PATIENCE), DeadlineError)
    device.gate.set()
    for x, future in zip(inputs[1:], futures, strict=True):
        np.testing.assert_array_equal(value(future), 2 * x)
    host.close()
    counted = host.statistics().networks["n"]
    assert (counted.requests_succeeded, counted.requests_failed) == (2, 1)


@pytest.mark.parametrize("width", [WIDTH, 1 << 15])
def test_answers_of_a_batch_share_no_memory(width: int) -> None:
    """Writing to one answer does not change another, and an answer does not keep a large batch alive."""
    with HostManager([DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares(width), batch=BatchConfig(max_size=4))
        given = [np.full(width, at, np.float32) for at in range(9)]
        answers = [value(f) for f in [host.run_network("n", [x]) for x in given]]
        for answer in answers:
            answer += 1
            assert answer.base is None or answer.base.nbytes <= 1 << 18
        for x, answer in zip(given, answers, strict=True):
            np.testing.assert_array_equal(answer, x * x + 1)


def test_a_full_batch_runs_without_delay(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    device.gate.set()
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4, max_delay=PATIENCE))
    futures = [host.run_network("n", [x]) for x in rows(3)]
    assert device.began.empty()
    assert not any(future.done() for future in futures)
    futures.append(host.run_network("n", [rows(1)[0]]))
    assert wait(futures, PATIENCE).not_done == set()
    assert device.begun() == "n/batch4"


def test_a_request_waits_for_a_batch_no_longer_than_max_delay(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    device.gate.set()
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=64, max_delay=0.01))
    futures = [host.run_network("n", [x]) for x in rows(3)]
    assert wait(futures, PATIENCE).not_done == set()


def test_an_idle_device_starts_at_once_if_there_is_no_max_delay(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    device.gate.set()
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=64))
    assert value(host.run_network("n", [rows(1)[0]])).shape == (1, WIDTH)
    assert device.begun() == "n"


# ---- networks that cannot be stacked


def _over_rows() -> Package:
    """A softmax over the first dimension, so that each request's answer depends on the rest of its batch."""
    b = Builder("over rows")
    x = b.input(TensorType(DType.FLOAT32, (1, 4)), "x")
    order = b.constant(np.int32([1, 0]))
    y = b.add(Transpose(), b.add(Softmax(), b.add(Transpose(), x, order)), order)
    return Package((b.model([y]),), "over rows")


def test_networks_whose_rows_depend_on_each_other_are_not_stacked() -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        dag = host.add_network("n", _over_rows(), batch=BatchConfig(max_size=4))
        assert dag.notes == ("batches are several runs: output 'output_0' of a request depends on the others",)
        futures = [host.run_network("n", [np.float32([[i, 0, 0, 0]])]) for i in range(50)]
        assert all((value(future) == 1).all() for future in futures)
        with pytest.raises(onert.CompileError, match="network 'm': requests cannot be stacked: output 'output_0' of a"):
            host.add_network("m", _over_rows(), batch=BatchConfig(max_size=4, stacked=True))
        assert host.networks == ("n",)
        assert host.devices[0].functions == ("n",)


def test_reshapes_with_a_fixed_first_dimension_do_not_prevent_stacking() -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    rng = np.random.default_rng(0)
    images = [rng.integers(-128, 128, (1, 8, 8, 1)).astype(np.int8) for _ in range(30)]
    want = alone(package, images)
    with HostManager([DeviceConfig(threads=1)]) as host:
        dag = host.add_network("n", package, batch=BatchConfig(max_size=8))
        assert dag.notes == ("batches are one run, of 1, 2, 4, 8 requests",)
        futures = [host.run_network("n", [image]) for image in images]
        for future, expected in zip(futures, want, strict=True):
            np.testing.assert_array_equal(value(future), expected)


def _scalar() -> Package:
    b = Builder("scalar")
    x = b.input(TensorType(DType.FLOAT32, ()), "x")
    return Package((b.model([b.add(Unary(UnaryKind.SQUARE), x)]),), "scalar")


@pytest.mark.parametrize("stacked", [False, None])
def test_a_batch_can_consist_of_several_runs(stacked: bool | None) -> None:
    with HostManager([DeviceConfig(threads=1)], HostConfig(max_queue_size=500)) as host:
        dag = host.add_network("n", _scalar(), batch=BatchConfig(max_size=4, stacked=stacked))
        assert dag.notes[0].startswith("batches are several runs")

        def ask(number: int) -> bool:
            futures = [host.run_network("n", [np.float32(number * i)]) for i in range(50)]
            return [float(value(future)) for future in futures] == [float(number * i) ** 2 for i in range(50)]

        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(ask, range(4), timeout=PATIENCE))


def test_in_an_unstacked_batch_an_error_fails_only_its_own_request(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4, stacked=False))

    def outputs(function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        if (inputs[0] == 2).all():
            raise onert.ExecutionError("two")
        return inputs

    device.outputs = outputs
    futures = _waiting(device, host, [np.full((1, WIDTH), i, np.float32) for i in range(6)])
    device.gate.set()
    assert [str(future.exception(PATIENCE)) for future in futures] == ["None", "None", "two", "None", "None", "None"]


def test_a_partitioned_network_that_cannot_be_stacked_runs_requests_one_by_one() -> None:
    with HostManager([DeviceConfig(threads=1)] * 2) as host:
        dag = host.add_network("n", _over_rows(), parts=2, batch=BatchConfig(max_size=4))
        assert dag.notes[-1].startswith("requests are run one by one: batches are several runs: ")
        assert (value(host.run_network("n", [np.ones((1, 4), np.float32)])) == 1).all()


@pytest.mark.parametrize(("size", "sizes"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))])
def test_batches_are_compiled_for_powers_of_two_and_the_largest(size: int, sizes: tuple[int, ...]) -> None:
    assert BatchConfig(max_size=size).sizes == sizes


def test_a_batch_has_at_least_one_request() -> None:
    with pytest.raises(ConfigurationError, match="max_size is 0, expected at least 1"):
        BatchConfig(max_size=0)


@pytest.mark.parametrize(
    ("seconds_together", "stacked", "note"),
    [
        (0.9, None, "batches are one run, of 1, 2, 4 requests"),
        (1.5, None, "batches are several runs: one run of 4 requests takes 600.00 ms, 4 runs 400.12 ms"),
        (1.5, True, "batches are one run, of 1, 2, 4 requests"),
    ],
)
def test_requests_are_stacked_if_that_takes_no_longer(
    seconds_together: float, stacked: bool | None, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "_seconds", lambda *programs: [0.1, seconds_together * 0.4])
    with HostManager([DeviceConfig(threads=1)]) as host:
        dag = host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4, stacked=stacked))
        assert dag.notes == (note,)


def test_measured_run_times_grow_with_the_program() -> None:
    short, long = (onert.compile(layers(*[width] * 8), num_threads=1) for width in (4, 1024))
    one, other = placement._seconds(short, long)
    assert 0 < one < other < PATIENCE


def test_a_finished_batch_admits_as_many_requests_from_the_queue() -> None:
    device = GatedDevice(outputs=lambda _, inputs: [2 * inputs[0]])
    with HostManager([device], HostConfig(max_active_requests=4)) as host:
        host.add_network("n", layers(WIDTH, WIDTH), batch=BatchConfig(max_size=4))
        futures = _waiting(device, host, rows(11))
        device.gate.set()
        assert wait(futures, PATIENCE).not_done == set()
        began = [device.begun() for _ in range(device.began.qsize())]
    # One was running and three waited for the device; one took the place of the first, then three at a time.
    assert began == ["n/batch4", "n", "n/batch4", "n", "n/batch2"]
