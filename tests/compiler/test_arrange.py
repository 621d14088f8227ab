"""Groups run side by side: valid orders, memory plans that fit them, and Linear's plan if nothing is gained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from branchy_models import PACKAGES
from random_graphs import random_model

import onert
from onert.backend import Group
from onert.backend import Sequence as OperationSequence
from onert.backend.planner.liveness import reachability
from onert.compiler.side_by_side import arrange
from onert.compiler.side_by_side.arrange import Arranged
from onert.ir import Array, Subgraph

from .test_program import program
from .toy import ToyBackend, diamond


def arranged(graph: Subgraph, times: Sequence[float], threads: int = 2) -> tuple[Arranged, list[list[int]]]:
    """Arrange one group per operation, each taking `times` on 1, 2, ... threads; and the operations each depends on."""
    before = [[graph.definitions[i] for i in o.used if i in graph.definitions] for o in graph.operations]
    groups = tuple(Group((at,)) for at in range(len(graph.operations)))
    sequence = OperationSequence(graph, tuple(range(len(groups))), (), (), "", groups)
    return arrange.arrange(sequence, [tuple(b) for b in before], threads, lambda group: tuple(times)), before


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize(("width", "length"), [(2, 1), (2, 5), (3, 2), (5, 3)])
def test_dependencies_come_first_and_a_thread_runs_one_group_at_a_time(width: int, length: int, threads: int) -> None:
    graph = diamond(width, length)
    found, before = arranged(graph, [10.0] * threads, threads)
    assert not found.is_chain
    position = {at: i for i, group in enumerate(found.groups) for at in group.operations}
    after = reachability(found.needs)
    assert sorted(position) == list(range(len(graph.operations)))
    for at, needed in enumerate(before):
        assert all(after[position[other], position[at]] for other in needed)
    for i, one in enumerate(found.groups):
        for j, other in enumerate(found.groups[:i]):
            assert one.threads is not None
            assert other.threads is not None
            apart = one.threads[0] >= sum(other.threads) or other.threads[0] >= sum(one.threads)
            assert apart or after[j, i]


@pytest.mark.parametrize(
    ("graph", "times", "why"),
    [
        (diamond(1, 6), [10.0, 10.0], "there are no branches"),
        (diamond(3), [10.0, 4.9], "all threads on one group are better"),
        (diamond(3), [0.1, 0.1], "too little is saved"),
        (diamond(3), [10.0, 5.8], "the region takes more than nine tenths of its time"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_groups_run_one_after_the_other_if_nothing_is_gained(graph: Subgraph, times: list[float], why: str) -> None:
    found, _ = arranged(graph, times)
    assert found.is_chain, why
    assert [at for group in found.groups for at in group.operations] == list(range(len(graph.operations)))
    assert found.needs == tuple(() if not at else (at - 1,) for at in range(len(found.groups)))


def test_groups_outside_the_branches_get_the_threads_that_pay_off() -> None:
    for times, threads in (([10.0, 6.0], (0, 2)), ([10.0, 10.0], (0, 1))):
        found, _ = arranged(diamond(2, 4), times)
        assert found.groups[0].threads == threads


def test_branches_form_one_sequence_for_backends_that_run_groups_side_by_side() -> None:
    class Both(ToyBackend):
        side_by_side = True

    steps = {
        kind.__name__: [
            [str(o).split()[1] for o in step.sequence.body]
            for step in program(
                diamond(2), [kind("all")], executor="Parallel", num_threads=2, optimize=False
            ).main.steps
        ]
        for kind in (ToyBackend, Both)
    }
    assert steps == {"ToyBackend": [["0"], ["1"], ["2"], ["3"]], "Both": [["0", "1", "2", "3"]]}


# ---- with native kernels


def _inputs(compiled: onert.Program) -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        rng.uniform(-1, 1, [d or 1 for d in info.shape]).astype(info.dtype.numpy)
        if info.dtype.is_float
        else rng.integers(0, 100, [d or 1 for d in info.shape]).astype(info.dtype.numpy)
        for info in compiled.inputs
    ]


def _groups(compiled: onert.Program) -> list[Group]:
    return [group for step in compiled.main.steps for group in step.sequence.groups]


def _answers(compiled: onert.Program, runs: int = 3) -> list[list[bytes]]:
    execution = onert.Execution(compiled)
    given = _inputs(compiled)
    return [[array.tobytes() for array in execution.run(given).values()] for _ in range(runs)]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", PACKAGES)
def test_branches_of_small_kernels_run_side_by_side_in_one_native_call(name: str, threads: int) -> None:
    package = PACKAGES[name]()
    plain = onert.compile(package, num_threads=1)
    compiled = onert.compile(package, executor="Parallel", num_threads=threads)
    assert len(compiled.main.steps) == 1
    assert len({group.threads for group in _groups(compiled)}) >= threads
    assert _answers(compiled) == _answers(plain)


def _everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Run all branches side by side, whatever the estimated gain."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # such a plan must not reach other programs
    monkeypatch.setattr(arrange, "WORTHWHILE", float("inf"))
    monkeypatch.setattr(arrange, "LEAST_SAVED", float("-inf"))
    monkeypatch.setattr(arrange, "OVERALL", float("inf"))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "all"])
@pytest.mark.parametrize("stored", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_give_identical_bits_with_branches_side_by_side(
    seed: int, stored: bool, every: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """On a number of threads in turn, in the long suite on each."""
    numbers = (2, 3, 5)
    package = onert.load(random_model(100 + seed, stored=stored))
    plain = onert.compile(package, num_threads=1)
    _everywhere(monkeypatch, tmp_path)
    for threads in numbers if every else (numbers[(2 * seed + stored) % len(numbers)],):
        compiled = onert.compile(package, executor="Parallel", num_threads=threads)
        assert _answers(compiled) == _answers(plain)


def test_random_graphs_have_branches_that_run_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Checks that the test above exercises something."""
    _everywhere(monkeypatch, tmp_path)
    found = 0
    for seed in range(8):
        compiled = onert.compile(onert.load(random_model(100 + seed, stored=False)), executor="Parallel", num_threads=2)
        found += len({group.threads for group in _groups(compiled)}) > 1
    assert found >= 4


def test_a_model_that_gains_nothing_is_compiled_as_for_the_linear_executor() -> None:
    package = onert.load(random_model(7, stored=False))
    linear, parallel = (onert.compile(package, executor=e, num_threads=2) for e in ("Linear", "Parallel"))
    if any(group.threads for group in _groups(parallel)):
        pytest.skip("this model gains something")
    assert [step.sequence for step in parallel.main.steps] == [step.sequence for step in linear.main.steps]
    assert parallel.memory_plan == linear.memory_plan
    assert parallel.main.is_chain
