"""The heterogeneous scheduler: it minimises measured times, and reports what was not measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from onert.backend import HOST, Backend, Kernel, Memory, Program, Settings, Tensors
from onert.backend import Sequence as OperationSequence
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.compiler.scheduler.exec_time import FAILED, ExecTimes, detail, load, merged, save, total_bytes
from onert.exec import Execution
from onert.ir import CompileError, Context, DType, Op, Package, Subgraph, Subgraphs, TensorType
from onert.ir.ops.data_movement.permute import Permute
from onert.runtime.measuring import measure

from .toy import ELSEWHERE, Draft, ToyAdd, ToyBackend, ToyRead, ToyScale

Ledger = list[tuple[str, float]]


@frozen
class PricedKernel:
    """Runs a sequence and records the prices of its operations."""

    inner: Kernel
    sequence: OperationSequence
    backend: PricedBackend

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        run = self.inner.bind(tensors, context)

        def priced() -> None:
            run()
            for operation in self.sequence.body:
                self.backend.ledger.append((str(operation), self.backend.price(operation.op)))

        return priced


class PricedBackend(ToyBackend):
    """Fast at some kinds of operations and slow at others: simulated microseconds, recorded in a ledger."""

    def __init__(self, name: str, prices: dict[type[Op], float], ledger: Ledger, memory: Memory = HOST) -> None:
        super().__init__(name, list(prices), memory)
        self.prices = prices
        self.ledger = ledger

    def price(self, op: Op) -> float:
        return self.prices[type(op)]

    def generate(self, sequence: OperationSequence, settings: Settings) -> PricedKernel:
        return PricedKernel(super().generate(sequence, settings), sequence, self)


def priced(ledger: Ledger, memory: Memory, **prices: tuple[float, float]) -> list[ToyBackend]:
    """Two backends by the prices of scales and additions, the second with this memory, and one that copies."""
    own = zip(prices.items(), (HOST, memory), strict=True)
    found = [PricedBackend(name, {ToyScale: scale, ToyAdd: add}, ledger, at) for (name, (scale, add)), at in own]
    return [*found, ToyBackend("builtin", [Permute])]


COPY = 30.0
"""The simulated price of a copy between the memory spaces."""


def price_list(backends: Sequence[Backend], graph: Subgraph) -> ExecTimes:
    """The result of measuring these backends on this graph."""
    found = []
    for backend in backends:
        if isinstance(backend, PricedBackend):
            for operation in graph.operations:
                types = graph.types(operation)
                if backend.supports(operation, types) is None:
                    price = backend.price(operation.op)
                    found.append((backend.name, detail(operation.op, types), False, total_bytes(types), price))
    for source, target in product(backends, backends):
        if source.memory.name != target.memory.name:
            found.append((source.name, target.name, False, 32, COPY))
    return merged(ExecTimes(), found)


def scheduled(graph: Subgraph, backends: Sequence[Backend], known: ExecTimes, folder: Path, **options: Any) -> Program:
    save(known, folder / "exec_time.json")
    chosen = Options(use_scheduler=True, workspace_dir=str(folder), num_threads=1, optimize=False, **options)
    return compile(Package((Subgraphs((graph,)),)), chosen, backends)


def spent(program: Program, ledger: Ledger) -> float:
    """The simulated microseconds of a run, including copies."""
    ledger.clear()
    copies = sum(isinstance(o.op, Permute) for o in program.main.subgraph.operations)
    execution = Execution(program)
    inputs = [np.ones([d or 1 for d in info.shape], np.float32) for info in program.inputs]
    execution.run(inputs)
    return sum(price for _, price in ledger) + COPY * copies


def mixed_graph() -> Subgraph:
    """Alternating long runs of scales and additions."""
    d = Draft()
    x = y = d.input(4, name="x")
    for _ in range(3):
        for _ in range(4):
            y = d.op(ToyScale(2.0), y)
        for _ in range(4):
            y = d.op(ToyAdd(), y, x)
    return d.graph(y)


@pytest.mark.parametrize("memory", [HOST, ELSEWHERE], ids=["shared memory", "separate memory"])
@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
def test_a_mix_of_backends_beats_each_single_one(tmp_path: Path, memory: Memory, executor: str) -> None:
    ledger: Ledger = []
    backends = priced(ledger, memory, scales=(10.0, 100.0), adds=(100.0, 10.0))
    graph = mixed_graph()
    program = scheduled(graph, backends, price_list(backends, graph), tmp_path, executor=executor)
    mix = spent(program, ledger)
    for name in ("scales", "adds"):
        options = Options(op_backend_allops=name, num_threads=1, optimize=False)
        alone = compile(Package((Subgraphs((graph,)),)), options, backends)
        assert mix < spent(alone, ledger)
    assert {step.backend for step in program.main.steps} >= {"scales", "adds"}
    assert any("scales alone 1320 us" in note for note in program.notes)


def test_copies_that_cost_more_than_they_save_are_not_made(tmp_path: Path) -> None:
    ledger: Ledger = []
    backends = priced(ledger, ELSEWHERE, host=(10.0, 20.0), device=(100.0, 10.0))
    d = Draft()
    x = d.input(4, name="x")
    graph = d.graph(d.op(ToyScale(), d.op(ToyAdd(), d.op(ToyScale(), x), x)))
    program = scheduled(graph, backends, price_list(backends, graph), tmp_path)
    assert {step.backend for step in program.main.steps} == {"host"}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_assignment_costs_at_most_half_again_as_much_as_the_best(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("he")
    ledger: Ledger = []
    prices = [{kind: float(data.draw(st.integers(1, 100))) for kind in (ToyScale, ToyAdd)} for _ in range(2)]
    backends = [
        PricedBackend("a", prices[0], ledger),
        PricedBackend("b", prices[1], ledger, ELSEWHERE),
        ToyBackend("builtin", [Permute]),
    ]
    d = Draft()
    pool = [d.input(4, name="x")]
    for _ in range(data.draw(st.integers(1, 6))):
        x, y = (data.draw(st.sampled_from(pool)) for _ in range(2))
        pool.append(d.op(ToyScale(), x) if data.draw(st.booleans()) else d.op(ToyAdd(), x, y))
    graph = d.graph(pool[-1])
    mine = spent(scheduled(graph, backends, price_list(backends, graph), folder), ledger)
    best = min(
        spent(
            compile(
                Package((Subgraphs((graph,)),)),
                Options(op_backend_map=dict(enumerate(names)), num_threads=1, optimize=False),
                backends,
            ),
            ledger,
        )
        for names in product("ab", repeat=len(graph.operations))
    )
    assert mine <= 1.5 * best


def test_notes_name_operations_that_were_not_measured(tmp_path: Path) -> None:
    ledger: Ledger = []
    backends = [PricedBackend("fast", {ToyScale: 1.0}, ledger), ToyBackend("slow"), ToyBackend("builtin", [Permute])]
    d = Draft()
    graph = d.graph(d.op(ToyRead(), d.op(ToyScale(), d.input(4, name="x"))))
    program = scheduled(graph, backends, price_list(backends, graph), tmp_path)
    assert {str(o): step.backend for step in program.main.steps for o in step.sequence.body} == {
        "operation 0 ToyScale": "fast",
        "operation 1 ToyRead": "slow",
    }
    assert "operation 0 ToyScale was not measured on slow, and is not assigned there" in program.notes
    assert "operation 1 ToyRead was measured on no backend and stays on slow" in program.notes


def test_an_operation_assigned_by_the_user_stays_on_its_backend(tmp_path: Path) -> None:
    ledger: Ledger = []
    backends = [PricedBackend("fast", {ToyScale: 1.0}, ledger), PricedBackend("slow", {ToyScale: 9.0}, ledger)]
    d = Draft()
    graph = d.graph(d.op(ToyScale(), d.op(ToyScale(), d.input(4, name="x"))))
    program = scheduled(graph, backends, price_list(backends, graph), tmp_path, op_backend_map={1: "slow"})
    assert [step.backend for step in program.main.steps] == ["fast", "slow"]


def test_an_operation_is_not_assigned_to_a_backend_on_which_it_failed(tmp_path: Path) -> None:
    ledger: Ledger = []
    backends = [PricedBackend("fast", {ToyScale: 1.0}, ledger), PricedBackend("slow", {ToyScale: 9.0}, ledger)]
    d = Draft()
    graph = d.graph(d.op(ToyScale(), d.input(4, name="x")))
    (operation,) = graph.operations
    types = graph.types(operation)
    known = merged(
        ExecTimes(),
        [
            ("fast", detail(operation.op, types), False, 32, FAILED),
            ("slow", detail(operation.op, types), False, 32, 9.0),
        ],
    )
    assert [step.backend for step in scheduled(graph, backends, known, tmp_path).main.steps] == ["slow"]


# ---- the file

PUBLIC = {
    "cpu": {"Split": {"0": [[772, 9]]}, "Concat": {"1": [[256, 3], [768, 10]]}, "acl": {"0": [[64, 5], [128, 9]]}}
}
BYTES = TensorType(DType.FLOAT32, (16,))


def test_the_public_file_layout_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "exec_time.json"
    path.write_text(json.dumps(PUBLIC))
    known = load(path)
    save(known, path)
    assert json.loads(path.read_text()) == PUBLIC
    assert known.transfer("cpu", "acl", BYTES) == 9
    assert known.transfer("acl", "cpu", BYTES) is None


def test_repeated_measurements_are_averaged() -> None:
    known = merged(ExecTimes(), [("cpu", "Add", False, 64, 4.0), ("cpu", "Add", False, 64, 8.0)])
    assert known.times["cpu", "Add", False] == {64: 6.0}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "the scheduler needs .*exec_time.json: No such file.*`onert_run --profile-backends` creates it"),
        ("{", "exec_time.json is not valid JSON"),
        ("[1]", "exec_time.json does not have the layout"),
        ('{"cpu": {"Add": {"0": [[1]]}}}', "exec_time.json does not have the layout"),
    ],
)
def test_an_unusable_file_of_times_is_rejected(tmp_path: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "exec_time.json").write_text(text)
    d = Draft()
    graph = d.graph(d.op(ToyScale(), d.input(4)))
    with pytest.raises(CompileError, match=sentence):
        compile(
            Package((Subgraphs((graph,)),)),
            Options(use_scheduler=True, workspace_dir=str(tmp_path)),
            [ToyBackend("builtin")],
        )


def test_measuring_covers_every_operation_every_backend_and_the_copies() -> None:
    backends: list[Backend] = [
        ToyBackend("device", [ToyScale, ToyAdd], ELSEWHERE),
        ToyBackend("host", [ToyScale]),
        *load_backends(["reference"]),
    ]
    d = Draft()
    x = d.input(4, name="x")
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(), x), x))
    outcome = measure(Package((Subgraphs((graph,)),)), backends, Options(num_threads=1, optimize=False), runs=2)
    found = {(backend, name) for backend, name, *_ in outcome.measurements}
    assert {("device", "ToyScale"), ("host", "ToyScale"), ("device", "ToyAdd"), ("reference", "ToyAdd")} <= found
    assert ("host", "ToyAdd") not in found
    assert {("device", "host"), ("host", "device"), ("reference", "device")} <= found
    assert ("host", "reference") not in found  # one memory, no copies
    assert all(time > 0 for *_, time in outcome.measurements)
