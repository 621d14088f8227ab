"""The estimated time of a run and how the scheduler uses it: copies, workers, and moves that pay off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onert.backend import HOST, Backend
from onert.compiler import Options, compile
from onert.compiler.scheduler import heterogeneous
from onert.compiler.scheduler.estimate import BYTES_PER_MICROSECOND, Transfers, total
from onert.compiler.scheduler.exec_time import FAILED, ExecTimes, detail, merged, save, total_bytes
from onert.ir import CallTypes, DType, Op, Package, Quantization, Subgraph, Subgraphs, TensorType
from onert.ir.ops.data_movement.permute import Permute

from .test_he_scheduler import PricedBackend, scheduled
from .toy import ELSEWHERE, Draft, Elsewhere, ToyBackend, ToyScale


class Far(Elsewhere):
    """A third memory space."""

    name = "far"


A, B, D, F = (
    ToyBackend("a"),
    ToyBackend("b"),
    ToyBackend("d", memory=ELSEWHERE),
    ToyBackend("f", memory=Far()),
)
TEN = TensorType(DType.FLOAT32, (1000,))
COPIES = merged(
    ExecTimes(),
    [
        ("a", "d", False, 8000, 100.0), ("d", "a", False, 8000, 200.0), ("a", "f", False, 8000, 10.0),
        ("f", "a", False, 8000, 20.0),
    ],
)  # fmt: skip


def estimated(graph: Subgraph, chosen: Sequence[Backend], price: float = 50.0, workers: int = 1) -> float:
    times = [{backend.name: price} for backend in chosen]
    return total(graph, chosen, times, Transfers(graph, COPIES, A), workers)


def chain(length: int) -> Subgraph:
    d = Draft()
    x = d.input(1000, name="x")
    for _ in range(length):
        x = d.op(ToyScale(2.0), x)
    return d.graph(x)


def branches(count: int) -> Subgraph:
    """`count` scales of one input, each an output."""
    d = Draft()
    x = d.input(1000, name="x")
    return d.graph(*(d.op(ToyScale(float(i)), x) for i in range(count)))


@pytest.mark.parametrize(
    ("chosen", "microseconds"),
    [
        ((A, A), 100),
        ((A, B), 100),  # one memory, no copies
        ((D, D), 100 + 100 + 200),  # in and out
        ((A, D), 100 + 100 + 200),
        ((D, A), 100 + 100 + 200),
        ((D, F), 100 + 100 + (200 + 10) + 20),  # from one device to another through the host
        ((F, D), 100 + 10 + (20 + 100) + 200),
    ],
)
def test_a_chain_costs_its_operations_and_copies(chosen: tuple[Backend, ...], microseconds: float) -> None:
    assert estimated(chain(2), chosen) == microseconds


def test_a_copy_to_a_device_counts_once_for_all_its_readers_there() -> None:
    assert estimated(branches(3), (D, D, D)) == 100 + 3 * 50 + 3 * 200


@pytest.mark.parametrize(("workers", "microseconds"), [(1, 200), (2, 100), (3, 100), (4, 50)])
def test_workers_run_ready_operations_in_parallel(workers: int, microseconds: float) -> None:
    assert estimated(branches(4), (A,) * 4, workers=workers) == microseconds
    assert estimated(chain(4), (A,) * 4, workers=workers) == 200


def test_copies_occupy_a_worker() -> None:
    assert estimated(branches(2), (D, A), workers=1) == 100 + 50 + 50 + 200
    assert estimated(branches(2), (D, A), workers=2) == 100 + 50 + 200


def test_an_unmeasured_copy_is_estimated_from_its_bytes() -> None:
    graph = chain(1)
    transfers = Transfers(graph, ExecTimes(), A)
    assert transfers.time(0, A, D) == 8000 / BYTES_PER_MICROSECOND
    assert transfers.time(0, D, F) == 8000 / BYTES_PER_MICROSECOND
    assert transfers.time(0, A, B) == 0


# ---- times


def op_types(nbytes: int, quantization: Quantization | None = None) -> CallTypes:
    half = TensorType(DType.UINT8, (nbytes // 2,), quantization)
    return CallTypes((half,), (half,))


@pytest.mark.parametrize(
    ("points", "nbytes", "time"),
    [
        ([(100, 5.0)], 400, 5.0),
        ([(100, 5.0), (200, 9.0)], 200, 9.0),
        ([(100, 5.0), (200, 9.0)], 150, 7.0),
        ([(100, 5.0), (200, 9.0)], 300, 13.0),
        ([(100, 5.0), (200, 9.0)], 2, 1.08),
        ([(100, 2.0), (200, 9.0)], 2, 1.0),  # the line falls below the minimum
        ([(100, 5.0), (200, 9.0), (400, 9.0)], 300, 9.0),
        ([(100, 5.0), (200, 9.0), (400, float(FAILED))], 400, 17.0),
        ([(100, float(FAILED))], 100, float("inf")),
    ],
)
def test_times_lie_on_the_line_through_the_nearest_sizes(
    points: list[tuple[int, float]], nbytes: int, time: float
) -> None:
    known = merged(ExecTimes(), [("cpu", "ToyScale", False, size, t) for size, t in points])
    assert known.operation("cpu", ToyScale(), op_types(nbytes)) == pytest.approx(time)


def test_times_of_the_exact_operation_take_precedence_over_its_kind() -> None:
    types = op_types(100)
    known = merged(
        ExecTimes(),
        [("cpu", "ToyScale", False, 100, 5.0), ("cpu", detail(ToyScale(3.0), types), False, 100, 7.0)],
    )
    assert known.operation("cpu", ToyScale(3.0), types) == 7.0
    assert known.operation("cpu", ToyScale(2.0), types) == 5.0
    assert known.operation("gpu", ToyScale(2.0), types) is None


def test_quantised_operations_have_separate_times() -> None:
    known = merged(ExecTimes(), [("cpu", "ToyScale", True, 100, 5.0), ("cpu", "ToyScale", False, 100, 7.0)])
    assert known.operation("cpu", ToyScale(), op_types(100)) == 7.0
    assert known.operation("cpu", ToyScale(), op_types(100, Quantization((0.5,), (0,)))) == 5.0


def test_total_bytes_counts_all_operands_and_results() -> None:
    x = TensorType(DType.FLOAT32, (10,))
    assert total_bytes(CallTypes((x, None, TensorType(DType.INT8, (None,))), (x,))) == 80


# ---- choices


def times_of(graph: Subgraph, prices: dict[str, list[float]]) -> ExecTimes:
    """Times of each operation, identified by its factor, on each backend."""
    found = []
    for name, row in prices.items():
        for operation, price in zip(graph.operations, row, strict=True):
            types = graph.types(operation)
            found.append((name, detail(operation.op, types), False, total_bytes(types), price))
    return merged(ExecTimes(), found)


def factors(*values: float) -> Subgraph:
    d = Draft()
    x = d.input(1000, name="x")
    for value in values:
        x = d.op(ToyScale(value), x)
    return d.graph(x)


def chosen(graph: Subgraph, known: ExecTimes, folder: Path, backends: Sequence[Backend], **options: Any) -> list[str]:
    program = scheduled(graph, backends, known, folder, **options)
    by_name = {str(o): step.backend for step in program.main.steps for o in step.sequence.body}
    return [by_name[str(o)] for o in graph.operations]


class Scales(PricedBackend):
    """Runs only scales."""

    def __init__(self, name: str, memory: Any = HOST) -> None:
        kinds: dict[type[Op], float] = {ToyScale: 1.0}
        super().__init__(name, kinds, [], memory)


def copying(known: ExecTimes, price: float) -> ExecTimes:
    return merged(
        known,
        [
            (a, b, False, 8000, price)
            for a, b in (("host", "device"), ("device", "host"), ("builtin", "device"), ("device", "builtin"))
        ],
    )


BACKENDS = [Scales("host"), Scales("device", ELSEWHERE), ToyBackend("builtin", [Permute])]


@pytest.mark.parametrize(
    ("host", "device", "copy", "expected"),
    [
        # None of the first three is worth its copies alone, but all together are: a whole run of operations moves.
        ([100, 100, 100, 10], [40, 40, 40, 300], 70, ["device", "device", "device", "host"]),
        ([100, 100, 100, 10], [40, 40, 40, 300], 95, ["host"] * 4),
        ([10, 100, 100, 10], [300, 40, 40, 300], 50, ["host", "device", "device", "host"]),
        ([10, 100, 10, 100], [100, 10, 100, 10], 1, ["host", "device", "host", "device"]),
        ([50, 50, 50, 50], [10, 10, 10, 10], 70, ["device"] * 4),
    ],
)
def test_operations_move_together_if_that_pays_off(
    tmp_path: Path, host: list[float], device: list[float], copy: float, expected: list[str]
) -> None:
    graph = factors(2.0, 3.0, 5.0, 7.0)
    known = copying(times_of(graph, {"host": host, "device": device}), copy)
    assert chosen(graph, known, tmp_path, BACKENDS) == expected


# Found by a search over random times: choosing by earliest finish, one backend for all, or changing single operations
# gives worse results.
IMPROVED = [
    ([170, 160, 150, 150, 10], [30, 10, 160, 70, 70], 130, "ddddh", 540),
    ([150, 160, 110, 50, 190, 160], [50, 60, 130, 130, 20, 190], 80, "dddddh", 710),
    ([170, 150, 10, 60, 190, 40], [150, 80, 100, 130, 20, 50], 50, "hhhhdh", 550),
    ([170, 50, 160, 20], [80, 130, 90, 20], 40, "dhhh", 390),
    ([130, 90, 190, 30, 90, 30], [150, 30, 110, 140, 50, 20], 30, "hddhhh", 480),
]


@pytest.mark.parametrize(("host", "device", "copy", "letters", "microseconds"), IMPROVED)
def test_an_assignment_is_improved_by_moving_operations_and_runs_of_operations(
    tmp_path: Path, host: list[float], device: list[float], copy: float, letters: str, microseconds: float
) -> None:
    graph = factors(*(float(i + 2) for i in range(len(host))))
    known = copying(times_of(graph, {"host": host, "device": device}), copy)
    assert "".join(name[0] for name in chosen(graph, known, tmp_path, BACKENDS)) == letters
    program = scheduled(graph, BACKENDS, known, tmp_path)
    assert f"a run takes {microseconds} us" in program.notes[-1]


@pytest.mark.parametrize(("executor", "threads", "letters"), [("Linear", 2, "dhhhh"), ("Parallel", 2, "hhhhh")])
def test_the_number_of_workers_decides_what_pays_off(tmp_path: Path, executor: str, threads: int, letters: str) -> None:
    # Sequentially it pays to run the first operation on the device; in parallel it would only wait for copies.
    d = Draft()
    tensors = [d.input(1000, name="x")]
    for factor, source in enumerate((0, 0, 2, 0, 2), 2):
        tensors.append(d.op(ToyScale(float(factor)), tensors[source]))
    graph = d.graph(*tensors[-2:])
    known = times_of(graph, {"host": [170, 100, 170, 70, 20], "device": [20, 60, 120, 130, 120]})
    save(copying(known, 100), tmp_path / "exec_time.json")
    options = Options(
        executor=executor, num_threads=threads, use_scheduler=True, workspace_dir=str(tmp_path), optimize=False
    )
    program = compile(Package((Subgraphs((graph,)),)), options, BACKENDS)
    by_name = {str(o): step.backend for step in program.main.steps for o in step.sequence.body}
    assert "".join(by_name[str(o)][0] for o in graph.operations) == letters


def test_earliest_finish_includes_copies() -> None:
    graph = factors(2.0, 3.0)
    times = [{"host": 100.0, "device": 50.0}, {"host": 100.0, "device": 90.0}]
    by_name = {backend.name: backend for backend in BACKENDS}
    for copy, expected in ((40, ["device", "device"]), (60, ["host", "host"])):
        transfers = Transfers(graph, copying(ExecTimes(), copy), BACKENDS[-1])
        assert (
            heterogeneous._by_earliest_finish(heterogeneous._Problem(graph, by_name, times, transfers, 1)) == expected
        )


def test_the_note_states_the_expected_time_of_a_run(tmp_path: Path) -> None:
    graph = factors(2.0, 3.0, 5.0, 7.0)
    known = copying(times_of(graph, {"host": [100, 100, 100, 10], "device": [40, 40, 40, 300]}), 70)
    program = scheduled(graph, BACKENDS, known, tmp_path)
    assert program.notes[-1] == "by measured times a run takes 270 us; host alone 310 us, device alone 560 us"
